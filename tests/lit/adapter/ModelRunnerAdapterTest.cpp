//===- ModelRunnerAdapterTest.cpp - LLVM's interface to a runner ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ModelRunnerAdapter in the ways in which LLVM's own advisors use it:
/// evaluate<T>() for every type, and its failures. The inliner uses only a part
/// of this.
///
//===----------------------------------------------------------------------===//

#include "Support/ModelRunnerAdapter.h"

#include "support/AllocationCounter.h"
#include "unit/FunctionRunner.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

using namespace MLBridge;
using MLBridge::test::AllocationCounter;
using MLBridge::test::FunctionRunner;

namespace {

/// An LLVMContext that stores errors instead of ending the process.
class Context {
public:
  Context() {
    LLVM.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *Info, void *Errors) {
          llvm::raw_string_ostream Stream(*static_cast<std::string *>(Errors));
          llvm::DiagnosticPrinterRawOStream Printer(Stream);
          Info->print(Printer);
        },
        &Errors);
  }
  llvm::LLVMContext LLVM;
  std::string Errors;
};

std::vector<llvm::TensorSpec> inputs() {
  return {llvm::TensorSpec::createSpec<int64_t>("cost", {1}),
          llvm::TensorSpec::createSpec<float>("embedding", {2, 3})};
}

template <typename T> llvm::TensorSpec advice(std::vector<int64_t> Shape) {
  return llvm::TensorSpec::createSpec<T>("decision", Shape);
}

TEST(ModelRunnerAdapter, LendsItsBuffers) {
  Context C;
  std::vector<std::string> Seen;
  FunctionRunner Runner([&](const FeatureSet &Features, Deadline, auto &Out) {
    for (const TensorView &View : Features.tensors())
      Seen.push_back(std::string(View.Name) + ":" + View.typeStr());
    auto Cost = Features.find("cost")->as<std::int64_t>();
    auto Embedding = Features.find("embedding")->as<float>();
    Out.set("decision", std::accumulate(Embedding->begin(), Embedding->end(),
                                        float((*Cost)[0])));
    return Error::success();
  });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<float>({1}), "");
  *Adapter.getTensor<int64_t>(0) = 100;
  for (int I = 0; I < 6; ++I)
    Adapter.getTensor<float>(1)[I] = 1;
  EXPECT_EQ(Adapter.evaluate<float>(), 106);
  EXPECT_EQ(Seen, (std::vector<std::string>{"cost:int64_t[1]",
                                            "embedding:float[2,3]"}));
  *Adapter.getTensor<int64_t>(0) = -6;
  EXPECT_EQ(Adapter.evaluate<float>(), 0);
  EXPECT_EQ(C.Errors, "");
}

TEST(ModelRunnerAdapter, AllocatesNothingOnceWarm) {
  Context C;
  FunctionRunner Runner([](const FeatureSet &Features, Deadline, auto &Out) {
    Out.set("decision", (*Features.find("cost")->as<std::int64_t>())[0] + 1);
    return Error::success();
  });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<int64_t>({1}),
                             "");
  std::int64_t Value = Adapter.evaluate<std::int64_t>();
  AllocationCounter Allocations;
  for (int I = 0; I < 100; ++I) {
    *Adapter.getTensor<int64_t>(0) = Value;
    Value = Adapter.evaluate<std::int64_t>();
    *Adapter.getTensor<int64_t>(0) = Value;
    Value = *Adapter.tryEvaluate<std::int64_t>();
  }
  EXPECT_EQ(Allocations.count(), 0U);
  EXPECT_EQ(Value, 201);
}

/// Expects \p Reply as an integer, whatever the type of LLVM's advice tensor
/// is.
template <typename T> void expectAdviceOf(int Reply, const char *Failure) {
  Context C;
  FunctionRunner Runner([&](const FeatureSet &, Deadline, auto &Out) {
    Out.set("decision", Reply);
    return Error::success();
  });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<T>({1}), "pass");
  T Value = Adapter.evaluate<T>();
  if (Failure) {
    EXPECT_EQ(Value, T(0));
    EXPECT_NE(C.Errors.find(Failure), std::string::npos) << C.Errors;
  } else {
    EXPECT_EQ(Value, T(Reply));
    EXPECT_EQ(C.Errors, "");
  }
}

TEST(ModelRunnerAdapter, ConvertsTheAdvice) {
  expectAdviceOf<float>(7, nullptr);
  expectAdviceOf<double>(7, nullptr);
  expectAdviceOf<int8_t>(7, nullptr);
  expectAdviceOf<uint8_t>(7, nullptr);
  expectAdviceOf<int16_t>(7, nullptr);
  expectAdviceOf<uint16_t>(7, nullptr);
  expectAdviceOf<int32_t>(7, nullptr);
  expectAdviceOf<uint32_t>(7, nullptr);
  expectAdviceOf<int64_t>(-7, nullptr);
  expectAdviceOf<uint64_t>(7, nullptr);
}

TEST(ModelRunnerAdapter, ReportsAdviceThatDoesNotFit) {
  expectAdviceOf<uint8_t>(300, "pass: SchemaMismatch: ");
  expectAdviceOf<uint64_t>(-1, "pass: SchemaMismatch: ");
}

TEST(ModelRunnerAdapter, TakesAdviceOfSeveralElements) {
  Context C;
  std::vector<double> Reply = {1, 2, 3};
  FunctionRunner Runner([&](const FeatureSet &, Deadline, auto &Out) {
    Out.set("decision", Reply);
    return Error::success();
  });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<double>({3}),
                             "pass");
  using Triple = std::array<double, 3>;
  EXPECT_EQ(Adapter.evaluate<Triple>(), (Triple{1, 2, 3}));
  EXPECT_EQ(C.Errors, "");
  Reply.push_back(4);
  EXPECT_EQ(Adapter.evaluate<Triple>(), (Triple{0, 0, 0}));
  EXPECT_EQ(C.Errors, "pass: SchemaMismatch: function: advice 'decision': "
                      "expected 3 elements, found 4");
}

TEST(ModelRunnerAdapter, FailuresAreErrorsOfTheCompileOnlyIfUntyped) {
  Context C;
  FunctionRunner Runner([](const FeatureSet &, Deadline, auto &) {
    return Error(ErrorCode::Model, "no idea");
  });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<int64_t>({1}),
                             "pass");
  EXPECT_EQ(Adapter.tryEvaluate<std::int64_t>().code(), ErrorCode::Model);
  EXPECT_EQ(C.Errors, "");
  EXPECT_EQ(Adapter.evaluate<std::int64_t>(), 0);
  EXPECT_EQ(C.Errors, "pass: Model: no idea");
}

TEST(ModelRunnerAdapter, NamesContextsAndOutcomes) {
  Context C;
  FunctionRunner Runner(
      [](const FeatureSet &, Deadline, auto &) { return Error::success(); });
  ModelRunnerAdapter Adapter(C.LLVM, Runner, inputs(), advice<int64_t>({1}),
                             "pass:a.c");
  Adapter.switchContext("");
  Adapter.switchContext("main");
  EXPECT_EQ(Runner.Contexts,
            (std::vector<std::string>{"pass:a.c", "pass:a.c:main"}));
  EXPECT_FALSE(Adapter.logOutcome<std::int64_t>(1, 0.5));
  ASSERT_EQ(Runner.Outcomes.size(), 1U);
  EXPECT_EQ(Runner.Outcomes[0].first, "decision");
  EXPECT_EQ(Runner.Outcomes[0].second, 0.5);
}

} // namespace
