//===- ONNXOutputsTest.cpp - Outputs of ONNX models -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests outputs that are also inputs, and outputs that cannot become advice.
///
//===----------------------------------------------------------------------===//

#include "support/AllocationCounter.h"
#include "support/Child.h"
#include "support/ONNXTest.h"

#include <gmock/gmock.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {
using ONNXOutputsTest = ONNXTest;
} // namespace

TEST_F(ONNXOutputsTest, AnOutputMayBeTheRequestsInput) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {"n"})
      .node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}})
      .output("x", ElementType::Float, {"n"})
      .output("sum", ElementType::Float, {});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  // Short vectors are copied, long vectors are not. Some lengths come twice in
  // a row.
  for (std::size_t Length : {3, 3, 10'000, 10'000, 1, 0, 20'000, 20'000})
    for (float Value : {1.0f, 2.0f}) {
      SCOPED_TRACE(Length);
      auto Sent = std::make_unique<std::vector<float>>(Length, Value);
      Runner.populateFeatures(std::pair{"x", Span<const float>(*Sent)});
      Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
      ASSERT_TRUE(Reply) << Reply.message();
      const TensorView &Back = *Reply->find("x");
      // The memory of a borrowed feature may end with the request, so the reply
      // must be a copy.
      ASSERT_NE(Back.Data, Sent->data());
      Sent.reset();
      ASSERT_EQ(Back.Dims, Shape{std::int64_t(Length)});
      EXPECT_EQ(std::ranges::count(*Back.as<float>(), Value), Length);
      EXPECT_EQ(*Reply->get<float>("sum"), Value * float(Length));
    }
  std::vector<float> X(5, 3);
  EXPECT_LE(allocationsOnceWarm([&] {
              Runner.populateFeatures(std::pair{"x", Span<const float>(X)});
              EXPECT_TRUE(Runner.tryEvaluate<Advice>());
            }),
            // ONNX Runtime itself allocates: see ONNXModelRunnerTest.
            10 * 30U);
}

TEST_F(ONNXOutputsTest, AllOutputsMayBeInputs) {
  ONNXWriter Writer;
  Writer.input("words", ElementType::String, {"n"})
      .input("hot", ElementType::Bool, {})
      .output("hot", ElementType::Bool, {})
      .output("words", ElementType::String, {"n"});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  for (bool Hot : {true, false}) {
    const std::vector<std::string> Words{"a", "", Hot ? "hot" : "cold"};
    Runner.populateFeatures(std::pair{"words", Words}, std::pair{"hot", Hot});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply->get<bool>("hot"), Hot);
    EXPECT_EQ(*Reply->get<std::vector<std::string>>("words"), Words);
  }
}

TEST_F(ONNXOutputsTest, OutputsOfUnsupportedRankAreFreed) {
  if (!AllocationFailure::isPossible())
    GTEST_SKIP() << "sanitizers keep freed memory";
  ONNXWriter Writer;
  Writer
      .input("x", ElementType::Float, {"n"})
      // If the length of "shape" were fixed, the rank of "deep" would be known
      // at load time.
      .input("shape", ElementType::Int64, {"rank"})
      .node("Reshape", {"x", "shape"}, {"deep"})
      .node("Add", {"x", "x"}, {"twice"})
      .outputOfAnyRank("deep", ElementType::Float)
      .output("twice", ElementType::Float, {"n"});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  const std::vector<float> X(std::size_t(1) << 18, 1);
  const std::array<std::int64_t, 9> Deep{1, 1, 1, 1, 1, 1, 1, 1, -1};
  auto Ask = [&] {
    Runner.populateFeatures(std::pair{"x", Span<const float>(X)},
                            std::pair{"shape", Deep});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    EXPECT_EQ(Reply.code(), ErrorCode::Unsupported);
    EXPECT_THAT(std::string(Reply.message()),
                HasSubstr("output 'deep': expected a rank of at most 8, found "
                          "9"));
  };
  for (int I = 0; I < 10; ++I)
    Ask();
  const std::size_t Before = residentBytes();
  for (int I = 0; I < 100; ++I)
    Ask(); // The output "twice" has 1 MiB.
  EXPECT_LT(residentBytes(), Before + (std::size_t(30) << 20));
}
