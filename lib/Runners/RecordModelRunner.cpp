//===- RecordModelRunner.cpp - A log of requests and decisions ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A request stays open, in a copy, until the next one is asked: what was
/// decided and how good it was comes later than the request, or never.
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

/// The log's file and the request that is not in it yet.
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

  /// For messages.
  const std::string &name() const { return Name; }
  /// Whether the log is the parent's, which goes on writing it.
  bool isForked() const { return Fork.isForked(); }
  /// What a child is told that asks.
  Error refuseChild() const;
  const Error &failure() const { return File.failure(); }

  /// A SchemaMismatch unless \p Features are those of the log.
  Error checkFeatures(Span<const TensorView> Features) const;
  /// Opens a request.
  Error ask(Span<const TensorView> Features);
  /// Closes it without an answer: nobody can decide it any more.
  void abandon() { Current = State::Abandoned; }
  /// The model's answer is the decision, unless the compiler makes another. So
  /// one that does not fit the log is an error only if nobody does.
  void answer(const Advice &Given);
  Error decide(const TensorView &Decision);
  Error reward(double Value);
  /// Writes the request if it was decided, and closes it.
  Error finish();
  Error flush();
  /// \p E with the log's name before it, where it is not there already.
  Error blame(Error E) const;

  /// What the next requests are about.
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
  /// What the header says, or will say.
  std::vector<LoggedTensor> FeatureTypes;
  LoggedTensor DecisionType;

  State Current = State::None;
  std::string RequestContext;
  ByteVector Features;
  ByteVector Decision;
  ByteVector Scratch;
  /// Why the model's answer is no decision.
  Error Unfit;
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
                "': the log has it, found no such feature"};
  return Error::success();
}

static void append(ByteVector &Out, Span<const std::byte> Bytes) {
  Out.insert(Out.end(), Bytes.begin(), Bytes.end());
}

Error RecordModelRunner::Log::ask(Span<const TensorView> Asked) {
  Current = State::Abandoned;
  if (!File.hasHeader()) {
    FeatureTypes.resize(Asked.size());
    for (std::size_t I = 0; I < Asked.size(); ++I)
      if (Error E = FeatureTypes[I].assign(Asked[I]))
        return E;
  }
  Features.clear();
  for (const TensorView &Feature : Asked)
    append(Features, Feature.bytes());
  RequestContext = Context;
  Unfit = Error::success();
  Reward.reset();
  Current = State::Undecided;
  return Error::success();
}

void RecordModelRunner::Log::answer(const Advice &Given) {
  Expected<const TensorView *> Output = Given.only();
  Unfit = Output ? decide(**Output) : Output.takeError();
}

Error RecordModelRunner::Log::decide(const TensorView &Decided) {
  if (Current == State::None)
    return {ErrorCode::InvalidArgument,
            "a decision was logged before there was a request"};
  // What the compiler decided by itself after a failure is no observation.
  if (Current == State::Abandoned)
    return Error::success();

  TensorView Converted = Decided;
  if (!File.hasHeader()) {
    if (Error E = DecisionType.assign(Decided))
      return E;
  } else {
    // A model calls its answer "out", a compiler by the choice's name; the log
    // has one decision, whoever made it. Nor need both be of the same type.
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
            "a reward was logged before there was a request"};
  Reward = Value;
  return Error::success();
}

Error RecordModelRunner::Log::finish() {
  State Was = std::exchange(Current, State::None);
  if (Was == State::Undecided && Unfit)
    return Unfit;
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

Error RecordModelRunner::Log::blame(Error E) const {
  if (!E || E.code() == ErrorCode::System)
    return E;
  return {E.code(), Name + ": " + E.message()};
}

Error RecordModelRunner::Log::refuseChild() const {
  return {ErrorCode::Unsupported,
          Name + ": this process was forked from the one that writes this log, "
                 "and cannot write it too; make a runner after the fork, with "
                 "another log"};
}

Error RecordModelRunner::Log::flush() {
  // An undecided request may still be decided.
  Error Unwritten = Current == State::Decided ? finish() : Error::success();
  // The observations before it are none the worse.
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
  // What is kept back here is the parent's to write, once.
  if (Out->isForked())
    return;
  auto Print = [this](const Error &E) {
    std::fprintf(stderr, "error: %s: %s\n", describe().c_str(),
                 E.str().c_str());
  };
  if (Out->failure()) {
    if (HasUntoldFailure)
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
  HasUntoldFailure = false;
  Error Own = Out->blame(Out->flush());
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
    return Out->refuseChild();
  Error Unwritten = Out->finish();
  // Until there is an answer, there is nothing to decide.
  Out->abandon();
  HasUntoldFailure = false;
  if (Unwritten)
    return Out->blame(std::move(Unwritten));
  if (Error E = Out->checkFeatures(Features.tensors()))
    return Out->blame(std::move(E));
  Expected<Advice> Reply = Inner->ask(Features, Wanted, Until);
  if (!Reply && Reply.code() != ErrorCode::Deferred) {
    // It may end the process, which is no reason to lose what was observed. A
    // log that cannot be written says so at the next request, if there is one.
    HasUntoldFailure = bool(Out->flush());
    return Reply;
  }
  if (Error E = Out->ask(Features.tensors()))
    return Out->blame(std::move(E));
  if (Reply)
    Out->answer(*Reply);
  return Reply;
}

Error RecordModelRunner::logOutcomeUntyped(const TensorView *Decision,
                                           std::optional<double> Reward) {
  if (Out->isForked()) [[unlikely]]
    return Out->refuseChild();
  if (Decision)
    if (Error E = Out->decide(*Decision))
      return Out->blame(std::move(E));
  if (Reward)
    if (Error E = Out->reward(*Reward))
      return Out->blame(std::move(E));
  return Inner->logOutcomeUntyped(Decision, Reward);
}
