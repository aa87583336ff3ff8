//===- ModelSignatureTest.cpp - A model's inputs and outputs --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/ModelSignature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ModelSignatureTest, NamesTypesShapesAndMetadata) {
  auto Signature = ModelSignature::parse(R"({
    "inputs": [{"name": "nodes", "type": "float", "shape": ["n", 16]},
               {"name": "adjacent", "type": "uint8_t", "shape": ["n", "n"]},
               {"name": "mode", "type": "string", "shape": []}],
    "outputs": [{"name": "scores", "type": "double", "shape": ["m", null]}],
    "metadata": {"mlbridge.decide": "argmax"}})");
  ASSERT_TRUE(bool(Signature)) << Signature.message();
  ASSERT_EQ(Signature->Inputs.size(), 3U);
  EXPECT_EQ(Signature->Inputs[0].Dims, Shape({-2, 16}));
  EXPECT_EQ(Signature->Inputs[1].Dims, Shape({-2, -2})) << "the same n";
  EXPECT_EQ(Signature->Inputs[1].Type, ElementType::UInt8);
  EXPECT_EQ(Signature->Inputs[2].Dims, Shape());
  ASSERT_EQ(Signature->Outputs.size(), 1U);
  EXPECT_EQ(Signature->Outputs[0].Name, "scores");
  EXPECT_EQ(Signature->Outputs[0].Dims, Shape({-3, TensorSpec::AnyExtent}));
  EXPECT_THAT(Signature->About, ElementsAre(Pair("mlbridge.decide", "argmax")));
}

TEST(ModelSignatureTest, ErrorsSayWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> Cases[] = {
      {"[", "expected a JSON object"},
      {"[]", "expected a JSON object"},
      {R"({"outputs": []})", "expected a list \"inputs\""},
      {R"({"inputs": [], "outputs": 3})", "expected a list \"outputs\""},
      {R"({"inputs": [{"type": "float"}], "outputs": []})",
       "inputs: expected each tensor to have a \"name\""},
      {R"({"inputs": [{"name": "x", "type": "half", "shape": []}],
           "outputs": []})",
       "inputs: 'x': unknown type 'half'"},
      {R"({"inputs": [{"name": "x", "type": "float", "shape": [1.5]}],
           "outputs": []})",
       "inputs: 'x': an extent is an integer, null or a name"},
      {R"({"inputs": [{"name": "x", "type": "float",
                       "shape": [1,1,1,1,1,1,1,1,1]}], "outputs": []})",
       "inputs: 'x': expected a rank of at most 8"},
      {R"({"inputs": [{"name": "x", "type": "float", "shape": []},
                      {"name": "x", "type": "float", "shape": []}],
           "outputs": []})",
       "inputs: 'x' appears twice"},
      {R"({"inputs": [], "outputs": [], "metadata": {"a": 1}})",
       "metadata 'a': expected a string"},
      {R"({"inputs": [], "outputs": [], "metadata": 1})",
       "expected \"metadata\" to be an object"},
  };
  for (auto [Text, Why] : Cases) {
    Error E = ModelSignature::parse(Text).takeError();
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << Text;
    EXPECT_THAT(E.message(), HasSubstr("model signature: ")) << Text;
    EXPECT_THAT(E.message(), HasSubstr(std::string(Why))) << Text;
  }
}

TEST(ModelSignatureTest, ForARuntimeWithoutStrings) {
  constexpr std::string_view Numbers =
      R"({"inputs": [{"name": "x", "type": "float", "shape": []}],
          "outputs": []})";
  EXPECT_TRUE(bool(ModelSignature::parseNumeric(Numbers, "tvm:m.so", "TVM")));
  auto Wrong = ModelSignature::parseNumeric("[", "tvm:m.so", "TVM");
  EXPECT_EQ(Wrong.code(), ErrorCode::Malformed);
  EXPECT_THAT(std::string(Wrong.message()),
              testing::StartsWith("tvm:m.so: model signature: "));
  auto Text = ModelSignature::parseNumeric(
      R"({"inputs": [],
          "outputs": [{"name": "y", "type": "string", "shape": []}]})",
      "tvm:m.so", "TVM");
  EXPECT_EQ(Text.code(), ErrorCode::Unsupported);
  EXPECT_EQ(Text.message(), "tvm:m.so: 'y': TVM does not support strings");
}
