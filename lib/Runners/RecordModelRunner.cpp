//===- RecordModelRunner.cpp - A log of requests and decisions ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A copy of each request stays open until the next request, because the
/// decision and the reward may follow the request, or never come.
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

/// The log's file and the open request.
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

  /// The log's name, for messages.
  const std::string &name() const { return Name; }
  /// Whether this is a forked child: the log belongs to the parent.
  bool isForked() const { return Fork.isForked(); }
  /// The error of every call in a forked child.
  Error forkedError() const;
  const Error &failure() const { return File.failure(); }

  /// A SchemaMismatch if \p Features differ from the log's.
  Error checkFeatures(Span<const TensorView> Features) const;
  /// Opens a request.
  Error open(Span<const TensorView> Features);
  /// Closes the request without advice; later decisions are ignored.
  void abandon() { Current = State::Abandoned; }
  /// Uses the model's advice as the decision, unless the compiler makes
  /// another. Therefore advice that does not fit the log is only an error in
  /// finish().
  void useAdvice(const Advice &Given);
  Error decide(const TensorView &Decision);
  Error reward(double Value);
  /// Closes the request, and writes it if it was decided.
  Error finish();
  Error flush();
  /// \p E with the log's name in front, unless it is a System error, which
  /// already names the file.
  Error withName(Error E) const;

  /// The context of the next requests.
  std::string Context;

private:
  enum class State : std::uint8_t {
    None,      ///< Before the first request, or after flush().
    Abandoned, ///< The model failed.
    Undecided, ///< The model deferred.
    Decided,
  };

  TrainingLog File;
  const std::string Name;
  const ForkDetector Fork;
  /// The contents of the header, written or not.
  std::vector<LoggedTensor> FeatureTypes;
  LoggedTensor DecisionType;

  State Current = State::None;
  std::string RequestContext;
  ByteVector Features;
  ByteVector Decision;
  ByteVector Scratch;
  /// Why the model's advice is not a valid decision.
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
  for (std::size_t I = 0; I < Features.size(); ++I) {
    if (I == FeatureTypes.size())
      return {ErrorCode::SchemaMismatch,
              "feature '" + printable(Features[I].Name) +
                  "': expected the log's " + std::to_string(I) +
                  " features, found one more"};
    if (Error E = FeatureTypes[I].check(Features[I]))
      return E;
  }
  if (Features.size() < FeatureTypes.size())
    return {ErrorCode::SchemaMismatch,
            "feature '" + printable(FeatureTypes[Features.size()].Name) +
                "': expected by the log, but missing"};
  return Error::success();
}

static void append(ByteVector &Out, Span<const std::byte> Bytes) {
  Out.insert(Out.end(), Bytes.begin(), Bytes.end());
}

Error RecordModelRunner::Log::open(Span<const TensorView> NewFeatures) {
  Current = State::Abandoned;
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
  // After the model has failed, a decision belongs to no observation:
  // ignore it.
  if (Current == State::Abandoned)
    return Error::success();

  TensorView Converted = Decided;
  if (!File.hasHeader()) {
    if (Error E = DecisionType.assign(Decided))
      return E;
  } else {
    // The log has one name and type for decisions, but a model calls its advice
    // "out", and a compiler may use another name and type.
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
    File.writeHeader(FeatureTypes, DecisionType, Reward.has_value());
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
  // An undecided request may still be decided.
  Error Unwritten = Current == State::Decided ? finish() : Error::success();
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
  // A forked child must not write the buffered data: the parent does.
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
  return Inner->metadata(Key);
}

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
  // Without advice, there is nothing to decide.
  Out->abandon();
  HasUnreportedFailure = false;
  if (Unwritten)
    return Out->withName(std::move(Unwritten));
  if (Error E = Out->checkFeatures(Features.tensors()))
    return Out->withName(std::move(E));
  Expected<Advice> Reply = Inner->ask(Features, Wanted, Until);
  if (!Reply && Reply.code() != ErrorCode::Deferred) {
    // The failure may end the process, so write the observations now. The next
    // request returns an error of the log.
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
