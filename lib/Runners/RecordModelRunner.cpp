//===- RecordModelRunner.cpp - A log of requests and decisions ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements RecordModelRunner. It keeps a copy of each request until the next
/// request, because the compiler may pass the decision and the reward later.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/RecordModelRunner.h"

#include "Runners/TrainingLog.h"
#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"

#include <cstdio>
#include <cstring>

using namespace MLBridge;

using ByteVector = std::vector<std::byte>;

/// The log's file and the open request. The open request is the last request,
/// which is not in the file yet.
class RecordModelRunner::Log {
public:
  explicit Log(TrainingLog File)
      : File(std::move(File)), Name("record:" + printable(this->File.path())) {}
  ~Log() {
    if (!isForked())
      File.unlock();
  }
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  /// Returns the log's name for messages.
  const std::string &name() const { return Name; }
  /// Returns whether this process is a forked child. The log belongs to the
  /// parent.
  bool isForked() const { return Fork.isForked(); }
  /// Returns the error of every call in a forked child.
  Error forkedError() const;
  const Error &failure() const { return File.failure(); }

  /// Returns a SchemaMismatch if \p Features differ from the features in the
  /// log.
  Error checkFeatures(Span<const TensorView> Features) const;
  /// Opens a request, to which the model has replied or which it has deferred.
  Error open(Span<const TensorView> Features);
  /// Notes that the model failed. An old log in the file is then kept until the
  /// model replies.
  void noteFailure() { HasModelFailed = true; }
  /// Closes the request without writing it. Later decisions are ignored.
  void abandon() { Current = State::Abandoned; }
  /// Uses the model's advice as the decision, unless decide() sets another
  /// decision later. Therefore, only finish() returns an error if the advice
  /// does not fit the log.
  void useAdvice(const Advice &Given);
  Error decide(const TensorView &Decision);
  Error reward(double Value);
  /// Adds the model's metadata to the header, unless the header has been
  /// written.
  void addMetadata(std::string_view Key, const std::string &Value) {
    Metadata.insert_or_assign(std::string(Key), Value);
  }
  /// Closes the open request, and writes it if it has a decision.
  Error finish();
  /// Writes all observations. Removes an old log from the file, unless the
  /// model has failed and has not replied to any request.
  Error flush();
  /// Returns \p E with the log's name in front of the message. Does not add the
  /// name to a System error, which already names the file.
  Error withName(Error E) const;

  /// The context of the next requests.
  std::string Context;

private:
  enum class State : std::uint8_t {
    None,      ///< There is no request, or it has been written.
    Abandoned, ///< The model failed.
    Undecided, ///< The model deferred.
    Decided,   ///< The request has a decision.
  };

  TrainingLog File;
  const std::string Name;
  const ForkDetector Fork;
  /// The descriptions of the tensors for the log's header. They are set before
  /// the header is written.
  std::vector<LoggedTensor> FeatureTypes;
  LoggedTensor DecisionType;
  TrainingLog::Metadata Metadata;

  State Current = State::None;
  bool HasModelFailed = false;
  std::string RequestContext;
  ByteVector Features;
  ByteVector Decision;
  ByteVector Scratch;
  /// The reason why the model's advice is not a valid decision.
  Error AdviceError;
  std::optional<double> Reward;
};

//===----------------------------------------------------------------------===//
// The open request
//===----------------------------------------------------------------------===//

Error RecordModelRunner::Log::checkFeatures(
    Span<const TensorView> Features) const {
  if (!File.hasHeader())
    return Error::success();
  return MLBridge::checkFeatures(FeatureTypes, Features);
}

static void append(ByteVector &Out, Span<const std::byte> Bytes) {
  Out.insert(Out.end(), Bytes.begin(), Bytes.end());
}

Error RecordModelRunner::Log::open(Span<const TensorView> NewFeatures) {
  Current = State::Abandoned;
  if (Error E = File.removeOldLog())
    return E;
  if (!File.hasHeader()) {
    FeatureTypes.resize(NewFeatures.size());
    for (std::size_t I = 0; I < NewFeatures.size(); ++I)
      if (Error E = FeatureTypes[I].assign(NewFeatures[I]))
        return E;
  }
  Features.clear();
  for (const TensorView &Feature : NewFeatures)
    append(Features, Feature.bytes());
  RequestContext = Context;
  AdviceError = Error::success();
  Reward.reset();
  Current = State::Undecided;
  return Error::success();
}

void RecordModelRunner::Log::useAdvice(const Advice &Given) {
  Expected<const TensorView *> Output = Given.only();
  AdviceError = Output ? decide(**Output) : Output.takeError();
}

Error RecordModelRunner::Log::decide(const TensorView &Decided) {
  if (Current == State::None)
    return {ErrorCode::InvalidArgument,
            "a decision was logged before the first request"};
  // Ignore the decision if the model failed, because nothing will be written.
  if (Current == State::Abandoned)
    return Error::success();

  TensorView Converted = Decided;
  if (!File.hasHeader()) {
    if (Error E = DecisionType.assign(Decided))
      return E;
  } else {
    // Convert the decision to the name and type in the log's header, which come
    // from the first decision. The names and types can differ because some
    // decisions come from the model and others from the compiler.
    Converted.Name = DecisionType.Name;
    if (Decided.Type != DecisionType.Type &&
        Decided.Type != ElementType::String &&
        DecisionType.Type != ElementType::String) {
      Converted.Type = DecisionType.Type;
      Converted.NumBytes = Decided.numElements() * elementSize(Converted.Type);
      Scratch.resize(Converted.NumBytes);
      Converted.Data = Scratch.data();
      if (Error E =
              detail::convertElements(Decided, Converted.Type, Scratch.data()))
        return E;
    }
  }
  if (Error E = DecisionType.check(Converted))
    return E;
  Decision.clear();
  append(Decision, Converted.bytes());
  Current = State::Decided;
  return Error::success();
}

