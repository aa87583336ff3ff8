//===- AdviceTest.cpp - The reply of a model ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the conversions of Advice: every pair of types, at every edge value,
/// against an independent implementation of the rules.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Advice.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

using namespace MLBridge;
using testing::ElementsAre;
using testing::HasSubstr;

/// A reply with the single tensor "x".
template <typename T> static FeatureSet adviceOf(const T &Value) {
  FeatureSet F;
  F.set("x", Value);
  EXPECT_FALSE(F.error()) << F.error().str();
  return F;
}

template <typename To, typename From>
static Expected<To> convert(const From &Value) {
  FeatureSet F = adviceOf(Value);
  return Advice(F.tensors()).get<To>();
}

/// "ok", or the name of the error's code.
template <typename To, typename From>
static std::string_view outcome(const From &Value) {
  Expected<To> Result = convert<To>(Value);
  return Result ? "ok" : errorCodeName(Result.code());
}

//===----------------------------------------------------------------------===//
// Conversions of numbers
//===----------------------------------------------------------------------===//

// The independent implementation computes in long double. With a 64-bit
// significand, it holds every value of every element type exactly.
static_assert(std::numeric_limits<long double>::digits >= 64);

/// Returns \p Value converted by the rules of Advice.h, or nothing if the rules
/// refuse the value.
template <typename To, typename From>
static std::optional<long double> expected(From Value) {
  auto Exact = static_cast<long double>(Value);
  if constexpr (std::is_same_v<To, bool>) {
    return Exact == 0 || Exact == 1 ? std::optional(Exact) : std::nullopt;
  } else if constexpr (std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(Exact) || std::isinf(Exact) || std::trunc(Exact) != Exact ||
        Exact < static_cast<long double>(Limits::min()) ||
        Exact > static_cast<long double>(Limits::max()))
      return std::nullopt;
    return Exact;
  } else {
    auto Rounded = static_cast<long double>(static_cast<To>(Exact));
    if (std::is_floating_point_v<From>)
      return std::isinf(Rounded) && !std::isinf(Exact) ? std::nullopt
                                                       : std::optional(Rounded);
    return Rounded == Exact ? std::optional(Exact) : std::nullopt;
  }
}

/// Returns the values around the limits of all element types, as far as T can
/// hold them.
template <typename T> static std::vector<T> edges() {
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else {
    std::vector<T> Values = {0, 1, 2};
    for (int Bit = 1; Bit <= 64; ++Bit)
      for (long double Offset : {-1.0L, 0.0L, 1.0L})
        for (long double Sign : {-1.0L, 1.0L}) {
          long double Value = Sign * (std::ldexp(1.0L, Bit) + Offset);
          if (std::is_floating_point_v<T> ||
              (Value >=
                   static_cast<long double>(std::numeric_limits<T>::min()) &&
               Value <=
                   static_cast<long double>(std::numeric_limits<T>::max())))
            Values.push_back(static_cast<T>(Value));
        }
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      for (T Value :
           {T(0.5), T(1.5), T(0.1), Limits::max(), Limits::min(),
            Limits::denorm_min(), Limits::infinity(), T(1e30), T(254.999)})
        for (T Sign : {T(-1), T(1)})
          Values.push_back(Sign * Value);
      Values.push_back(Limits::quiet_NaN());
    }
    if constexpr (std::is_same_v<T, double>) {
      // Around the largest float, up to the values that still round to it.
      double Largest = std::numeric_limits<float>::max();
      Values.insert(Values.end(),
                    {Largest, std::nextafter(Largest, 1e300),
                     Largest + std::ldexp(1.0, 102),
                     Largest + std::ldexp(1.0, 103), 1e300, 1e-300});
    }
    return Values;
  }
}

template <typename From, typename To> static void checkPair() {
  for (From Value : edges<From>()) {
    Expected<To> Found = convert<To>(Value);
    std::optional<long double> Wanted = expected<To>(Value);
    auto Case = testing::Message()
                << elementTypeName(*elementTypeOf<From>()) << " "
                << static_cast<long double>(Value) << " as "
                << elementTypeName(*elementTypeOf<To>());
    ASSERT_EQ(bool(Found), Wanted.has_value()) << Case << Found.message();
    if (!Found)
      EXPECT_EQ(Found.code(), ErrorCode::SchemaMismatch) << Case;
    else if (std::isnan(*Wanted))
      EXPECT_TRUE(std::isnan(static_cast<long double>(*Found))) << Case;
    else
      EXPECT_EQ(static_cast<long double>(*Found), *Wanted) << Case;

    // The same value must convert equally as the second element of a vector.
    Expected<std::vector<To>> List =
        convert<std::vector<To>>(std::vector<From>{From(1), Value});
    ASSERT_EQ(bool(List), Wanted.has_value()) << Case;
    if (!List) {
      EXPECT_THAT(std::string(List.message()), HasSubstr("element 1")) << Case;
    } else if (!std::isnan(*Wanted)) {
      EXPECT_EQ(static_cast<long double>((*List)[0]), 1) << Case;
      EXPECT_EQ(static_cast<long double>((*List)[1]), *Wanted) << Case;
    }
  }
}

