//===- TensorTest.cpp - Types, shapes, spans, views, deadlines ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the value types that FeatureSet and Advice use.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Tensor.h"

#include "MLCompilerBridge/Deadline.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <vector>

using namespace MLBridge;

TEST(ElementTypeTest, NamesAreLLVMs) {
  std::pair<ElementType, std::string_view> Names[] = {
      {ElementType::Int8, "int8_t"},     {ElementType::Int16, "int16_t"},
      {ElementType::Int32, "int32_t"},   {ElementType::Int64, "int64_t"},
      {ElementType::UInt8, "uint8_t"},   {ElementType::UInt16, "uint16_t"},
      {ElementType::UInt32, "uint32_t"}, {ElementType::UInt64, "uint64_t"},
      {ElementType::Float, "float"},     {ElementType::Double, "double"},
      {ElementType::Bool, "bool"},       {ElementType::String, "string"},
  };
  for (auto [Type, Name] : Names) {
    EXPECT_EQ(elementTypeName(Type), Name);
    EXPECT_EQ(parseElementType(Name), Type);
  }
  for (std::string_view Wrong : {"", "int", "Float", "float ", "int64"})
    EXPECT_EQ(parseElementType(Wrong), std::nullopt) << Wrong;
}

template <typename T> static constexpr bool hasType(ElementType Type) {
  return elementTypeOf<T>() == Type && elementSize(Type) == sizeof(T);
}

TEST(ElementTypeTest, OfEachCxxType) {
  EXPECT_TRUE(hasType<std::int8_t>(ElementType::Int8));
  EXPECT_TRUE(hasType<std::int16_t>(ElementType::Int16));
  EXPECT_TRUE(hasType<std::int32_t>(ElementType::Int32));
  EXPECT_TRUE(hasType<std::int64_t>(ElementType::Int64));
  EXPECT_TRUE(hasType<std::uint8_t>(ElementType::UInt8));
  EXPECT_TRUE(hasType<std::uint16_t>(ElementType::UInt16));
  EXPECT_TRUE(hasType<std::uint32_t>(ElementType::UInt32));
  EXPECT_TRUE(hasType<std::uint64_t>(ElementType::UInt64));
  EXPECT_TRUE(hasType<float>(ElementType::Float));
  EXPECT_TRUE(hasType<double>(ElementType::Double));
  EXPECT_TRUE(hasType<bool>(ElementType::Bool));
  // All C++ types of one size and kind have the same ElementType.
  EXPECT_TRUE(hasType<long>(ElementType::Int64));
  EXPECT_TRUE(hasType<long long>(ElementType::Int64));
  EXPECT_TRUE(hasType<unsigned long long>(ElementType::UInt64));
  EXPECT_FALSE(IsElement<std::string>);
  EXPECT_FALSE(IsElement<long double>);
  EXPECT_FALSE(IsElement<int *>);
}

TEST(ShapeTest, NumElements) {
  constexpr std::int64_t Huge = std::int64_t(1) << 62;
  constexpr std::int64_t Most = (std::int64_t(1) << 60) - 1;
  EXPECT_EQ(Shape().numElements(), 1U);
  EXPECT_EQ(Shape({7}).numElements(), 7U);
  EXPECT_EQ(Shape({3, 4}).numElements(), 12U);
  EXPECT_EQ(Shape({0}).numElements(), 0U);
  EXPECT_EQ(Shape({Huge, 0}).numElements(), std::nullopt)
      << "NumPy would refuse this";
  EXPECT_EQ(Shape({0, Most}).numElements(), 0U);
  EXPECT_EQ(Shape({0, Most, 2}).numElements(), std::nullopt);
  EXPECT_EQ(Shape({Huge, Huge}).numElements(), std::nullopt);
  EXPECT_EQ(Shape({Huge, 2}).numElements(), std::nullopt);
  EXPECT_EQ(Shape({-1}).numElements(), std::nullopt);
  EXPECT_EQ(Shape({0, -1}).numElements(), std::nullopt);
  EXPECT_EQ(Shape({Most}).numElements(), std::size_t(Most));
  EXPECT_EQ(Shape({Most + 1}).numElements(), std::nullopt);
}

TEST(ShapeTest, HasAtMostMaxRankExtents) {
  Shape S;
  for (std::size_t I = 0; I < Shape::MaxRank; ++I)
    EXPECT_TRUE(S.push(2));
  EXPECT_FALSE(S.push(2));
  EXPECT_EQ(S.rank(), Shape::MaxRank);
  EXPECT_EQ(S.numElements(), 256U);
}

TEST(ShapeTest, Text) {
  EXPECT_EQ(Shape().str(), "[]");
  EXPECT_EQ(Shape({5}).str(), "[5]");
  EXPECT_EQ(Shape({3, 0, -1}).str(), "[3,0,-1]");
}

TEST(ShapeTest, Equality) {
  EXPECT_EQ(Shape({3, 4}), Shape({3, 4}));
  EXPECT_NE(Shape({3, 4}), Shape({4, 3}));
  EXPECT_NE(Shape({1}), Shape());
}

