//===- MLModelRunner.h - A request to a model -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MLModelRunner: how a pass asks a model for a decision (paper, section 3).
/// Three lines:
/// \code
///   Expected<std::unique_ptr<MLModelRunner>> Runner =
///       createModelRunner("pipe:/tmp/advisor");
///   (*Runner)->populateFeatures(std::pair{"callee_size", 12},
///                               std::pair{"embedding", Embedding});
///   bool ShouldInline = (*Runner)->evaluate<bool>();
/// \endcode
/// The runner decides which model answers and how to reach it; a pass sees only
/// this class.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_MLMODELRUNNER_H
#define MLCOMPILERBRIDGE_MLMODELRUNNER_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/FeatureSet.h"

#include <functional>
#include <memory>
#include <optional>

namespace MLBridge {

/// A function from a FeatureSet to an Advice.
///
/// A runner is used by one thread at a time. Make one per thread: runners of
/// in-process models share the model, and a server gives each runner its own
/// session.
///
/// **To write one**, derive and override evaluateUntyped() and describe().
class MLModelRunner {
public:
  using ErrorHandler = std::function<void(const Error &)>;

  /// The default limit on one evaluate(); see setTimeout().
  static constexpr Duration DefaultTimeout = std::chrono::seconds(30);

  virtual ~MLModelRunner();
  MLModelRunner(const MLModelRunner &) = delete;
  MLModelRunner &operator=(const MLModelRunner &) = delete;

  /// Adds features to the next request: any number of
  /// `std::pair{Name, Value}`. May be called several times; a name set twice
  /// has its last value. FeatureSet::set lists the types. Views are borrowed
  /// until the reply arrives.
  template <typename... Names, typename... Ts>
  void populateFeatures(const std::pair<Names, Ts> &...Pairs) {
    (Features.set(std::string_view(Pairs.first), Pairs.second), ...);
  }

  /// Asks the model about the populated features, then clears them. T is a
  /// number, bool or std::string, a std::vector of one of those, a Span of
  /// const numbers or an Advice (the last two are valid until the next request
  /// to this runner). Blocks until the reply arrives or the timeout passes.
  ///
  /// Any failure, Deferred included, goes to the error handler; then the
  /// process exits with status 1. Use tryEvaluate() if the compiler can fall
  /// back to its own heuristic.
  template <typename T> T evaluate() {
    Expected<T> Result = tryEvaluate<T>();
    if (!Result)
      fail(Result.takeError());
    return std::move(*Result);
  }

  /// Like evaluate(), but returns every failure and never ends the process.
  /// ErrorCode::Deferred: the model leaves the decision to the caller.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<Advice> Reply = ask(Features, AdviceSpec::of<T>());
    Features.clear();
    if (!Reply)
      return Reply.takeError();
    return convert<T>(*Reply);
  }

  /// Converts \p Reply, which this runner returned, to T as Advice::get() does;
  /// errors name the runner.
  template <typename T> Expected<T> convert(const Advice &Reply) const {
    Expected<T> Result = Reply.get<T>();
    if (!Result)
      return withName(Result.takeError());
    return Result;
  }

  /// Asks the model about \p Features, without converting the reply or clearing
  /// the features. The reply's views are valid until the next call.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted);
  /// The same with an explicit deadline. Decorators pass theirs to the runner
  /// that they decorate.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted,
                       Deadline Until);

  /// Tells the runner the final decision, a `std::pair{Name, Value}`, and its
  /// reward. Runners that record or learn use them; others ignore them.
  template <typename Name, typename T>
  Error logOutcome(const std::pair<Name, T> &Decision,
                   std::optional<double> Reward = std::nullopt) {
    Decided.clear();
    Decided.set(std::string_view(Decision.first), Decision.second);
    if (Decided.error())
      return Decided.error();
    return logOutcomeUntyped(&Decided.tensors().front(), Reward);
  }
  /// The same for a decision that followed the model's advice.
  Error logOutcome(double Reward) { return logOutcomeUntyped(nullptr, Reward); }

  /// Names the subject of the next requests (a module, a function) for logs.
  virtual void switchContext(std::string_view Name);

  /// The runner and its peer for messages: "pipe:/tmp/advisor (bitstream)".
  virtual std::string describe() const = 0;

  /// The model file's metadata for \p Key (docs/reference/model-metadata.md),
  /// such as "mlbridge.vocabulary". Empty if the file has no such key or the
  /// model is not a file in this process. Loads the model if necessary.
  virtual Expected<std::optional<std::string>> metadata(std::string_view Key);

  /// Writes buffered data, such as RecordModelRunner's log. The destructor does
  /// so too, but can only print a failure: call this first to receive it.
  virtual Error flush();

  /// Sets the function that evaluate() calls before it ends the process with
  /// status 1. The default prints the error to stderr.
  void setErrorHandler(ErrorHandler Handler);
  /// Limits how long one evaluate() may take. Connecting to the model first has
  /// its own limit.
  void setTimeout(Duration Wait) { Timeout = Wait; }
  Duration timeout() const { return Timeout; }

  /// Implements logOutcome(); \p Decision is null if only the reward is new.
  virtual Error logOutcomeUntyped(const TensorView *Decision,
                                  std::optional<double> Reward);

protected:
  MLModelRunner() = default;

  /// Answers one request before \p Until. \p Wanted hints at the type that the
  /// caller will convert the advice to; the runner need not convert it. The
  /// advice's views must stay valid until the next call.
  virtual Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                           const AdviceSpec &Wanted,
                                           Deadline Until) = 0;

private:
  [[noreturn]] void fail(const Error &E) const;
  /// \p E with this runner's name in front of the message.
  Error withName(const Error &E) const;

  FeatureSet Features;
  /// A member, so that its memory is reused for the next outcome.
  FeatureSet Decided;
  ErrorHandler OnError;
  Duration Timeout = DefaultTimeout;
};

/// Creates the runner that \p Spec names, such as
/// `pipe:/tmp/advisor?serdes=json` or `record:log.bin|pipe:/tmp/advisor`;
/// docs/reference/model-specs.md lists all specs. The runner connects at its
/// first request. Each call uses a new RunnerFactory, so an in-process model is
/// loaded for this runner alone.
Expected<std::unique_ptr<MLModelRunner>>
createModelRunner(std::string_view Spec);
/// The same for the value of an environment variable; null is an
/// InvalidArgument.
Expected<std::unique_ptr<MLModelRunner>> createModelRunner(const char *Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_MLMODELRUNNER_H
