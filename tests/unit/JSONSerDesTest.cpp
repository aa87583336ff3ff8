//===- JSONSerDesTest.cpp - Each message is a JSON object -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the JSON format: which bytes are written, which messages of this
/// library and of other programs can be read, and which are refused.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/JSONSerDes.h"

#include "MLCompilerBridge/FeatureSet.h"
#include "support/AllocationCounter.h"
#include "support/Messages.h"
#include "support/Sanitizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

template <typename T> using Limits = std::numeric_limits<T>;

Message written(BaseSerDes &Codec, const FeatureSet &Features) {
  Expected<Message> Result = serialize(Codec, Features.tensors());
  if (Result)
    return std::move(*Result);
  ADD_FAILURE() << Result.takeError().str();
  return Message(0);
}

std::string written(const FeatureSet &Features) {
  JSONSerDes Codec;
  return std::string(written(Codec, Features).text());
}

/// Returns the message with the single feature `x`.
template <typename T> std::string writtenValue(const T &Value) {
  FeatureSet Set;
  Set.set("x", Value);
  return written(Set);
}

/// The elements of \p Tensor as JSON writes them: `1,2.5`.
std::string elementsOf(TensorView Tensor) {
  Tensor.Name = "e";
  Tensor.Dims = {static_cast<std::int64_t>(Tensor.numElements())};
  JSONSerDes Codec;
  Codec.setDialect(BaseSerDes::Dialect::BareModel);
  Expected<Message> M = serialize(Codec, {&Tensor, 1});
  if (!M)
    return std::string(M.message());
  constexpr std::string_view Start = "{\"e\":[", End = "]}";
  return std::string(M->text().substr(
      Start.size(), M->text().size() - Start.size() - End.size()));
}

/// The contents of a message: `x float[2] 1,2.5; y string abc`.
std::string summary(Span<const TensorView> Tensors) {
  std::string Text;
  for (const TensorView &Tensor : Tensors) {
    if (!Text.empty())
      Text += "; ";
    Text += std::string(Tensor.Name) + " " + Tensor.typeStr();
    std::string_view Strings = Tensor.text();
    if (Tensor.isStringList()) {
      for (std::uint64_t Length : Tensor.Lengths) {
        Text += " " + std::string(Strings.substr(0, Length));
        Strings.remove_prefix(Length);
      }
    } else if (Tensor.Type == ElementType::String) {
      Text += " " + std::string(Strings);
    } else if (Tensor.numElements() != 0) {
      Text += " " + elementsOf(Tensor);
    }
  }
  return Text;
}

/// The summary of the message \p Text, or its error.
std::string read(std::string_view Text,
                 const AdviceSpec &Wanted = AdviceSpec::any()) {
  JSONSerDes Codec;
  Message M(Text);
  Expected<Span<const TensorView>> Tensors =
      Codec.deserialize(M.bytes(), Wanted);
  return Tensors ? summary(*Tensors) : Tensors.takeError().str();
}

FeatureSet manyTypes() {
  static const float Floats[] = {1, 2.5, -3};
  static const std::int16_t Shorts[] = {1, 2, 3, 4, 5, 6};
  FeatureSet Set;
  Set.set("flag", true);
  Set.set("count", -7);
  Set.set("floats", Span<const float>(Floats));
  Set.set("big", std::uint64_t(1) << 63);
  Set.set("matrix", TensorRef<std::int16_t>(Shorts, {2, 3}));
  Set.set("name", "foo");
  Set.set("names", std::vector<std::string>{"a", "", "bcd"});
  Set.set("rate", 0.5);
  Set.set("index", std::int64_t(5));
  return Set;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

TEST(JSONWriting, ValuesWithAnEvidentTypeNeedNoTypes) {
  EXPECT_EQ(written(FeatureSet()), "{}");
  EXPECT_EQ(writtenValue(std::int64_t(-5)), R"({"x":-5})");
  EXPECT_EQ(writtenValue(std::vector<std::int64_t>{1, 2}), R"({"x":[1,2]})");
  EXPECT_EQ(writtenValue(true), R"({"x":true})");
  EXPECT_EQ(writtenValue(std::vector<bool>{true, false}),
            R"({"x":[true,false]})");
  EXPECT_EQ(writtenValue("text"), R"({"x":"text"})");
  EXPECT_EQ(writtenValue(""), R"({"x":""})");
  EXPECT_EQ(writtenValue(std::vector<std::string>{"a", ""}),
            R"({"x":["a",""]})");
}

TEST(JSONWriting, OtherTypesAreDeclared) {
  EXPECT_EQ(writtenValue(1), R"({"_types":{"x":"int32_t"},"x":1})");
  EXPECT_EQ(writtenValue(std::uint8_t(1)),
            R"({"_types":{"x":"uint8_t"},"x":1})");
  EXPECT_EQ(writtenValue(std::vector<std::uint64_t>{1}),
            R"({"_types":{"x":"uint64_t"},"x":[1]})");
  EXPECT_EQ(writtenValue(0.5f), R"({"_types":{"x":"float"},"x":0.5})");
  EXPECT_EQ(writtenValue(1.0), R"({"_types":{"x":"double"},"x":1})");
}

TEST(JSONWriting, EmptyTensorsDeclareTheirShape) {
  EXPECT_EQ(writtenValue(std::vector<std::int64_t>()),
            R"({"_types":{"x":{"type":"int64_t","shape":[0]}},"x":[]})");
  EXPECT_EQ(writtenValue(std::vector<bool>()),
            R"({"_types":{"x":{"type":"bool","shape":[0]}},"x":[]})");
  EXPECT_EQ(writtenValue(std::vector<std::string>()),
            R"({"_types":{"x":{"type":"string","shape":[0]}},"x":[]})");
  // A tensor without elements has a short value, however large its other
  // extents are.
  EXPECT_EQ(writtenValue(TensorRef<float>({}, {1 << 30, 0})),
            R"({"_types":{"x":{"type":"float","shape":[1073741824,0]}},)"
            R"("x":[]})");
}

TEST(JSONWriting, TypesComeFirstAndFeaturesInOrder) {
  EXPECT_EQ(written(manyTypes()),
            R"({"_types":{"count":"int32_t","floats":"float","big":"uint64_t",)"
            R"("matrix":"int16_t","rate":"double"},"flag":true,"count":-7,)"
            R"("floats":[1,2.5,-3],"big":9223372036854775808,)"
            R"("matrix":[[1,2,3],[4,5,6]],"name":"foo","names":["a","","bcd"],)"
            R"("rate":0.5,"index":5})");
}

TEST(JSONWriting, NestedArrays) {
  const std::int64_t Elements[] = {1, 2, 3, 4};
  EXPECT_EQ(writtenValue(TensorRef<std::int64_t>(Elements, {2, 1, 2})),
            R"({"x":[[[1,2]],[[3,4]]]})");
}

TEST(JSONWriting, NumbersThatJSONLacks) {
  EXPECT_EQ(
      writtenValue(std::vector<float>{NAN, INFINITY, -INFINITY, -0.0f}),
      R"({"_types":{"x":"float"},"x":["NaN","Infinity","-Infinity",-0]})");
  EXPECT_EQ(writtenValue(-Limits<double>::infinity()),
            R"({"_types":{"x":"double"},"x":"-Infinity"})");
}

TEST(JSONWriting, TextIsEscapedMinimally) {
  EXPECT_EQ(writtenValue(std::string_view("\"\\/\b\f\n\r\t\0\x1f\x7f é日", 17)),
            R"({"x":"\"\\/\b\f\n\r\t\u0000\u001f)"
            "\x7f é日\"}");
  FeatureSet Set;
  Set.set("a\"\n", std::int8_t(1));
  EXPECT_EQ(written(Set), R"({"_types":{"a\"\n":"int8_t"},"a\"\n":1})");
}