Error RecordModelRunner::Log::reward(double Value) {
  if (Current == State::None)
    return {ErrorCode::InvalidArgument,
            "a reward was logged before the first request"};
  Reward = Value;
  return Error::success();
}

Error RecordModelRunner::Log::finish() {
  State Was = std::exchange(Current, State::None);
  if (Was == State::Undecided && AdviceError)
    return AdviceError;
  if (Was != State::Decided)
    return File.failure();
  if (!File.hasHeader())
    File.writeHeader(FeatureTypes, DecisionType, Reward.has_value(), Metadata);
  if (Reward.has_value() != File.hasScore())
    return {ErrorCode::SchemaMismatch,
            std::string("the log's observations have ") +
                (File.hasScore() ? "a" : "no") +
                " reward, found a decision with" + (Reward ? "" : "out") +
                " one"};
  return File.write({RequestContext, Features, Decision, Reward.value_or(0)});
}

Error RecordModelRunner::Log::withName(Error E) const {
  if (!E || E.code() == ErrorCode::System)
    return E;
  return {E.code(), Name + ": " + E.message()};
}

Error RecordModelRunner::Log::forkedError() const {
  return {ErrorCode::Unsupported,
          Name + ": this process was forked from the one that writes this log, "
                 "and cannot write to it; create a runner with another log "
                 "after the fork"};
}

Error RecordModelRunner::Log::flush() {
  // Do not close an undecided request, because its decision may still follow.
  Error Unwritten = Current == State::Decided ? finish() : Error::success();
  if (!HasModelFailed)
    if (Error E = File.removeOldLog())
      return E;
  // Write the earlier observations even if the last one failed.
  Error Unflushed = File.flush();
  return Unflushed ? Unflushed : Unwritten;
}

//===----------------------------------------------------------------------===//
// The runner
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<RecordModelRunner>>
RecordModelRunner::create(std::string Path,
                          std::unique_ptr<MLModelRunner> Inner) {
  Expected<TrainingLog> File = TrainingLog::create(std::move(Path));
  if (!File)
    return File.takeError();
  return std::unique_ptr<RecordModelRunner>(new RecordModelRunner(
      std::make_unique<Log>(std::move(*File)), std::move(Inner)));
}

RecordModelRunner::RecordModelRunner(std::unique_ptr<Log> Out,
                                     std::unique_ptr<MLModelRunner> Inner)
    : Out(std::move(Out)), Inner(std::move(Inner)) {
  setTimeout(this->Inner->timeout());
}

RecordModelRunner::~RecordModelRunner() {
  // Do not write the buffered data in a forked child. The parent writes it.
  if (Out->isForked())
    return;
  auto Print = [this](const Error &E) {
    std::fprintf(stderr, "error: %s: %s\n", describe().c_str(),
                 E.str().c_str());
  };
  if (Out->failure()) {
    if (HasUnreportedFailure)
      Print(Out->failure());
    return;
  }
  for (const Error &E : {Out->finish(), Out->flush()})
    if (E)
      Print(E);
}

std::string RecordModelRunner::describe() const {
  return Out->name() + "|" + Inner->describe();
}

Expected<std::optional<std::string>>
RecordModelRunner::metadata(std::string_view Key) {
  Expected<std::optional<std::string>> Value = Inner->metadata(Key);
  if (Value && *Value)
    Out->addMetadata(Key, **Value);
  return Value;
}

Error RecordModelRunner::loadBeforeFork() { return Inner->loadBeforeFork(); }

Error RecordModelRunner::flush() {
  if (Out->isForked())
    return Inner->flush();
  HasUnreportedFailure = false;
  Error Own = Out->withName(Out->flush());
  Error Others = Inner->flush();
  if (Own && Others)
    return {Own.code(), Own.message() + "; " + Others.message()};
  return Own ? Own : Others;
}

void RecordModelRunner::switchContext(std::string_view Name) {
  Out->Context = Name;
  Inner->switchContext(Name);
}

Expected<Advice> RecordModelRunner::evaluateUntyped(const FeatureSet &Features,
                                                    const AdviceSpec &Wanted,
                                                    Deadline Until) {
  if (Out->isForked()) [[unlikely]]
    return Out->forkedError();
  Error Unwritten = Out->finish();
  // Ignore decisions until the model has replied.
  Out->abandon();
  HasUnreportedFailure = false;
  if (Unwritten)
    return Out->withName(std::move(Unwritten));
  if (Error E = Out->checkFeatures(Features.tensors()))
    return Out->withName(std::move(E));
  Expected<Advice> Reply = Inner->ask(Features, Wanted, Until);
  if (!Reply && Reply.code() != ErrorCode::Deferred) {
    Out->noteFailure();
    // Write the observations now, because the model's failure may end the
    // process. If this fails, the next request returns the log's error.
    HasUnreportedFailure = bool(Out->flush());
    return Reply;
  }
  if (Error E = Out->open(Features.tensors()))
    return Out->withName(std::move(E));
  if (Reply)
    Out->useAdvice(*Reply);
  return Reply;
}

Error RecordModelRunner::logOutcomeUntyped(const TensorView *Decision,
                                           std::optional<double> Reward) {
  if (Out->isForked()) [[unlikely]]
    return Out->forkedError();
  if (Decision)
    if (Error E = Out->decide(*Decision))
      return Out->withName(std::move(E));
  if (Reward)
    if (Error E = Out->reward(*Reward))
      return Out->withName(std::move(E));
  return Inner->logOutcomeUntyped(Decision, Reward);
}
