//===- MLModelRunner.h - A request to a model -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines MLModelRunner, through which a pass requests a decision from a
/// model. A pass needs three statements:
/// \code
///   Expected<std::unique_ptr<MLModelRunner>> Runner =
///       createModelRunner("pipe:/tmp/advisor");
///   (*Runner)->populateFeatures(std::pair{"callee_size", 12},
///                               std::pair{"embedding", Embedding});
///   bool ShouldInline = (*Runner)->evaluate<bool>();
/// \endcode
/// The spec names the model and the way to reach it. The pass uses only this
/// class.
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

/// Sends requests to one model. A request is a FeatureSet, and the reply is an
/// Advice.
///
/// Only one thread at a time may use a runner, so create one runner per thread.
/// Several runners can share one in-process model. A server opens a separate
/// session for each runner.
///
/// **To write a runner**, derive a class and override evaluateUntyped() and
/// describe().
class MLModelRunner {
public:
  using ErrorHandler = std::function<void(const Error &)>;

  /// The default time limit of one evaluate(). See setTimeout().
  static constexpr Duration DefaultTimeout = std::chrono::seconds(30);

  virtual ~MLModelRunner();
  MLModelRunner(const MLModelRunner &) = delete;
  MLModelRunner &operator=(const MLModelRunner &) = delete;

  /// Adds features to the next request. Each argument is a `std::pair{Name,
  /// Value}`. A pass can call this function several times for one request. If a
  /// name is set twice, the last value counts. FeatureSet::set lists the types
  /// of values. Views are borrowed until the reply arrives.
  template <typename... Names, typename... Ts>
  void populateFeatures(const std::pair<Names, Ts> &...Pairs) {
    (Features.set(std::string_view(Pairs.first), Pairs.second), ...);
  }

  /// Sends the populated features to the model, clears them and returns the
  /// reply as a T. Advice::get() lists the types for T. If T is a Span or an
  /// Advice, the result is valid until the next request to this runner. Blocks
  /// until the reply arrives or the timeout passes.
  ///
  /// If the evaluation fails or the model defers, calls the error handler and
  /// then ends the process with status 1. If the compiler has a heuristic to
  /// fall back to, use tryEvaluate() instead.
  template <typename T> T evaluate() {
    Expected<T> Result = tryEvaluate<T>();
    if (!Result)
      fail(Result.takeError());
    return std::move(*Result);
  }

  /// Evaluates as evaluate() does, but returns every failure and never ends the
  /// process. Returns ErrorCode::Deferred if the model leaves the decision to
  /// the caller.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<Advice> Reply = ask(Features, AdviceSpec::of<T>());
    Features.clear();
    if (!Reply)
      return Reply.takeError();
    return convert<T>(*Reply);
  }

  /// Converts \p Reply to T as Advice::get() does. This runner must have
  /// returned \p Reply, because errors name the runner.
  template <typename T> Expected<T> convert(const Advice &Reply) const {
    Expected<T> Result = Reply.get<T>();
    if (!Result)
      return withName(Result.takeError());
    return Result;
  }

  /// Sends \p Features to the model and returns the unconverted reply. Does not
  /// clear the features. The reply's views are valid until the next call.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted);
  /// Evaluates as above, but with an explicit deadline. A decorator passes its
  /// deadline to the decorated runner.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted,
                       Deadline Until);

  /// Passes the compiler's final decision and its reward to the runner. The
  /// decision is a `std::pair{Name, Value}`. Runners that record or learn use
  /// the decision and the reward. Other runners ignore them.
  template <typename Name, typename T>
  Error logOutcome(const std::pair<Name, T> &Decision,
                   std::optional<double> Reward = std::nullopt) {
    Decided.clear();
    Decided.set(std::string_view(Decision.first), Decision.second);
    if (Decided.error())
      return Decided.error();
    return logOutcomeUntyped(&Decided.tensors().front(), Reward);
  }
  /// Passes only the reward to the runner, for a decision that followed the
  /// model's advice.
  Error logOutcome(double Reward) { return logOutcomeUntyped(nullptr, Reward); }

  /// Sets the name under which logs record the next requests, such as the name
  /// of a module or a function.
  virtual void switchContext(std::string_view Name);

  /// Describes the runner and its peer for messages, for example as
  /// "pipe:/tmp/advisor (bitstream)".
  virtual std::string describe() const = 0;

  /// Returns the value of \p Key in the model file's metadata. Loads the model
  /// if necessary. Returns nullopt if the file lacks \p Key or the model does
  /// not run in this process. docs/reference/model-metadata.md lists the keys,
  /// such as "mlbridge.vocabulary".
  virtual Expected<std::optional<std::string>> metadata(std::string_view Key);

  /// Loads an in-process model now. Child processes that are forked later can
  /// then use the model without loading it again. The process must have only
  /// one thread when it forks, because another thread could hold a lock of the
  /// runtime. After this call, evaluations have no deadline, because only
  /// another thread could interrupt them. If this call fails, the first request
  /// returns the error again.
  virtual Error loadBeforeFork();

  /// Writes buffered data, such as RecordModelRunner's log. The destructor also
  /// writes buffered data, but it can only print an error. To receive the
  /// error, call flush() first.
  virtual Error flush();

  /// Sets the function that evaluate() calls before it ends the process with
  /// status 1. The default prints the error to stderr.
  void setErrorHandler(ErrorHandler Handler);
  /// Limits the time of one evaluate(). The time to connect to the model has a
  /// separate limit.
  void setTimeout(Duration Wait) { Timeout = Wait; }
  Duration timeout() const { return Timeout; }

  /// Implements logOutcome(). \p Decision is null if the caller passes only a
  /// reward.
  virtual Error logOutcomeUntyped(const TensorView *Decision,
                                  std::optional<double> Reward);

protected:
  MLModelRunner() = default;

  /// Evaluates one request before \p Until. \p Wanted is the type to which the
  /// caller will convert the advice. It is only a hint, so the runner need not
  /// convert the advice. The advice's views must stay valid until the next
  /// call.
  virtual Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                           const AdviceSpec &Wanted,
                                           Deadline Until) = 0;

private:
  [[noreturn]] void fail(const Error &E) const;
  /// Returns \p E with this runner's name in front of the message.
  Error withName(const Error &E) const;

  FeatureSet Features;
  /// The decision of logOutcome(). It is a member, so that its memory is reused
  /// for the next decision.
  FeatureSet Decided;
  ErrorHandler OnError;
  Duration Timeout = DefaultTimeout;
};

/// Creates the runner for \p Spec, such as `pipe:/tmp/advisor?serdes=json` or
/// `record:log.bin|pipe:/tmp/advisor`. docs/reference/model-specs.md lists all
/// specs. The runner connects at its first request. Each call uses a new
/// RunnerFactory, so this runner does not share its in-process model with other
/// runners.
Expected<std::unique_ptr<MLModelRunner>>
createModelRunner(std::string_view Spec);
/// Creates a runner as above. \p Spec is the value of an environment variable.
/// If \p Spec is null, returns InvalidArgument.
Expected<std::unique_ptr<MLModelRunner>> createModelRunner(const char *Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_MLMODELRUNNER_H