TEST(JSONWriting, BareMessagesHaveNoTypes) {
  JSONSerDes Codec;
  Codec.setDialect(BaseSerDes::Dialect::BareModel);
  FeatureSet Set;
  Set.set("out", 1.5f);
  EXPECT_EQ(written(Codec, Set).text(), R"({"out":1.5})");
  Set.clear();
  Set.set("out", std::vector<std::int8_t>());
  EXPECT_EQ(written(Codec, Set).text(), R"({"out":[]})");
}

TEST(JSONWriting, ASmallRegionIsRefused) {
  JSONSerDes Codec;
  FeatureSet Set = manyTypes();
  for (const TensorView &Tensor : Set.tensors())
    Codec.setFeature(Tensor);
  Message Region(*Codec.getMaxSerializedSize() - 1);
  EXPECT_EQ(Codec.getSerializedData(Region.region()).code(),
            ErrorCode::InvalidArgument);
}

TEST(JSONWriting, ARefusedMessageDoesNotSpoilTheNext) {
  JSONSerDes Codec;
  FeatureSet Set = manyTypes();
  std::string Good(written(Codec, Set).text());
  TensorView Twins[] = {Set.tensors()[0], Set.tensors()[0]};
  for (int Round = 0; Round < 2; ++Round)
    EXPECT_THAT(std::string(serialize(Codec, Twins).message()),
                HasSubstr("'flag': appears twice"));
  EXPECT_EQ(written(Codec, Set).text(), Good);
}

TEST(JSONWriting, WhatJSONCannotHoldIsRefused) {
  JSONSerDes Codec;
  auto ErrorOf = [&](const FeatureSet &Set) {
    Expected<Message> Result = serialize(Codec, Set.tensors());
    EXPECT_FALSE(Result);
    Error E = Result.takeError();
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
    return E.message();
  };
  FeatureSet Set;
  Set.set("x", "\xff");
  EXPECT_EQ(ErrorOf(Set), "feature 'x': expected UTF-8, found other bytes");
  Set.clear();
  Set.set("x", std::vector<std::string>{"\xc3", "\xa9"});
  EXPECT_EQ(ErrorOf(Set), "feature 'x': expected UTF-8, found other bytes");
  Set.clear();
  Set.set("_types", 1);
  // Write twice, because the second message reuses the schema of the first.
  for (int Round = 0; Round < 2; ++Round)
    EXPECT_THAT(ErrorOf(Set), HasSubstr("'_types': JSON messages reserve"));
  Set.clear();
  Set.set("x", 1);
  EXPECT_EQ(written(Codec, Set).text(), R"({"_types":{"x":"int32_t"},"x":1})");
}

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

void expectRoundTrip(const FeatureSet &Set) {
  JSONSerDes Writer, Reader;
  Message M = written(Writer, Set);
  Expected<Span<const TensorView>> Tensors = Reader.deserialize(M.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(Set.tensors(), *Tensors), "") << M.text();
}

template <typename T> class JSONNumbers : public testing::Test {};
using Numbers = testing::Types<std::int8_t, std::int16_t, std::int32_t,
                               std::int64_t, std::uint8_t, std::uint16_t,
                               std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(JSONNumbers, Numbers);

TYPED_TEST(JSONNumbers, RoundTrip) {
  using L = Limits<TypeParam>;
  std::vector<TypeParam> Elements = {
      L::min(),       L::max(),        L::lowest(),    L::infinity(),
      L::quiet_NaN(), L::denorm_min(), -L::infinity(), TypeParam(-0.0),
      L::epsilon(),   TypeParam(0),    TypeParam(1),   TypeParam(100)};
  FeatureSet Set;
  for (TypeParam Element : Elements)
    Set.set("scalar " + std::to_string(Set.size()), Element);
  Set.set("vector", Elements);
  Set.set("empty", std::vector<TypeParam>());
  Set.set("tensor", TensorRef<TypeParam>(Elements, {2, 3, 2}));
  Set.set("rank 8", TensorRef<TypeParam>(Elements, {2, 1, 1, 3, 1, 2, 1, 1}));
  Set.set("nothing", TensorRef<TypeParam>({}, {3, 0, 7}));
  Set.set("less", TensorRef<TypeParam>({}, {0, 7}));
  Set.set("wide", TensorRef<TypeParam>({}, {std::int64_t(1) << 62, 0}));
  expectRoundTrip(Set);
}