template <typename From> static void checkFrom() {
  checkPair<From, std::int8_t>();
  checkPair<From, std::int16_t>();
  checkPair<From, std::int32_t>();
  checkPair<From, std::int64_t>();
  checkPair<From, std::uint8_t>();
  checkPair<From, std::uint16_t>();
  checkPair<From, std::uint32_t>();
  checkPair<From, std::uint64_t>();
  checkPair<From, float>();
  checkPair<From, double>();
  checkPair<From, bool>();
}

namespace {
template <typename T> class AdviceConversion : public testing::Test {};
} // namespace
using AllTypes =
    testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                   float, double, bool>;
TYPED_TEST_SUITE(AdviceConversion, AllTypes);

TYPED_TEST(AdviceConversion, KeepsTheValueOrFails) { checkFrom<TypeParam>(); }

TEST(AdviceTest, DocumentedExamples) {
  EXPECT_EQ(*convert<int>(std::int64_t(5)), 5);
  EXPECT_EQ(outcome<std::int8_t>(std::int64_t(300)), "SchemaMismatch");
  EXPECT_EQ(*convert<int>(1.0), 1);
  EXPECT_EQ(outcome<int>(0.5), "SchemaMismatch");
  EXPECT_EQ(*convert<float>(0.1), 0.1F);
  EXPECT_EQ(*convert<bool>(1), true);
  EXPECT_EQ(outcome<bool>(2), "SchemaMismatch");
  EXPECT_EQ(*convert<double>(true), 1.0);
}

TEST(AdviceTest, AMismatchSaysWhichElementAndWhy) {
  EXPECT_EQ(convert<std::int8_t>(300).message(),
            "advice 'x': element 0 of int32_t is 300, which int8_t cannot "
            "represent");
  EXPECT_EQ(convert<std::vector<int>>(std::vector<float>{1, 0.5F}).message(),
            "advice 'x': element 1 of float[2] is 0.5, which int32_t "
            "cannot represent");
}

