//===- Runner.cpp - Model runners for C -----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"
#include "C/CreateRunner.h"
#include "C/Elements.h"
#include "C/Handles.h"
#include "C/Schemes.h"

using namespace MLBridge;
using namespace MLBridge::C;

static_assert(MLBRIDGE_FOREVER == Duration::max().count());

//===----------------------------------------------------------------------===//
// Creating runners
//===----------------------------------------------------------------------===//

Error C::createRunner(const RunnerFactory &Factory, const char *Spec,
                      MLBridgeModelRunnerRef *Out) {
  if (!Spec)
    return isNull("Spec");
  if (!Out)
    return isNull("Runner");
  Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
  if (!Runner)
    return Runner.takeError();
  *Out = new MLBridgeOpaqueModelRunner(std::move(*Runner));
  return Error::success();
}

MLBridgeStatus mlbridgeCreateModelRunner(const char *Spec,
                                         MLBridgeModelRunnerRef *Runner) {
  return call([&] { return createRunner(makeRunnerFactory(), Spec, Runner); });
}

/// Returns \p Path, percent-encoded for a spec.
static std::string encoded(std::string_view Path) {
  std::string Text;
  for (char C : Path) {
    if (std::string_view("%?&=|").find(C) == std::string_view::npos) {
      Text += C;
      continue;
    }
    static constexpr char Digits[] = "0123456789ABCDEF";
    Text += {'%', Digits[C / 16], Digits[C % 16]};
  }
  return Text;
}

MLBridgeStatus mlbridgeCreateModelRunnerAt(const char *Scheme, const char *Path,
                                           const char *Options,
                                           MLBridgeModelRunnerRef *Runner) {
  return call([&]() -> Error {
    if (!Scheme)
      return isNull("Scheme");
    if (!Path)
      return isNull("Path");
    std::string Spec = std::string(Scheme) + ":" + encoded(Path);
    if (Options && *Options)
      Spec += "?" + std::string(Options);
    return createRunner(makeRunnerFactory(), Spec.c_str(), Runner);
  });
}

MLBridgeStatus mlbridgeCheckModelSpec(const char *Spec) {
  return call([&]() -> Error {
    return Spec ? makeRunnerFactory().check(Spec) : isNull("Spec");
  });
}

MLBridgeStatus mlbridgeFlush(MLBridgeModelRunnerRef Runner) {
  return call([&]() -> Error {
    return Runner ? Runner->Runner->flush() : isNull("Runner");
  });
}

void mlbridgeDisposeModelRunner(MLBridgeModelRunnerRef Runner) {
  delete Runner;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

MLBridgeFeatureSetRef mlbridgeGetFeatures(MLBridgeModelRunnerRef Runner) {
  return Runner ? &Runner->Request : nullptr;
}

/// Sends the runner's features to the model and returns the reply.
static Expected<Advice> ask(MLBridgeOpaqueModelRunner &Runner,
                            const AdviceSpec &Wanted) {
  if (Runner.Request.Misuse)
    return Runner.Request.Misuse;
  return Runner.Runner->ask(Runner.RequestSet, Wanted);
}

namespace {
/// Clears the features when a request ends, even if the request fails.
struct ClearRequest {
  MLBridgeOpaqueModelRunner &Runner;
  ~ClearRequest() { Runner.Request.clear(); }
};
} // namespace

/// Evaluates the model. \p Want is a function that returns an
/// Expected<AdviceSpec>.
template <typename Function>
static MLBridgeStatus evaluate(MLBridgeModelRunnerRef Runner, Function &&Want,
                               MLBridgeAdviceRef *Reply) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    ClearRequest Clear{*Runner};
    // Reset the last advice, because this request makes its views invalid.
    Runner->Reply.reset();
    if (!Reply)
      return isNull("Advice");
    Expected<AdviceSpec> Wanted = std::forward<Function>(Want)();
    if (!Wanted)
      return Wanted.takeError();
    Expected<Advice> Asked = ask(*Runner, *Wanted);
    if (!Asked)
      return Asked.takeError();
    Runner->Reply.reset(*Asked);
    *Reply = &Runner->Reply;
    return Error::success();
  });
}

MLBridgeStatus mlbridgeEvaluate(MLBridgeModelRunnerRef Runner,
                                MLBridgeAdviceRef *Reply) {
  return evaluate(
      Runner, [] { return Expected<AdviceSpec>(AdviceSpec::any()); }, Reply);
}

MLBridgeStatus mlbridgeEvaluateAs(MLBridgeModelRunnerRef Runner,
                                  MLBridgeForm Form, MLBridgeElementType Type,
                                  MLBridgeAdviceRef *Reply) {
  auto Want = [&]() -> Expected<AdviceSpec> {
    if (Form < MLBridgeFormAny || Form > MLBridgeFormVector)
      return Error(ErrorCode::InvalidArgument,
                   "expected an MLBridgeForm, found " +
                       std::to_string(int(Form)));
    Expected<ElementType> Wanted = elementType(Type);
    if (!Wanted)
      return Wanted.takeError();
    return AdviceSpec{static_cast<AdviceSpec::Form>(Form), *Wanted};
  };
  return evaluate(Runner, Want, Reply);
}

MLBridgeStatus mlbridgeSetTimeout(MLBridgeModelRunnerRef Runner,
                                  int64_t Nanoseconds) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    if (Nanoseconds < 0)
      return negativeTime(Nanoseconds);
    Runner->Runner->setTimeout(Duration(Nanoseconds));
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetTimeout(MLBridgeModelRunnerRef Runner,
                                  int64_t *Nanoseconds) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    if (!Nanoseconds)
      return isNull("Nanoseconds");
    *Nanoseconds = Runner->Runner->timeout().count();
    return Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Outcomes and contexts
//===----------------------------------------------------------------------===//

MLBridgeFeatureSetRef mlbridgeGetDecision(MLBridgeModelRunnerRef Runner) {
  return Runner ? &Runner->Decision : nullptr;
}

static Error logOutcome(MLBridgeOpaqueModelRunner &Runner,
                        const double *Reward) {
  if (Runner.Decision.Misuse)
    return Runner.Decision.Misuse;
  const Span<const TensorView> Decided = Runner.DecisionSet.tensors();
  if (Decided.size() > 1)
    return {ErrorCode::InvalidArgument,
            "expected one decision, found " + std::to_string(Decided.size())};
  return Runner.Runner->logOutcomeUntyped(
      Decided.empty() ? nullptr : &Decided.front(),
      Reward ? std::optional(*Reward) : std::nullopt);
}

MLBridgeStatus mlbridgeLogOutcome(MLBridgeModelRunnerRef Runner,
                                  const double *Reward) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    Error E = logOutcome(*Runner, Reward);
    Runner->Decision.clear();
    return E;
  });
}

MLBridgeStatus mlbridgeSwitchContext(MLBridgeModelRunnerRef Runner,
                                     const char *Name) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    if (!Name)
      return isNull("Name");
    Runner->Runner->switchContext(Name);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeDescribeModelRunner(MLBridgeModelRunnerRef Runner,
                                           const char **Text) {
  return call([&]() -> Error {
    if (!Runner)
      return isNull("Runner");
    if (!Text)
      return isNull("Text");
    Runner->Description = Runner->Runner->describe();
    *Text = Runner->Description.c_str();
    return Error::success();
  });
}