TEST(JSONRoundTrip, BoolsAndText) {
  FeatureSet Set;
  Set.set("yes", true);
  Set.set("no", false);
  Set.set("bools", std::vector<bool>{true, false, true});
  Set.set("no bools", std::vector<bool>());
  Set.set("text", std::string_view("a\n\0é\x7f\"\\", 8));
  Set.set("no text", "");
  Set.set("NaN", "NaN");
  Set.set("strings", std::vector<std::string>{"", "x\n", "日本", "NaN"});
  Set.set("no strings", std::vector<std::string>());
  Set.set("日本 \"\\\n", 1);
  expectRoundTrip(Set);
  expectRoundTrip(FeatureSet());
  expectRoundTrip(manyTypes());
}

/// Finite numbers of every magnitude.
template <typename T, typename Bits> std::vector<T> randomNumbers(int Count) {
  std::mt19937_64 Random(1);
  std::vector<T> Numbers;
  while (Numbers.size() < static_cast<std::size_t>(Count)) {
    T Number = std::bit_cast<T>(static_cast<Bits>(Random()));
    if (std::isfinite(Number))
      Numbers.push_back(Number);
  }
  return Numbers;
}

TEST(JSONRoundTrip, RandomFloatsAndDoubles) {
  FeatureSet Set;
  Set.set("floats", randomNumbers<float, std::uint32_t>(300'000));
  Set.set("doubles", randomNumbers<double, std::uint64_t>(100'000));
  expectRoundTrip(Set);
}

//===----------------------------------------------------------------------===//
// Floats are rounded correctly
//===----------------------------------------------------------------------===//

/// Returns the float that a reader gets from \p Text.
float readFloat(const std::string &Text) {
  JSONSerDes Codec;
  Message M(R"({"_types":{"x":"float"},"x":)" + Text + "}");
  Expected<Span<const TensorView>> Tensors = Codec.deserialize(M.bytes());
  if (!Tensors) {
    ADD_FAILURE() << Text << ": " << Tensors.takeError().str();
    return NAN;
  }
  return Tensors->front().as<float>()->front();
}

/// Expects the same float from the reader as from the C library.
void expectNearest(const std::string &Text) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(readFloat(Text)),
            std::bit_cast<std::uint32_t>(std::strtof(Text.c_str(), nullptr)))
      << Text;
}

TEST(JSONFloats, NearTheMiddleOfTwoFloats) {
  constexpr int Count = MLBRIDGE_UNDER_ASAN ? 2000 : 20'000;
  // Test the exact middle of two floats, and numbers so close to it that they
  // round to the same double. Rounding that double to float would be wrong for
  // half of these numbers.
  for (float Number : randomNumbers<float, std::uint32_t>(Count)) {
    float Next = std::nextafter(Number, INFINITY);
    if (!std::isfinite(Next))
      continue;
    double Middle = (double(Number) + double(Next)) / 2;
    char Exact[400];
    std::snprintf(Exact, sizeof(Exact), "%.200e", Middle);
    const char *Exponent = std::strchr(Exact, 'e');
    std::string Mantissa(Exact, Exponent - Exact);
    expectNearest(Exact);
    expectNearest(std::string(Mantissa).append("1").append(Exponent));
    // The number just below: decrement the last nonzero digit and append nines.
    std::size_t Last = Mantissa.find_last_not_of('0');
    if (Last == Mantissa.npos || !std::isdigit(Mantissa[Last]))
      continue;
    Mantissa.resize(Last + 1);
    --Mantissa.back();
    expectNearest(Mantissa.append(30, '9').append(Exponent));
  }
}

TEST(JSONFloats, AtTheEndsOfTheirRange) {
  struct {
    const char *Text;
    float Value;
  } Cases[] = {
      {"0", 0.0f},
      {"-0", -0.0f},
      {"-0.0e5", -0.0f},
      {"1e-999", 0.0f},
      {"-1e-999", -0.0f},
      {"1e-46", 0.0f},
      // Half the smallest float, and a little more than half.
      {"7.006492321624085354618647916449580656401309709382578858785e-46", 0.0f},
      {"7.006492321624085354618647916449580656401309709382578858786e-46",
       1e-45f},
      {"1e-45", 1e-45f},
      {"1.17549435e-38", FLT_MIN},
      // Halfway between the largest subnormal and the smallest normal float.
      {"1.17549428e-38", std::nextafter(FLT_MIN, 0.0f)},
      {"3.4028235e38", FLT_MAX},
      {"3.40282356e38", FLT_MAX},
      {"16777217", 16777216.0f},
      {"16777219", 16777220.0f},
      {"340282346638528859811704183484516925440", FLT_MAX},
      {"\"NaN\"", Limits<float>::quiet_NaN()},
      {"\"-Infinity\"", -INFINITY},
  };
  for (auto [Text, Value] : Cases)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(readFloat(Text)),
              std::bit_cast<std::uint32_t>(Value))
        << Text;
  for (const char *Text :
       {"3.4028236e38", "-1e39", "1e999", "1e99999999999999999999",
        // Halfway between the largest float and the number that would follow
        // it.
        "340282356779733661637539395458142568448"})
    EXPECT_THAT(
        read(std::string(R"({"_types":{"x":"float"},"x":)") + Text + "}"),
        HasSubstr("SchemaMismatch: feature 'x': expected float, found " +
                  std::string(Text).substr(0, 20)))
        << Text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(JSONReading, ValuesWithoutTypes) {
  struct {
    const char *Value;
    const char *Is;
  } Cases[] = {
      {"1", "int64_t 1"},
      {"-9223372036854775808", "int64_t -9223372036854775808"},
      {"9223372036854775807", "int64_t 9223372036854775807"},
      {"9223372036854775808", "uint64_t 9223372036854775808"},
      {"18446744073709551615", "uint64_t 18446744073709551615"},
      {"1.0", "double 1"},
      {"1e2", "double 100"},
      {"-0.0", "double -0"},
      {"-0", "int64_t 0"},
      {"true", "bool true"},
      {"false", "bool false"},
      {"\"\"", "string "},
      {"\"NaN\"", "string NaN"},
      {"\"\\u00e9\\ud83d\\ude00\\n\"", "string é😀\n"},
      {"[]", "int64_t[0]"},
      {"[ ]", "int64_t[0]"},
      {"[[],[]]", "int64_t[2,0]"},
      {"[[[]],[[]]]", "int64_t[2,1,0]"},
      {"[1, 2 ,3]", "int64_t[3] 1,2,3"},
      {"[[1,2],[3,4],[5,6]]", "int64_t[3,2] 1,2,3,4,5,6"},
      {"[[[[[[[[7]]]]]]]]", "int64_t[1,1,1,1,1,1,1,1] 7"},
      {"[1,2.5]", "double[2] 1,2.5"},
      {"[2.5,1]", "double[2] 2.5,1"},
      {"[1,18446744073709551615]", "uint64_t[2] 1,18446744073709551615"},
      {"[18446744073709551615,1]", "uint64_t[2] 18446744073709551615,1"},
      {"[18446744073709551615,1,0.5]", "double[3] 18446744073709551616,1,0.5"},
      {"[-1,18446744073709551615,1e0]", "double[3] -1,18446744073709551616,1"},
      {"[0.5,-1,18446744073709551615]",
       "double[3] 0.5,-1,18446744073709551616"},
      {"[100000000000000000000,-1,2,0.5]", "double[4] 1e+20,-1,2,0.5"},
      // Doubles hold these numbers exactly, so no declared type is needed.
      {"18446744073709551616", "double 18446744073709551616"},
      {"-9223372036854777856", "double -9223372036854777856"},
      {"[-1,9223372036854775808]", "double[2] -1,9223372036854775808"},
      {"[9223372036854775808,-1]", "double[2] 9223372036854775808,-1"},
      {"[true,false]", "bool[2] true,false"},
      {"[[true],[false]]", "bool[2,1] true,false"},
      {"[\"a\",\"\",\"bc\"]", "string[3] a  bc"},
      {"[\"NaN\",\"Infinity\"]", "string[2] NaN Infinity"},
      {"[1,\"NaN\"]", "double[2] 1,\"NaN\""},
      {"[1,\"-Infinity\",2]", "double[3] 1,\"-Infinity\",2"},
      {"[\"NaN\",\"Infinity\",1]", "double[3] \"NaN\",\"Infinity\",1"},
      {"[[\"NaN\"],[\"Infinity\"]]", "double[2,1] \"NaN\",\"Infinity\""},
      {"[[\"NaN\",1],[2,3]]", "double[2,2] \"NaN\",1,2,3"},
  };
  for (auto [Value, Is] : Cases)
    EXPECT_EQ(read("{\"x\":" + std::string(Value) + "}"),
              "x " + std::string(Is))
        << Value;
}

/// Returns a message with the feature `x`, in the order in which this library
/// writes it, with the types first.
std::string typesFirst(std::string Types, std::string_view Value) {
  return Types.insert(0, "{\"_types\":")
      .append(",\"x\":")
      .append(Value)
      .append("}");
}

/// Returns a message with `a` and `x`, in an order that other programs may use,
/// with the types last.
std::string typesLast(std::string_view Types, std::string_view Value) {
  return std::string("{\"a\":true,\"x\":")
      .append(Value)
      .append(",\"_types\":")
      .append(Types)
      .append("}");
}

TEST(JSONReading, DeclaredTypes) {
  struct {
    const char *Type;
    const char *Value;
    const char *Is;
  } Cases[] = {
      {"\"float\"", "1", "float 1"},
      {"\"float\"", "[1,2.5,\"NaN\"]", "float[3] 1,2.5,\"NaN\""},
      {"\"double\"", "[]", "double[0]"},
      {"\"double\"", "18446744073709551617", "double 18446744073709551616"},
      {"\"double\"", "\"Infinity\"", "double \"Infinity\""},
      {"\"int8_t\"", "[-128,127]", "int8_t[2] -128,127"},
      {"\"uint16_t\"", "[[65535],[0]]", "uint16_t[2,1] 65535,0"},
      {"\"uint64_t\"", "18446744073709551615", "uint64_t 18446744073709551615"},
      {"\"int64_t\"", "[]", "int64_t[0]"},
      {"\"bool\"", "[true]", "bool[1] true"},
      {"\"string\"", "\"a\"", "string a"},
      {"\"string\"", "[\"NaN\"]", "string[1] NaN"},
      {"\"string\"", "[]", "string[0]"},
      {"{\"type\":\"float\"}", "1", "float 1"},
      {"{\"type\":\"float\",\"shape\":[]}", "1", "float 1"},
      {"{\"shape\":[2],\"type\":\"float\"}", "[1,2]", "float[2] 1,2"},
      {"{\"type\":\"float\",\"shape\":[0,3]}", "[]", "float[0,3]"},
      {"{\"type\":\"float\",\"shape\":[2,0,3]}", "[]", "float[2,0,3]"},
      {"{\"type\":\"float\",\"shape\":[2,0,3]}", "[[],[]]", "float[2,0,3]"},
      {"{\"type\":\"string\",\"shape\":[0]}", "[]", "string[0]"},
      {"{\"type\":\"string\",\"shape\":[1]}", "[\"\"]", "string[1] "},
  };
  for (auto [Type, Value, Is] : Cases) {
    std::string Types = "{\"x\":" + std::string(Type) + "}";
    std::string Summary = "x " + std::string(Is);
    EXPECT_EQ(read(typesFirst(Types, Value)), Summary);
    EXPECT_EQ(read(typesLast(Types, Value)), "a bool true; " + Summary);
  }
}

TEST(JSONReading, TypesInAnyOrder) {
  EXPECT_EQ(read(R"({"_types":{"c":"int8_t","a":"float","b":"uint8_t"},)"
                 R"("a":1,"d":2,"b":3,"c":4})"),
            "a float 1; d int64_t 2; b uint8_t 3; c int8_t 4");
}

TEST(JSONReading, WantedTypes) {
  AdviceSpec Float = AdviceSpec::of<float>();
  EXPECT_EQ(read(R"({"out":1.0})", Float), "out float 1");
  EXPECT_EQ(read(R"({"out":1})", Float), "out float 1");
  EXPECT_EQ(read(R"({"out":"NaN"})", Float), "out float \"NaN\"");
  EXPECT_EQ(read(R"({"out":[1.0,2.5]})", AdviceSpec::of<std::vector<float>>()),
            "out float[2] 1,2.5");
  EXPECT_EQ(read(R"({"out":["NaN","-Infinity"]})", Float),
            "out float[2] \"NaN\",\"-Infinity\"");
  EXPECT_EQ(read(R"({"out":[]})", Float), "out float[0]");
  EXPECT_EQ(read(R"({"out":[]})", AdviceSpec::of<std::string>()),
            "out string[0]");
  EXPECT_EQ(read(R"({"out":200})", AdviceSpec::of<std::uint8_t>()),
            "out uint8_t 200");
  EXPECT_EQ(read(R"({"out":3})", AdviceSpec::of<double>()), "out double 3");
  // If a value does not fit the expected type, it keeps its own type. Advice
  // then converts the value or reports the error.
  EXPECT_EQ(read(R"({"out":300})", AdviceSpec::of<std::uint8_t>()),
            "out int64_t 300");
  EXPECT_EQ(read(R"({"out":1.0})", AdviceSpec::of<int>()), "out double 1");
  EXPECT_EQ(read(R"({"out":16777217})", Float), "out int64_t 16777217");
  EXPECT_EQ(read(R"({"out":16777218})", Float), "out float 16777218");
  EXPECT_EQ(read(R"({"out":-9007199254740993})", AdviceSpec::of<double>()),
            "out int64_t -9007199254740993");
  EXPECT_EQ(read(R"({"out":9223372036854775807})", Float),
            "out int64_t 9223372036854775807");
  EXPECT_EQ(read(R"({"out":18446744073709551615})", Float),
            "out uint64_t 18446744073709551615");
  EXPECT_EQ(read(R"({"out":9223372036854775808})", Float),
            "out float 9.223372e+18");
  // JavaScript writes large doubles like this. The number is too large for any
  // integer type.
  EXPECT_EQ(read(R"({"out":123456789012345680000})", AdviceSpec::of<double>()),
            "out double 123456789012345683968");
  EXPECT_EQ(read(R"({"out":"yes"})", Float), "out string yes");
  EXPECT_EQ(read(R"({"out":1})", AdviceSpec::of<bool>()), "out int64_t 1");
  EXPECT_EQ(read(R"({"a":1,"out":true})", Float), "a int64_t 1; out bool true");
  // A declared type takes precedence over the expected one.
  EXPECT_EQ(read(R"({"_types":{"out":"int8_t"},"out":1})", Float),
            "out int8_t 1");
}

/// A message and a part of the error that it causes.
struct BadJSON {
  const char *Text;
  const char *Says;
};

/// Expects the error of each message. If a caller expects a bool, each message
/// must also fail, perhaps with another error.
void expectErrors(std::initializer_list<BadJSON> Cases) {
  for (auto [Text, Says] : Cases) {
    EXPECT_THAT(read(Text), HasSubstr(Says)) << Text;
    JSONSerDes Codec;
    EXPECT_FALSE(
        Codec.deserialize(Message(Text).bytes(), AdviceSpec::of<bool>()))
        << Text;
  }
}

TEST(JSONReading, BadSyntax) {
  expectErrors({
      {"", "Malformed: JSON message"},
      {" ", "Malformed: JSON message"},
      {"1", "Malformed: JSON message: not an object"},
      {"[1]", "Malformed: JSON message: not an object"},
      {"null", "Malformed: JSON message: not an object"},
      {"nonsense", "Malformed: JSON message"},
      {"{", "Malformed: JSON message"},
      {"}", "Malformed: JSON message"},
      {"{\"x\":1", "Malformed: JSON message"},
      {"{\"x\":1]", "Malformed: JSON message"},
      {"{\"x\" 1}", "Malformed: JSON message"},
      {"{\"x\":1,}", "Malformed: JSON message"},
      {"{x:1}", "Malformed: JSON message"},
      {"{\"x\":1}}", "Malformed: JSON message"},
      {"{\"x\":1}{}", "Malformed: JSON message: something follows"},
      {"{\"x\":1 2}", "Malformed: JSON message"},
      {"{\"x\":}", "Malformed: feature 'x'"},
      {"{\"x\":[1 2]}", "Malformed: feature 'x'"},
      {"{\"x\":[1,]}", "Malformed: feature 'x'"},
      {"{\"x\":[1,2}", "Malformed: JSON message"},
      {"{\"x\":[1,2}]", "Malformed: JSON message"},
      {"{\"x\":\"\xff\"}", "Malformed: JSON message: not JSON"},
      {"{\"x\":\"\n\"}", "Malformed: JSON message: not JSON"},
      {"{\"x\":\"\\x\"}", "Malformed: feature 'x'"},
      {"{\"x\":\"\\ud800\"}", "Malformed: feature 'x'"},
      {"{\"x\":[\"a\",\"\\ud800\"]}", "Malformed: feature 'x'"},
      {"{\"\\ud800\":1}", "Malformed: JSON message: a name"},
      {"{1}", "Malformed: JSON message"},
      {"{\"x\":1,2}", "Malformed: JSON message"},
      {"{\"\":1}", "Malformed: JSON message: a feature has no name"},
      {"{\"x\":1,\"x\":2}", "Malformed: feature 'x': appears twice"},
      {"{\"x\":1,\"y\":3,\"\\u0078\":2}",
       "Malformed: feature 'x': appears twice"},
  });
}

TEST(JSONReading, BadValues) {
  expectErrors({
      {"{\"x\":null}", "Malformed: feature 'x': expected a number, a bool, a "
                       "string or an array, found null"},
      {"{\"x\":[null]}", "found null"},
      {"{\"x\":{}}", "found an object"},
      {"{\"x\":[1,{\"a\":1}]}", "found an object"},
      {"{\"x\":nul}", "Malformed: feature 'x'"},
      {"{\"x\":tru}", "'tru' is neither true nor false"},
      {"{\"x\":[true,fals]}", "'fals' is neither true nor false"},
      {"{\"x\":NaN}", "Malformed: feature 'x'"},
      {"{\"x\":-}", "'-' is not a number"},
      {"{\"x\":01}", "'01' is not a number"},
      {"{\"x\":[1,02]}", "'02' is not a number"},
      {"{\"x\":1.}", "'1.' is not a number"},
      {"{\"x\":.5}", "Malformed: feature 'x'"},
      {"{\"x\":+1}", "Malformed: feature 'x'"},
      {"{\"x\":1e}", "'1e' is not a number"},
      {"{\"x\":1e+}", "'1e+' is not a number"},
      {"{\"x\":0x10}", "'0x10' is not a number"},
      {"{\"x\":1a}", "'1a' is not a number"},
      {"{\"x\":[1.5,1a]}", "'1a' is not a number"},
      {"{\"x\":1\"\"}", "Malformed"},
      {"{\"x\":1e999}", "SchemaMismatch: feature 'x': expected double, found"},
      {"{\"x\":[-1,9223372036854775809]}",
       "SchemaMismatch: feature 'x': expected integers of one 64-bit type"},
      {"{\"x\":[-1,9007199254740993,9223372036854775808]}", "SchemaMismatch"},
      {"{\"x\":[9223372036854775808,-9007199254740993]}", "SchemaMismatch"},
      {"{\"x\":18446744073709551617}", "SchemaMismatch: feature 'x'"},
      {"{\"x\":-9223372036854775809}", "SchemaMismatch: feature 'x'"},
  });
}

TEST(JSONReading, BadArrays) {
  expectErrors({
      {"{\"x\":[1,[2]]}",
       "Malformed: feature 'x': its arrays are of different"},
      {"{\"x\":[[1],2]}", "different lengths"},
      {"{\"x\":[[],2]}", "different lengths"},
      {"{\"x\":[2,[]]}", "different lengths"},
      {"{\"x\":[[1],[2,3]]}", "different lengths"},
      {"{\"x\":[[1],[]]}", "different lengths"},
      {"{\"x\":[[],[1]]}", "different lengths"},
      {"{\"x\":[[],[[]]]}", "different lengths"},
      {"{\"x\":[[[]],[]]}", "different lengths"},
      {"{\"x\":[1,true]}", "found true or false among numbers"},
      {"{\"x\":[true,1]}", "found a number among bools"},
      {"{\"x\":[true,\"a\"]}", "found a string among bools"},
      {"{\"x\":[1,\"a\"]}", "found a string among numbers"},
      {"{\"x\":[\"a\",1]}", "found a number among strings"},
      {"{\"x\":[\"NaN\",\"a\",1]}", "found a number among strings"},
      {"{\"x\":[\"a\",true]}", "found true or false among strings"},
      {"{\"x\":[[\"a\"]]}", "a list of strings has rank 1, found shape [1,1]"},
      {"{\"x\":[[[[[[[[[1]]]]]]]]]}",
       "Unsupported: feature 'x': a tensor has at "
       "most 8 dimensions"},
  });
}

TEST(JSONReading, BadReservedNames) {
  expectErrors({
      {"{\"_types\":{1},\"x\":1}", "Malformed: '_types'"},
      {"{\"_types\":{\"\\ud800\":\"float\"},\"x\":1}", "Malformed: '_types'"},
      {"{\"_types\":{\"x\":{1}},\"x\":1}", "Malformed: '_types'"},
      {"{\"_types\":{\"x\":{\"\\ud800\":1}},\"x\":1}", "Malformed: '_types'"},
      {"{\"_types\":{\"x\":},\"x\":1}", "Malformed: '_types'"},
      {"{\"_error\":\"no model\",\"x\":1}", "Model: no model"},
      {"{\"_deferred\":\"too hot\"}", "Deferred: too hot"},
      {"{\"_error\":1}",
       "Malformed: feature '_error': expected string, found int64_t"},
  });
}

TEST(JSONReading, BadTypes) {
  struct {
    const char *Types;
    const char *Value;
    const char *Says;
  } Cases[] = {
      {"{\"x\":\"float\"}", "\"abc\"",
       "SchemaMismatch: feature 'x': expected float, found a string"},
      {"{\"x\":\"float\"}", "true", "expected float, found true or false"},
      {"{\"x\":\"float\"}", "[1,null]",
       "Malformed: feature 'x': expected float, found null"},
      {"{\"x\":\"float\"}", "[1,1a]", "'1a' is not a number"},
      {"{\"x\":\"float\"}", "[\"\\ud800\"]", "Malformed: feature 'x'"},
      {"{\"x\":\"double\"}", "-1e999", "expected double, found -1e999"},
      {"{\"x\":\"int8_t\"}", "128", "expected int8_t, found 128"},
      {"{\"x\":\"int8_t\"}", "[0,-129]", "expected int8_t, found -129"},
      {"{\"x\":\"int8_t\"}", "1.0", "expected int8_t, found 1.0"},
      {"{\"x\":\"uint32_t\"}", "-1", "expected uint32_t, found -1"},
      {"{\"x\":\"uint32_t\"}", "4294967296", "found 4294967296"},
      {"{\"x\":\"int64_t\"}", "9223372036854775808", "SchemaMismatch"},
      {"{\"x\":\"uint64_t\"}", "18446744073709551616", "SchemaMismatch"},
      {"{\"x\":\"int32_t\"}", "\"NaN\"", "expected int32_t, found a string"},
      {"{\"x\":\"bool\"}", "1", "expected bool, found 1"},
      {"{\"x\":\"bool\"}", "[true,tru]", "'tru' is neither"},
      {"{\"x\":\"string\"}", "1", "expected string, found 1"},
      {"{\"x\":\"string\"}", "[\"\\ud800\"]", "Malformed: feature 'x'"},
      {"{\"x\":\"string\"}", "[[\"a\"]]",
       "expected a string or a list of strings, found shape [1,1]"},
      {"{\"x\":\"flaot\"}", "1",
       "Malformed: feature 'x': in '_types': unknown type 'flaot'"},
      {"{\"x\":7}", "1", "Malformed: feature 'x': in '_types'"},
      {"{\"x\":{}}", "1",
       "Malformed: feature 'x': in '_types': it has no type"},
      {"{\"x\":{\"type\":\"float\",\"type\":\"float\"}}", "1",
       "'type' appears twice"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[],\"shape\":[]}}", "1",
       "'shape' appears twice"},
      {"{\"x\":{\"type\":\"float\",\"colour\":1}}", "1",
       "unknown key 'colour'"},
      {"{\"x\":{\"type\":\"float\",\"shape\":1}}", "1", "its shape"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[1.5]}}", "1", "its shape"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[-1]}}", "[]",
       "its shape has an extent of -1"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[0,1,2,3,4,5,6,7,8]}}", "[]",
       "Unsupported: feature 'x'"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[2]}}", "[1]",
       "SchemaMismatch: feature 'x': expected shape [2], found [1]"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[]}}", "[1]",
       "expected shape [], found [1]"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[1]}}", "1",
       "expected shape [1], found []"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[1,2]}}", "[]",
       "expected shape [1,2], found [0]"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[0,3]}}", "[[],[]]",
       "expected shape [0,3], found [2,0]"},
      {"{\"x\":{\"type\":\"float\",\"shape\":[2,0,3]}}", "[[]]",
       "expected shape [2,0,3], found [1,0]"},
      {"{\"x\":{\"type\":\"string\",\"shape\":[0,1]}}", "[]",
       "expected shape [0,1], found [0]"},
      {"{\"x\":\"float\",\"x\":\"float\"}", "1",
       "'x': in '_types': appears twice"},
      {"{\"x\":\"float\",\"y\":\"float\"}", "1",
       "Malformed: feature 'y': in '_types': the message has no such feature"},
      {"[\"float\"]", "1", "Malformed: '_types'"},
      {"null", "1", "Malformed: '_types'"},
      {"{},\"_types\":{}", "1", "'_types' appears twice"},
  };
  for (auto [Types, Value, Says] : Cases) {
    EXPECT_THAT(read(typesFirst(Types, Value)), HasSubstr(Says)) << Types;
    // If the types come last, the reader may notice another error first.
    EXPECT_THAT(read(typesLast(Types, Value)),
                testing::AnyOf(HasSubstr("Malformed"), HasSubstr(Says)))
        << Types;
  }
}