TEST(AdviceTest, OneElementMeansOne) {
  EXPECT_EQ(*convert<int>(std::vector<int>{7}), 7) << "whatever its rank";
  Expected<float> Three = convert<float>(std::vector<float>{1, 2, 3});
  EXPECT_EQ(Three.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(Three.message(), "advice 'x': expected float, found float[3]");
  EXPECT_EQ(convert<std::int64_t>(std::vector<float>{1, 2}).message(),
            "advice 'x': expected int64_t, found float[2]; if these are "
            "scores, export the model with --decide argmax:x, or add "
            "?decide=argmax to the spec of a model file");
  EXPECT_EQ(convert<int>(std::vector<int>{1, 2}).message(),
            "advice 'x': expected int32_t, found int32_t[2]");
  EXPECT_EQ(outcome<int>(std::vector<int>()), "SchemaMismatch");
  EXPECT_THAT(*convert<std::vector<int>>(7), ElementsAre(7));
  EXPECT_THAT(*convert<std::vector<int>>(std::vector<int>()), ElementsAre());
}

TEST(AdviceTest, DataMayBeUnaligned) {
  const double Values[] = {1, 2, 3};
  char Bytes[sizeof(Values) + 1];
  std::memcpy(Bytes + 1, Values, sizeof(Values));
  TensorView View;
  View.Name = "x";
  View.Type = ElementType::Double;
  View.Dims = {3};
  View.Data = Bytes + 1;
  View.NumBytes = sizeof(Values);
  Advice A({&View, 1});
  EXPECT_THAT(*A.get<std::vector<double>>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(*A.get<std::vector<int>>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(A.get<Span<const double>>().code(), ErrorCode::SchemaMismatch);
}

TEST(AdviceTest, ABoolIs0Or1) {
  const std::uint8_t Bytes[] = {0, 1, 7};
  TensorView View;
  View.Name = "x";
  View.Type = ElementType::Bool;
  View.Dims = {3};
  View.Data = Bytes;
  View.NumBytes = 3;
  Advice A({&View, 1});
  Expected<std::vector<bool>> Bools = A.get<std::vector<bool>>();
  EXPECT_EQ(Bools.code(), ErrorCode::Malformed);
  EXPECT_EQ(Bools.message(), "advice 'x': expected a bool of 0 or 1, found 7");
  EXPECT_EQ(A.get<std::vector<int>>().code(), ErrorCode::Malformed);
  View.Dims = {2};
  View.NumBytes = 2;
  EXPECT_THAT(*A.get<std::vector<bool>>(), ElementsAre(false, true));
  EXPECT_THAT(*A.get<std::vector<int>>(), ElementsAre(0, 1));
}

//===----------------------------------------------------------------------===//
// Spans and strings
//===----------------------------------------------------------------------===//

TEST(AdviceTest, SpansViewInPlace) {
  FeatureSet F = adviceOf(std::vector<float>{1, 2});
  Advice A(F.tensors());
  Expected<Span<const float>> View = A.get<Span<const float>>();
  ASSERT_TRUE(View);
  EXPECT_EQ(View->data(), F.tensors()[0].Data);
  EXPECT_EQ(View->size(), 2U);
  EXPECT_EQ(A.get<Span<const double>>().message(),
            "advice 'x': expected a view of double, found float[2]");
}

TEST(AdviceTest, Strings) {
  EXPECT_EQ(*convert<std::string>("text"), "text");
  EXPECT_EQ(*convert<std::string>(""), "");
  EXPECT_EQ(*convert<std::string>(std::vector<std::string>{"one"}), "one");
  EXPECT_THAT(*convert<std::vector<std::string>>("text"), ElementsAre("text"));
  EXPECT_THAT(*convert<std::vector<std::string>>(
                  std::vector<std::string>{"", "two", ""}),
              ElementsAre("", "two", ""));
  EXPECT_THAT(*convert<std::vector<std::string>>(std::vector<std::string>()),
              ElementsAre());
}

TEST(AdviceTest, StringsAreNoNumbers) {
  EXPECT_EQ(convert<std::string>(5).message(),
            "advice 'x': expected string, found int32_t");
  EXPECT_EQ(convert<std::string>(std::vector<std::string>{"a", "b"}).message(),
            "advice 'x': expected string, found string[2]");
  EXPECT_EQ(convert<int>("5").message(),
            "advice 'x': expected int32_t, found string");
  EXPECT_EQ(convert<std::vector<int>>("5").code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(convert<std::vector<bool>>("5").code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(convert<Span<const std::uint8_t>>("5").code(),
            ErrorCode::SchemaMismatch);
  EXPECT_EQ(convert<std::vector<std::string>>(5).message(),
            "advice 'x': expected a list of strings, found int32_t");
}

TEST(AdviceTest, WrongLengthsAreMalformed) {
  const std::uint64_t Lengths[] = {2, std::uint64_t(-1)};
  TensorView View;
  View.Name = "x";
  View.Type = ElementType::String;
  View.Dims = {2};
  View.Data = "abcdef";
  View.NumBytes = 6;
  View.Lengths = Lengths;
  EXPECT_EQ(Advice({&View, 1}).get<std::vector<std::string>>().code(),
            ErrorCode::Malformed);
}

//===----------------------------------------------------------------------===//
// Several outputs
//===----------------------------------------------------------------------===//

TEST(AdviceTest, OutputsByName) {
  FeatureSet F;
  F.set("register", 3);
  F.set("spill", std::vector<bool>{true, false});
  Advice A(F.tensors());
  EXPECT_EQ(A.size(), 2U);
  EXPECT_EQ(*A.get<int>("register"), 3);
  EXPECT_THAT(*A.get<std::vector<bool>>("spill"), ElementsAre(true, false));
  Expected<int> None = A.get<int>("colour");
  EXPECT_EQ(None.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(None.message(), "advice: expected an output 'colour', found "
                            "'register' int32_t, 'spill' bool[2]");
  EXPECT_EQ(A.get<int>().message(),
            "advice: expected one output or one called 'out', found "
            "'register' int32_t, 'spill' bool[2]");

  F.set("out", 9);
  EXPECT_EQ(*Advice(F.tensors()).get<int>(), 9);
  EXPECT_EQ(Advice().get<int>().message(),
            "advice: expected one output or one called 'out', found nothing");
  EXPECT_EQ(Advice(F.tensors()).get<Advice>()->size(), 3U);
}

template <typename T>
static constexpr bool isSpec(AdviceSpec::Form Form, ElementType Type) {
  AdviceSpec Spec = AdviceSpec::of<T>();
  return Spec.Wanted == Form && Spec.Type == Type;
}

TEST(AdviceTest, SpecsHaveFormAndType) {
  using Form = AdviceSpec::Form;
  EXPECT_TRUE(isSpec<bool>(Form::Scalar, ElementType::Bool));
  EXPECT_TRUE(isSpec<float>(Form::Scalar, ElementType::Float));
  EXPECT_TRUE(isSpec<std::string>(Form::Scalar, ElementType::String));
  EXPECT_TRUE(isSpec<std::vector<bool>>(Form::List, ElementType::Bool));
  EXPECT_TRUE(isSpec<Span<const double>>(Form::List, ElementType::Double));
  EXPECT_TRUE(
      isSpec<std::vector<std::string>>(Form::List, ElementType::String));
  EXPECT_EQ(AdviceSpec::of<Advice>().Wanted, Form::Any);
}