TEST(SpanTest, ComesFromAnythingContiguous) {
  std::vector<int> Vector = {1, 2, 3};
  const std::array<int, 2> Array = {4, 5};
  int Plain[] = {6};
  auto Sum = [](Span<const int> S) {
    int Total = 0;
    for (int I : S)
      Total += I;
    return Total;
  };
  EXPECT_EQ(Sum(Vector), 6);
  EXPECT_EQ(Sum(Array), 9);
  EXPECT_EQ(Sum(Plain), 6);
  EXPECT_EQ(Sum(std::span<const int>(Vector).subspan(1)), 5);
  EXPECT_EQ(Sum({}), 0);

  Span<int> Writable = Vector;
  Writable[0] = 10;
  EXPECT_EQ(Vector[0], 10);
  EXPECT_EQ(Sum(Writable.subspan(1)), 5);
  EXPECT_EQ(Sum(Writable.subspan(1, 1)), 2);
  EXPECT_EQ(Writable.subspan(3).size(), 0U);
}

TEST(TensorViewTest, AsGivesElementsInPlace) {
  alignas(8) const float Data[] = {1, 2, 3};
  TensorView View;
  View.Type = ElementType::Float;
  View.Dims = {3};
  View.Data = Data;
  View.NumBytes = sizeof(Data);
  EXPECT_EQ(View.numElements(), 3U);
  EXPECT_EQ(View.typeStr(), "float[3]");

  auto Floats = View.as<float>();
  ASSERT_TRUE(Floats);
  EXPECT_EQ(Floats->data(), Data);
  EXPECT_EQ(Floats->size(), 3U);
  EXPECT_FALSE(View.as<double>());
  EXPECT_FALSE(View.as<int>());

  View.Data = reinterpret_cast<const char *>(Data) + 1;
  View.NumBytes = 8;
  EXPECT_FALSE(View.as<float>()) << "not aligned";
}

TEST(DeadlineTest, NeverNeverComes) {
  for (Deadline Never : {Deadline::never(), Deadline::in(Duration::max())}) {
    EXPECT_TRUE(Never.isNever());
    EXPECT_FALSE(Never.expired());
    EXPECT_EQ(Never.remaining(), Duration::max());
    EXPECT_EQ(Never.pollTimeout(), -1);
  }
}

TEST(DeadlineTest, ComesInTime) {
  Deadline Now = Deadline::in(Duration::zero());
  EXPECT_TRUE(Now.expired());
  EXPECT_EQ(Now.remaining(), Duration::zero());
  EXPECT_EQ(Now.pollTimeout(), 0);

  Deadline Later = Deadline::in(std::chrono::hours(1));
  EXPECT_FALSE(Later.expired());
  EXPECT_LE(Later.remaining(), std::chrono::hours(1));
  EXPECT_GT(Later.remaining(), std::chrono::minutes(59));
  EXPECT_TRUE(Later.orEarlier(Now).expired());
  EXPECT_FALSE(Deadline::never().orEarlier(Later).isNever());
  // The remaining time is rounded up, because a poll must not wake early.
  EXPECT_EQ(Deadline::in(std::chrono::hours(24 * 365)).pollTimeout(), 1 << 30);
}

namespace {
/// Requests an interrupt after \p Most queries.
struct CountedInterrupt final : Interrupt {
  explicit CountedInterrupt(int Most) : Most(Most) {}
  bool isRequested() override { return ++Asked > Most; }

  int Most;
  int Asked = 0;
};
} // namespace

TEST(DeadlineTest, AnInterruptEndsItEarlier) {
  const int Slice = static_cast<int>(Interrupt::Interval.count());
  for (Deadline Until :
       {Deadline::never(), Deadline::in(std::chrono::hours(1))}) {
    CountedInterrupt Stop(2);
    Deadline Interrupted = Until.unless(Stop);
    EXPECT_EQ(Interrupted.isNever(), Until.isNever());
    EXPECT_EQ(Interrupted.pollTimeout(), Slice);
    EXPECT_LE(Interrupted.nextLook().remaining(), Interrupt::Interval);
    EXPECT_EQ(Stop.Asked, 0);
    EXPECT_FALSE(Interrupted.expired());
    EXPECT_FALSE(Interrupted.isInterrupted());
    EXPECT_TRUE(Interrupted.expired());
    EXPECT_TRUE(Interrupted.isInterrupted());
    EXPECT_FALSE(Until.expired()) << "the original has no interrupt";
  }
}

TEST(DeadlineTest, DerivedDeadlinesKeepTheInterrupt) {
  CountedInterrupt Stop(0);
  Deadline Until = Deadline::in(std::chrono::hours(1)).unless(Stop);
  EXPECT_TRUE(Until.restartedFor(Duration::max()).isInterrupted());
  EXPECT_TRUE(Until.restartedFor(Duration::max()).isNever());
  EXPECT_TRUE(Until.orEarlier(Deadline::never()).isInterrupted());
  EXPECT_TRUE(Until.nextLook().isInterrupted());
}

TEST(DeadlineTest, AnInterruptDoesNotDelayANearDeadline) {
  CountedInterrupt Stop(1000);
  Deadline Until = Deadline::in(std::chrono::milliseconds(3)).unless(Stop);
  EXPECT_LE(Until.pollTimeout(), 3);
  EXPECT_LE(Until.nextLook().remaining(), std::chrono::milliseconds(3));
  EXPECT_FALSE(Deadline::never().isInterrupted());
  EXPECT_TRUE(Deadline::never().nextLook().isNever());
}
