//===- CostRuleModule.cpp - An inliner without a model --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MLBridge-cost-rule.so is the baseline of `mlbridge bench inliner`. The
/// runner `cost-rule` inlines a call if `cost_estimate < max(1, threshold)`,
/// without a request to a model. The runner `cost-rule+ask|SPEC` also sends a
/// request to the model SPEC, ignores the reply, and applies the same rule.
/// Both runners make the same decisions, so the difference between their
/// compile times is the cost of the requests.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Extend/RunnerModule.h"

#include <algorithm>

using namespace MLBridge;

namespace {

/// A feature that is one integer. The class remembers the feature's position
/// between requests.
class Feature {
public:
  explicit Feature(std::string_view Name) : Name(Name) {}

  Expected<std::int64_t> in(Span<const TensorView> Features) {
    if (Index >= Features.size() || Features[Index].Name != Name) {
      const TensorView *Found = std::ranges::find_if(
          Features, [&](const TensorView &F) { return F.Name == Name; });
      if (Found == Features.end())
        return Error(ErrorCode::SchemaMismatch,
                     "cost-rule: expected a feature '" + std::string(Name) +
                         "', found none of that name");
      Index = static_cast<std::size_t>(Found - Features.begin());
    }
    auto Values = Features[Index].as<std::int64_t>();
    if (!Values || Values->size() != 1)
      return Error(ErrorCode::SchemaMismatch,
                   "cost-rule: feature '" + std::string(Name) +
                       "': expected one int64_t, found " +
                       Features[Index].typeStr());
    return (*Values)[0];
  }

private:
  std::string_view Name;
  std::size_t Index = 0;
};

class CostRuleRunner final : public MLModelRunner {
public:
  /// Creates a runner that also sends its requests to \p Asked, unless \p Asked
  /// is null.
  explicit CostRuleRunner(std::unique_ptr<MLModelRunner> Asked)
      : Asked(std::move(Asked)) {}

  std::string describe() const override {
    return Asked ? "cost-rule+ask|" + Asked->describe() : "cost-rule";
  }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override {
    if (Asked)
      if (Error E = Asked->ask(Features, Wanted, Until).takeError())
        return E;
    Expected<std::int64_t> C = Cost.in(Features.tensors());
    if (!C)
      return C.takeError();
    Expected<std::int64_t> T = Threshold.in(Features.tensors());
    if (!T)
      return T.takeError();
    Reply.clear();
    Reply.set("inlining_decision",
              std::int64_t(*C < std::max(std::int64_t(1), *T)));
    return Advice(Reply.tensors());
  }

private:
  std::unique_ptr<MLModelRunner> Asked;
  Feature Cost{"cost_estimate"}, Threshold{"threshold"};
  FeatureSet Reply;
};

} // namespace

static void addCostRule(RunnerFactory &Factory) {
  Factory.add({"cost-rule",
               "cost-rule: inlines where the cost is below LLVM's threshold",
               [](const ModelSpec &, const RunnerFactory &)
                   -> Expected<std::unique_ptr<MLModelRunner>> {
                 return std::make_unique<CostRuleRunner>(nullptr);
               }});
  Factory.add({"cost-rule+ask",
               "cost-rule+ask|SPEC: asks SPEC, then decides as cost-rule",
               [](const ModelSpec &Spec, const RunnerFactory &Models)
                   -> Expected<std::unique_ptr<MLModelRunner>> {
                 auto Asked = Models.create(Spec.Inner);
                 if (!Asked)
                   return Asked.takeError();
                 return std::make_unique<CostRuleRunner>(std::move(*Asked));
               },
               /*IsDecorator=*/true});
}

MLBRIDGE_RUNNER_MODULE(addCostRule, nullptr)
