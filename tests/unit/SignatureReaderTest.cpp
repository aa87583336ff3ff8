//===- SignatureReaderTest.cpp - Signatures of SavedModels ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests signatures that are built by hand, byte for byte. tests/tensorflow
/// tests the signatures that TensorFlow writes. A missing or wrong field must
/// be an error, never an invented value.
///
//===----------------------------------------------------------------------===//

#include "TF/SignatureReader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::tf;
using testing::HasSubstr;

namespace {

std::string varint(std::uint64_t Value) {
  std::string Out;
  for (; Value >= 0x80; Value >>= 7)
    Out += static_cast<char>(Value | 0x80);
  return Out + static_cast<char>(Value);
}
std::string number(unsigned Field, std::uint64_t Value) {
  return varint(Field << 3) + varint(Value);
}
std::string bytes(unsigned Field, const std::string &Value) {
  return varint(Field << 3 | 2) + varint(Value.size()) + Value;
}
std::string entry(const std::string &Key, const std::string &Value) {
  return bytes(1, Key) + bytes(2, Value);
}

constexpr std::uint64_t Float = 1, Double = 2, String = 7;

/// Returns a TensorInfo. Like Protobuf, omits a \p Type of 0 and an empty \p
/// Place.
std::string info(const std::string &Place, std::uint64_t Type) {
  return (Place.empty() ? "" : bytes(1, Place)) +
         (Type == 0 ? "" : number(2, Type));
}

/// Reads the signature "serve" of a MetaGraphDef with one input and \p Outputs.
Expected<Signature>
read(const std::string &Input,
     const std::string &Outputs = bytes(2, entry("y", info("out:1", Double)))) {
  return readSignature(
      bytes(5, entry("serve", bytes(1, entry("x", Input)) + Outputs)), "serve",
      "the model");
}

TEST(SignatureReader, ReadsNamesTypesShapesAndPlaces) {
  const std::string Shape =
      bytes(2, number(1, 3)) + bytes(2, number(1, ~std::uint64_t(0)));
  Expected<Signature> Found = read(info("in:0", Float) + bytes(3, Shape));
  ASSERT_TRUE(Found) << Found.message();
  ASSERT_EQ(Found->Inputs.size(), 1u);
  EXPECT_EQ(Found->Inputs[0].Spec.Name, "x");
  EXPECT_EQ(Found->Inputs[0].Spec.typeStr(), "float[3,?]");
  EXPECT_EQ(Found->Inputs[0].Operation, "in");
  ASSERT_EQ(Found->Outputs.size(), 1u);
  EXPECT_EQ(Found->Outputs[0].Spec.typeStr(), "double");
  EXPECT_EQ(Found->Outputs[0].Index, 1);
}

TEST(SignatureReader, ATensorWithoutATypeIsUnsupported) {
  Expected<Signature> Found = read(info("in:0", 0));
  EXPECT_EQ(Found.code(), ErrorCode::Unsupported);
  EXPECT_THAT(Found.message(), HasSubstr("'x': expected a dense tensor"));
}

TEST(SignatureReader, AnOutputWithoutATypeIsLeftOut) {
  const std::string Outputs = bytes(2, entry("none", info("NoOp:0", 0))) +
                              bytes(2, entry("text", info("t:0", String))) +
                              bytes(2, entry("y", info("out:1", Double)));
  Expected<Signature> Found = read(info("in:0", Float), Outputs);
  ASSERT_TRUE(Found) << Found.message();
  ASSERT_EQ(Found->Outputs.size(), 1u);
  EXPECT_EQ(Found->Outputs[0].Spec.Name, "y");
}

TEST(SignatureReader, APlaceIsAnOperationAndANumber) {
  for (const char *Place : {"", "in", ":0", "in:", "in:-1", "in:-0", "in:+1",
                            "in:0x", "in:4294967296"})
    EXPECT_EQ(read(info(Place, Float)).code(), ErrorCode::Malformed) << Place;
}

/// Protobuf handles such a field like an unknown field.
TEST(SignatureReader, SkipsFieldsOfAnotherType) {
  const std::string Skipped = bytes(2, "ab") + number(3, 7) + number(4, 1);
  Expected<Signature> Found = read(info("in:0", Float) + Skipped);
  ASSERT_TRUE(Found) << Found.message();
  EXPECT_EQ(Found->Inputs[0].Spec.typeStr(), "float");
}

TEST(SignatureReader, NamesInErrorsAreBoundAndPrintable) {
  std::string Graph = bytes(5, entry("a\x1b[31m", ""));
  for (int I = 0; I < 100; ++I)
    Graph += bytes(5, entry(std::string(100, 'b'), ""));
  Expected<Signature> Found = readSignature(Graph, "serve", "the model");
  EXPECT_EQ(Found.code(), ErrorCode::InvalidArgument);
  EXPECT_LT(Found.message().size(), 500u);
  EXPECT_THAT(Found.message(), HasSubstr("a\\x1b[31m"));

  const std::string Input = bytes(1, entry("x\x1b[31m", info("in:0", 0)));
  Found = readSignature(bytes(5, entry("serve", Input)), "serve", "the model");
  EXPECT_THAT(Found.message(), HasSubstr("'x\\x1b[31m'"));
}

} // namespace
