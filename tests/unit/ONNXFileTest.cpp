//===- ONNXFileTest.cpp - ONNX files and runtimes -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests facts about a model that the library reads from the ONNX file itself,
/// because ONNX Runtime does not report them: weights in other files, and
/// inputs of any rank. Also tests wrong files in place of ONNX Runtime.
///
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXFile.h"

#include "support/ONNXTest.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {
class ONNXFileTest : public ONNXTest {
protected:
  /// Adds the number in "c.bin" to x.
  static ONNXWriter addExternal() {
    ONNXWriter Writer;
    Writer.input("x", ElementType::Float, {})
        .externalConstant("c", {}, "c.bin")
        .node("Add", {"x", "c"}, {"out"})
        .output("out", ElementType::Float, {});
    return Writer;
  }
  void writeWeight(float Number) const {
    std::ofstream(path("new"), std::ios::binary)
        .write(reinterpret_cast<const char *>(&Number), sizeof(Number));
    std::filesystem::rename(path("new"), path("c.bin"));
  }
  Expected<float> ask(const std::string &Spec) const {
    auto Runner = Factory.create(Spec);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", 1.0f});
    return (*Runner)->tryEvaluate<float>();
  }
};
} // namespace

TEST_F(ONNXFileTest, WeightsInAnotherFileArePartOfTheModel) {
  writeWeight(2);
  const std::string Spec = "onnx:" + write(addExternal());
  EXPECT_THAT(onnx::partsOf(path("m.onnx")), ElementsAre(path("c.bin")));
  EXPECT_EQ(*ask(Spec), 3);
  EXPECT_EQ(*ask(Spec), 3);
  writeWeight(4);
  EXPECT_EQ(*ask(Spec), 5) << "the model file itself is unchanged";
  std::filesystem::remove(path("c.bin"));
  EXPECT_FALSE(ask(Spec));
  writeWeight(6);
  EXPECT_EQ(*ask(Spec), 7);
  // ONNX Runtime would block forever when it opens this FIFO.
  std::filesystem::remove(path("c.bin"));
  ASSERT_EQ(::mkfifo(path("c.bin").c_str(), 0600), 0);
  EXPECT_EQ(ask(Spec).code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(loadONNXModel(path("m.onnx"), Options).code(),
            ErrorCode::InvalidArgument);
}

TEST_F(ONNXFileTest, ASurveyOfAnInvalidFileFindsNothing) {
  writeWeight(2);
  const std::string Bytes = addExternal().bytes();
  for (std::size_t Length = 0; Length < Bytes.size(); ++Length) {
    std::ofstream(path("cut"), std::ios::binary) << Bytes.substr(0, Length);
    EXPECT_THAT(onnx::survey(path("cut")).InputsOfAnyRank, IsEmpty());
  }
  for (const char *Strange : {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                              "\x3a\xff\xff\xff\xff\xff\xff\xff\x7f", "text"}) {
    std::ofstream(path("cut"), std::ios::binary) << Strange;
    EXPECT_THAT(onnx::survey(path("cut")).ExternalFiles, IsEmpty());
  }
  EXPECT_THAT(onnx::partsOf(path("nowhere")), IsEmpty());
  // Nested graphs, so deep that recursion would overflow the stack.
  std::string Deep;
  auto Wrap = [&](int Number) {
    std::string Length;
    std::size_t Left = Deep.size();
    for (; Left >= 128; Left >>= 7)
      Length += static_cast<char>(Left | 128);
    Length += static_cast<char>(Left);
    Deep = static_cast<char>(Number << 3 | 2) + Length + Deep;
  };
  for (int I = 0; I < 2'000; ++I)
    Wrap(6), Wrap(5), Wrap(1);
  Wrap(7);
  std::ofstream(path("cut"), std::ios::binary) << Deep;
  EXPECT_THAT(onnx::survey(path("cut")).ExternalFiles, IsEmpty());
}

TEST_F(ONNXFileTest, AnInputOfAnyRankIsRefusedAndAScalarIsNot) {
  ONNXWriter Writer;
  Writer.inputOfAnyRank("x", ElementType::Float)
      .node("Neg", {"x"}, {"out"})
      .outputOfAnyRank("out", ElementType::Float);
  Expected<std::shared_ptr<const Model>> Loaded =
      loadONNXModel(write(Writer), Options);
  EXPECT_EQ(Loaded.code(), ErrorCode::Unsupported);
  EXPECT_EQ(Loaded.message(),
            "onnx:" + path("m.onnx") +
                ": 'x': expected an input with a fixed rank, found "
                "float of any rank");
  EXPECT_EQ(*ask("onnx:" + write(add(1))), 2);
}

TEST_F(ONNXFileTest, AnOutputOfAnyRankIsNotAScalar) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {"n"})
      .node("Neg", {"x"}, {"out"})
      .node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}})
      .outputOfAnyRank("out", ElementType::Float)
      .output("sum", ElementType::Float, {});
  Expected<std::shared_ptr<const Model>> Loaded =
      loadONNXModel(write(Writer), Options);
  ASSERT_TRUE(Loaded) << Loaded.message();
  Span<const TensorSpec> Outputs = (*Loaded)->outputs();
  ASSERT_EQ(Outputs.size(), 2u);
  EXPECT_EQ(Outputs[0].typeStr(), "float[...]");
  EXPECT_EQ(Outputs[1].typeStr(), "float");
}

#ifdef MLBRIDGE_TEST_MODULES
TEST_F(ONNXFileTest, AnInvalidLibraryIsRefusedBeforeLoading) {
  std::ifstream Whole(MLBRIDGE_TEST_MODULES "/MLBridge-onnx.so",
                      std::ios::binary);
  std::string Bytes((std::istreambuf_iterator<char>(Whole)), {});
  Bytes.resize(Bytes.size() / 2);
  std::ofstream(path("cut.so"), std::ios::binary) << Bytes;
  ASSERT_EQ(::mkfifo(path("pipe.so").c_str(), 0600), 0);
  const std::string File = write(add(1));
  const std::pair<const char *, const char *> Cases[] = {
      {"cut.so", "it was cut short"},
      {"pipe.so", "expected a regular file, found a FIFO"},
      {"none.so", "No such file"}};
  for (auto [Name, Why] : Cases) {
    ONNXOptions Wrong;
    Wrong.Runtime = path(Name);
    Expected<std::shared_ptr<const Model>> Loaded = loadONNXModel(File, Wrong);
    EXPECT_EQ(Loaded.code(), ErrorCode::Unsupported);
    EXPECT_THAT(std::string(Loaded.message()), HasSubstr(Why));
    EXPECT_THAT(std::string(Loaded.message()), HasSubstr(path(Name)));
  }
  ONNXOptions Another;
  Another.Runtime = MLBRIDGE_TEST_MODULES "/MLBridge-onnx.so";
  EXPECT_THAT(std::string(loadONNXModel(File, Another).message()),
              HasSubstr("it lacks OrtGetApiBase"));
}
#endif