TEST(JSONReading, EveryTruncationIsAnError) {
  std::string Text = written(manyTypes());
  for (std::size_t Length = 0; Length < Text.size(); ++Length)
    EXPECT_THAT(read(Text.substr(0, Length)), HasSubstr("Malformed: "))
        << Length;
  EXPECT_THAT(read(Text + "}"), HasSubstr("Malformed: "));
}

TEST(JSONReading, ABadMessageDoesNotSpoilTheNext) {
  JSONSerDes Reader;
  FeatureSet Set = manyTypes();
  Message Good(written(Set));
  for (std::string_view Bad :
       {R"({"_types":{"flag":"float"},"flag":1,"count":[1,{}]})",
        R"({"_types":{"flag":"colour"},"flag":1})", R"({"flag":1,"flag":2})",
        "", "{", R"({"_types":{"a":"float","a":"float"},"a":1})"}) {
    for (int Round = 0; Round < 2; ++Round)
      EXPECT_FALSE(Reader.deserialize(Message(Bad).bytes())) << Bad;
    Expected<Span<const TensorView>> Tensors = Reader.deserialize(Good.bytes());
    ASSERT_TRUE(Tensors) << Tensors.takeError().str();
    EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
  }
}

TEST(JSONReading, ShorterMessagesDoNotHideDuplicates) {
  JSONSerDes Reader;
  auto CodeOf = [&](std::string_view Text) {
    return Reader.deserialize(Message(Text).bytes()).code();
  };
  EXPECT_EQ(CodeOf(R"({"a":1,"b":1,"c":1})"), ErrorCode::Success);
  EXPECT_EQ(CodeOf(R"({"b":1})"), ErrorCode::Success);
  EXPECT_EQ(CodeOf(R"({"b":1,"b":1})"), ErrorCode::Malformed);
  EXPECT_EQ(CodeOf(R"({"b":1,"b":1})"), ErrorCode::Malformed);
  EXPECT_EQ(CodeOf(R"({"_types":{"a":"float","b":"float"},"a":1,"b":1})"),
            ErrorCode::Success);
  EXPECT_EQ(CodeOf(R"({"_types":{"b":"float"},"b":1})"), ErrorCode::Success);
  EXPECT_EQ(CodeOf(R"({"_types":{"b":"float","b":"float"},"b":1})"),
            ErrorCode::Malformed);
}

