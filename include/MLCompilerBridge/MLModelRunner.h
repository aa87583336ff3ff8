//===- MLModelRunner.h - A request to a model ------------------*- C++ -*-===//
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
/// Which model answers, and how it is reached, is the runner's affair: a pass
/// sees this class only.
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
/// in-process models share the model, and a served model gives each runner a
/// session of its own.
///
/// **To write one**, derive and override evaluateUntyped() and describe().
class MLModelRunner {
public:
  using ErrorHandler = std::function<void(const Error &)>;

  /// How long evaluate may take unless setTimeout() says otherwise.
  static constexpr Duration DefaultTimeout = std::chrono::seconds(30);

  virtual ~MLModelRunner();
  MLModelRunner(const MLModelRunner &) = delete;
  MLModelRunner &operator=(const MLModelRunner &) = delete;

  /// Adds features to the next request: any number of
  /// `std::pair{Name, Value}`. May be called several times; a name set twice
  /// has its last value. For the types and for who owns the data see
  /// FeatureSet::set: views are borrowed until the request is answered.
  template <typename... Names, typename... Ts>
  void populateFeatures(const std::pair<Names, Ts> &...Pairs) {
    (Features.set(std::string_view(Pairs.first), Pairs.second), ...);
  }

  /// Asks the model about the populated features, and forgets them. T is a
  /// number, bool or std::string, a std::vector of one of those, a Span of
  /// const numbers or an Advice (both valid until this runner is asked again).
  ///
  /// Any failure, Deferred included, goes to the error handler; then the
  /// process ends. Use tryEvaluate() where the compiler has a heuristic of its
  /// own to fall back to.
  template <typename T> T evaluate() {
    Expected<T> Result = tryEvaluate<T>();
    if (!Result)
      fail(Result.takeError());
    return std::move(*Result);
  }

  /// As evaluate(), but every failure is returned, and nothing ends the
  /// process. ErrorCode::Deferred: the model leaves the decision to you.
  template <typename T> Expected<T> tryEvaluate() {
    Expected<Advice> Reply = ask(Features, AdviceSpec::of<T>());
    Features.clear();
    if (!Reply)
      return Reply.takeError();
    return convert<T>(*Reply);
  }

  /// \p Reply, which this runner gave, as T: Advice::get(), whose errors then
  /// say whose answer it was.
  template <typename T> Expected<T> convert(const Advice &Reply) const {
    Expected<T> Result = Reply.get<T>();
    if (!Result)
      return withName(Result.takeError());
    return Result;
  }

  /// The request without the pass's conveniences: asks about \p Features,
  /// leaves them as they are. The views in the answer are valid until the next
  /// call.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted);
  /// The same with a deadline of the caller's, for decorators: they pass their
  /// own on to the runner that they decorate.
  Expected<Advice> ask(const FeatureSet &Features, const AdviceSpec &Wanted,
                       Deadline Until);

  /// Tells the runner what was done in the end, and how good it was: \p
  /// Decision is a `std::pair{Name, Value}`. Runners that learn or record use
  /// it; the others ignore it.
  template <typename Name, typename T>
  Error logOutcome(const std::pair<Name, T> &Decision,
                   std::optional<double> Reward = std::nullopt) {
    Decided.clear();
    Decided.set(std::string_view(Decision.first), Decision.second);
    if (Decided.error())
      return Decided.error();
    return logOutcomeUntyped(&Decided.tensors().front(), Reward);
  }
  /// For a decision that was the model's own: only the reward is new.
  Error logOutcome(double Reward) { return logOutcomeUntyped(nullptr, Reward); }

  /// Names what the next requests are about (a module, a function); it ends
  /// up in logs.
  virtual void switchContext(std::string_view Name);

  /// The runner and its peer for messages: "pipe:/tmp/advisor (bitstream)".
  virtual std::string describe() const = 0;

  /// What the model's file says of itself under \p Key
  /// (docs/model-metadata.md), such as "mlbridge.vocabulary"; nothing where it
  /// says nothing, or where there is no file in this process. Loads the model
  /// if need be.
  virtual Expected<std::optional<std::string>> metadata(std::string_view Key);

  /// Writes what the runner keeps back of the requests so far, as
  /// RecordModelRunner does. The destructor writes it too, but can only print a
  /// failure: call this before, where nothing may be lost in silence.
  virtual Error flush();

  /// Called by evaluate() before the process ends with status 1. The default
  /// prints the error to stderr.
  void setErrorHandler(ErrorHandler Handler);
  /// How long one evaluate may take in all; where the model has to be met
  /// first, how long it may take then.
  void setTimeout(Duration Wait) { Timeout = Wait; }
  Duration timeout() const { return Timeout; }

  virtual Error logOutcomeUntyped(const TensorView *Decision,
                                  std::optional<double> Reward);

protected:
  MLModelRunner() = default;

  /// Answers one request before \p Until. \p Wanted is what the caller will
  /// convert the advice to: a hint, the conversion itself is not the runner's
  /// affair. The advice's views must be valid until the next call.
  virtual Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                           const AdviceSpec &Wanted,
                                           Deadline Until) = 0;

private:
  [[noreturn]] void fail(const Error &E) const;
  /// \p E, which says what is wrong with an answer, and whose it was.
  Error withName(const Error &E) const;

  FeatureSet Features;
  /// A member, so that its memory is there for the next outcome.
  FeatureSet Decided;
  ErrorHandler OnError;
  Duration Timeout = DefaultTimeout;
};

/// The runner that \p Spec names, such as `pipe:/tmp/advisor?serdes=json` or
/// `record:log.bin|pipe:/tmp/advisor`: see docs/model-specs.md for all of them.
/// No connection is made before the first request. By a RunnerFactory of its
/// own, so a model in this process is loaded for this runner alone.
Expected<std::unique_ptr<MLModelRunner>>
createModelRunner(std::string_view Spec);
/// The same of a variable of the environment, which may be null.
Expected<std::unique_ptr<MLModelRunner>> createModelRunner(const char *Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_MLMODELRUNNER_H