TEST(JSONReading, HostileMessagesCostLinearTime) {
  auto Start = std::chrono::steady_clock::now();
  constexpr int Features = 100'000;
  std::string Text = "{";
  for (int I = 0; I < Features; ++I)
    Text += "\"aaaaaaaaaaaaaaaaaaaaaaa" +
            std::to_string(std::min(I, Features - 2)) + "\":1,";
  Text.back() = '}';
  EXPECT_THAT(read(Text), HasSubstr("twice"));
  // This order of types makes looking them up slowest.
  Text = "{\"_types\":{";
  for (int I = Features; I-- > 0;)
    Text += "\"a" + std::to_string(I) + "\":\"float\",";
  Text.back() = '}';
  for (int I = 0; I < Features; ++I)
    Text += ",\"a" + std::to_string(I) + "\":1";
  EXPECT_THAT(read(Text + "}"), HasSubstr("a99999 float 1"));
  // An algorithm of quadratic time would need minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - Start, std::chrono::seconds(20));

  EXPECT_THAT(read(std::string(1 << 20, '[')), HasSubstr("Malformed"));
  EXPECT_THAT(read("{\"x\":" + std::string(1 << 20, '[') +
                   std::string(1 << 20, ']') + "}"),
              HasSubstr("Unsupported"));
  EXPECT_THAT(read("{\"_types\":" + std::string(1 << 20, '{') + "}"),
              HasSubstr("Malformed"));
  for (const char *End : {".5}", "}"})
    EXPECT_THAT(read("{\"x\":1" + std::string(1 << 20, '0') + End),
                HasSubstr("SchemaMismatch: feature 'x': expected double"));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(JSONMemory, LayoutStaysWhileOnlyNumbersChange) {
  JSONSerDes Reader;
  auto LayoutOf = [&](std::string_view Text) {
    EXPECT_TRUE(Reader.deserialize(Message(Text).bytes())) << Text;
    return Reader.layout();
  };
  std::uint64_t Layout = LayoutOf(R"({"x":[1,2,3],"s":["ab","c"]})");
  EXPECT_EQ(LayoutOf(R"({"x":[4,5,6],"s":["xy","z"]})"), Layout);
  for (std::string_view Text : {
           R"({"x":[4,5,6],"s":["x","yz"]})",
           R"({"x":[4,5],"s":["x","yz"]})",
           R"({"x":[4.5,5],"s":["x","yz"]})",
           R"({"y":[4.5,5],"s":["x","yz"]})",
           R"({"y":[4.5,5]})",
           R"({"_types":{"y":"float"},"y":[4.5,5]})",
           R"({"y":[[4.5,5]]})",
           R"({})",
       }) {
    std::uint64_t Next = LayoutOf(Text);
    EXPECT_NE(Next, Layout) << Text;
    Layout = Next;
    EXPECT_EQ(LayoutOf(Text), Layout) << Text;
  }
}

TEST(JSONMemory, UnchangedLayoutMeansUnchangedViews) {
  JSONSerDes Reader;
  std::vector<TensorView> Last;
  std::uint64_t Layout = 0;
  std::mt19937 Random(1);
  for (int Round = 0; Round < 2000; ++Round) {
    std::string Numbers(2 * (1 + Random() % 3000), '1');
    for (std::size_t I = 1; I < Numbers.size(); I += 2)
      Numbers[I] = ',';
    Numbers.back() = ']';
    Message M(R"({"a":[)" + Numbers + R"(,"b":["x","y"]})");
    Expected<Span<const TensorView>> Tensors = Reader.deserialize(M.bytes());
    ASSERT_TRUE(Tensors) << Tensors.takeError().str();
    if (Reader.layout() == Layout) {
      ASSERT_EQ(Tensors->size(), Last.size());
      for (std::size_t I = 0; I < Last.size(); ++I) {
        EXPECT_EQ((*Tensors)[I].Data, Last[I].Data);
        EXPECT_EQ((*Tensors)[I].NumBytes, Last[I].NumBytes);
        EXPECT_EQ((*Tensors)[I].Lengths.data(), Last[I].Lengths.data());
      }
    }
    Layout = Reader.layout();
    Last.assign(Tensors->begin(), Tensors->end());
  }
}

TEST(JSONMemory, HeldMemoryOutlivesGrowth) {
  JSONSerDes Reader;
  Message Small(std::string_view(R"({"x":[1,2,3]})"));
  Expected<Span<const TensorView>> Tensors = Reader.deserialize(Small.bytes());
  ASSERT_TRUE(Tensors);
  Span<const std::int64_t> Elements = *Tensors->front().as<std::int64_t>();
  std::shared_ptr<const void> Held = Reader.memory();
  std::string Large = "{\"x\":[1";
  for (int I = 0; I < 10'000; ++I)
    Large += ",1";
  EXPECT_TRUE(Reader.deserialize(Message(Large + "]}").bytes()));
  EXPECT_NE(Reader.memory(), Held);
  // The reader may have reused the memory for new elements, but the memory must
  // stay readable.
  EXPECT_THAT(Elements[2], testing::AnyOf(1, 3));
}

TEST(JSONMemory, ElementsAreAligned) {
  JSONSerDes Reader;
  Message M(std::string_view(
      R"({"_types":{"d":"double"},"b":true,"a":[1,2],"s":"x","d":1})"));
  Expected<Span<const TensorView>> Tensors = Reader.deserialize(M.bytes());
  ASSERT_TRUE(Tensors);
  auto Address = [&](int I) {
    return reinterpret_cast<std::uintptr_t>((*Tensors)[I].Data);
  };
  EXPECT_EQ(Address(1) % 64, 0u);
  EXPECT_EQ(Address(3) % 8, 0u);
}

TEST(JSONMemory, EmptyTensorsHaveAnAddress) {
  JSONSerDes Reader;
  Message M(std::string_view(R"({"a":[],"s":""})"));
  Expected<Span<const TensorView>> Tensors = Reader.deserialize(M.bytes());
  ASSERT_TRUE(Tensors);
  for (const TensorView &Tensor : *Tensors)
    EXPECT_NE(Tensor.Data, nullptr);
}

TEST(JSONMemory, NoAllocationOnceWarm) {
  JSONSerDes Writer, Reader;
  FeatureSet Short = manyTypes();
  FeatureSet Long = manyTypes();
  Long.set("floats", std::vector<float>(1000, 0.1f));
  Long.set("name", std::string(100, '\n'));
  Long.set("names", std::vector<std::string>(50, "a\"c"));
  Message Region(1 << 17);
  auto Round = [&] {
    for (const FeatureSet *Set : {&Short, &Short, &Long})
      EXPECT_TRUE(passes(Writer, Reader, Set->tensors(), Region));
  };
  EXPECT_EQ(allocationsOnceWarm(Round), 0u);
}

} // namespace
