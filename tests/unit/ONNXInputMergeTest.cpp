//===- ONNXInputMergeTest.cpp - Many small inputs as one ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests which inputs of a graph are passed to ONNX Runtime as one input, that
/// callers see no difference, and which graphs stay unchanged.
///
//===----------------------------------------------------------------------===//

#include "ONNX/InputMerge.h"

#include "support/AllocationCounter.h"
#include "support/ONNXTest.h"

#include <gmock/gmock.h>

#include <fstream>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
class ONNXInputMergeTest : public ONNXTest {
protected:
  using Inputs = std::vector<std::string>;

  /// A graph whose inputs have the shape [N,1]. They are concatenated into one
  /// row, and the output is computed from that row.
  static ONNXWriter row(const Inputs &Names,
                        ElementType Type = ElementType::Int64) {
    ONNXWriter Writer;
    for (const std::string &Name : Names)
      Writer.input(Name, Type, {"N", 1});
    return Writer.node("Concat", Names, {"row"}, {{"axis", 1}})
        .node("Neg", {"row"}, {"out"})
        .output("out", Type, {"N", std::int64_t(Names.size())});
  }
  std::size_t numMerged(const ONNXWriter &Writer) const {
    auto Merged = onnx::mergeInputs(write(Writer));
    return Merged ? Merged->Merged.size() : 0;
  }
  /// Returns the reply of the model in m.onnx, as a list.
  template <typename T, typename... Features>
  Expected<std::vector<T>> ask(Features &&...F) const {
    auto Runner = Factory.create("onnx:" + path("m.onnx"));
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::forward<Features>(F)...);
    return (*Runner)->template tryEvaluate<std::vector<T>>();
  }
};
} // namespace

TEST_F(ONNXInputMergeTest, ARowOfNumbersIsOneInput) {
  const std::string File = write(row({"a", "b", "c"}));
  auto Merged = onnx::mergeInputs(File);
  ASSERT_TRUE(Merged);
  ASSERT_EQ(Merged->Merged.size(), 1u);
  EXPECT_EQ(Merged->Merged[0].Name, "row");
  EXPECT_THAT(Merged->Inputs, ElementsAre("a", "b", "c"));
  auto Reply = ask<std::int64_t>(std::pair{"c", std::int64_t(3)},
                                 std::pair{"a", std::int64_t(1)},
                                 std::pair{"b", std::int64_t(2)});
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_THAT(*Reply, ElementsAre(-1, -2, -3));
}

TEST_F(ONNXInputMergeTest, CallersSeeTheInputsOfTheFile) {
  ONNXWriter Writer;
  Writer.input("a", ElementType::Float, {"N", 2})
      .input("other", ElementType::Bool, {})
      .input("b", ElementType::Float, {"N", 1})
      .node("Concat", {"b", "a"}, {"row"}, {{"axis", -1}})
      .node("Neg", {"row"}, {"less"})
      .node("Where", {"other", "row", "less"}, {"out"})
      .output("out", ElementType::Float, {"N", 3});
  const std::string File = write(Writer);
  EXPECT_EQ(numMerged(Writer), 1u);
  auto Loaded = loadONNXModel(File, Options);
  ASSERT_TRUE(Loaded) << Loaded.message();
  Span<const TensorSpec> Inputs = (*Loaded)->inputs();
  ASSERT_EQ(Inputs.size(), 3u);
  EXPECT_EQ(Inputs[0].Name + Inputs[0].typeStr(), "afloat[?,2]");
  EXPECT_EQ(Inputs[1].Name + Inputs[1].typeStr(), "otherbool");
  EXPECT_EQ(Inputs[2].Name + Inputs[2].typeStr(), "bfloat[?,1]");
  // The inputs are concatenated row by row.
  const std::vector<float> A{1, 2, 3, 4}, B{5, 6};
  const TensorRef Rows(A, {2, 2}), Column(B, {2, 1});
  auto Reply = ask<float>(std::pair{"a", Rows}, std::pair{"b", Column},
                          std::pair{"other", true});
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_THAT(*Reply, ElementsAre(5, 1, 2, 6, 3, 4));
  auto Uneven = ask<float>(std::pair{"a", Rows}, std::pair{"b", 1.0f},
                           std::pair{"other", true});
  EXPECT_EQ(Uneven.code(), ErrorCode::SchemaMismatch);
  auto Missing = ask<float>(std::pair{"a", Rows}, std::pair{"other", true});
  EXPECT_EQ(Missing.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Missing.message()), HasSubstr("'b' float[?,1]"));
}

TEST_F(ONNXInputMergeTest, RowsHaveOneShape) {
  ONNXWriter Writer;
  Writer.input("a", ElementType::Float, {"N", "M", 1})
      .input("b", ElementType::Float, {"N", "M", 1})
      .node("Concat", {"a", "b"}, {"row"}, {{"axis", 2}})
      .node("Neg", {"row"}, {"out"})
      .output("out", ElementType::Float, {"N", "M", 2});
  EXPECT_EQ(numMerged(Writer), 1u);
  const std::vector<float> Six{1, 2, 3, 4, 5, 6};
  const TensorRef Wide(Six, {2, 3, 1}), Long(Six, {3, 2, 1});
  EXPECT_TRUE(ask<float>(std::pair{"a", Wide}, std::pair{"b", Wide}));
  auto Reply = ask<float>(std::pair{"a", Wide}, std::pair{"b", Long});
  EXPECT_EQ(Reply.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Reply.message()), HasSubstr("float[3,2,1]"));
}

TEST_F(ONNXInputMergeTest, FollowsTheNumberOfRows) {
  write(row({"a", "b"}, ElementType::Double));
  auto Runner = Factory.create("onnx:" + path("m.onnx"));
  ASSERT_TRUE(Runner) << Runner.message();
  for (std::int64_t N : {1, 3, 0, 1000, 3, 1}) {
    std::vector<double> A(std::size_t(N), 1), B(std::size_t(N), 2);
    (*Runner)->populateFeatures(std::pair{"a", TensorRef(A, {N, 1})},
                                std::pair{"b", TensorRef(B, {N, 1})});
    auto Reply = (*Runner)->tryEvaluate<std::vector<double>>();
    ASSERT_TRUE(Reply) << Reply.message();
    ASSERT_EQ(Reply->size(), std::size_t(2 * N));
    for (std::size_t I = 0; I < Reply->size(); ++I)
      ASSERT_EQ((*Reply)[I], I % 2 ? -2 : -1);
  }
}

TEST_F(ONNXInputMergeTest, ColumnsOfVectorsAreMerged) {
  ONNXWriter Writer;
  Writer.input("a", ElementType::Int32, {"N"})
      .input("b", ElementType::Int32, {"N", 2})
      .constant("axis", {1}, std::vector<std::int64_t>{1})
      .node("Unsqueeze", {"a", "axis"}, {"column"})
      .node("Concat", {"column", "b"}, {"row"}, {{"axis", 1}})
      .node("Neg", {"row"}, {"out"})
      .output("out", ElementType::Int32, {"N", 3});
  EXPECT_EQ(numMerged(Writer), 1u);
  const std::vector<std::int32_t> B{2, 3};
  auto Reply = ask<std::int32_t>(std::pair{"a", std::int32_t(1)},
                                 std::pair{"b", Span<const std::int32_t>(B)});
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_THAT(*Reply, ElementsAre(-1, -2, -3));
  EXPECT_EQ(numMerged(Writer.input("axis", ElementType::Int64, {1})), 0u)
      << "the axis is an input";
}

TEST_F(ONNXInputMergeTest, KeepsInputsWithOtherUses) {
  const ONNXWriter Plain = row({"a", "b"});
  EXPECT_EQ(numMerged(Plain), 1u);
  EXPECT_EQ(numMerged(ONNXWriter(Plain).node("Neg", {"a"}, {"more"})), 0u)
      << "read twice";
  EXPECT_EQ(
      numMerged(ONNXWriter(Plain).output("b", ElementType::Int64, {"N", 1})),
      0u)
      << "also an output";
  EXPECT_EQ(
      numMerged(ONNXWriter(Plain).output("row", ElementType::Int64, {"N", 2})),
      0u)
      << "the row is also an output";
  EXPECT_EQ(numMerged(ONNXWriter(Plain).constant("a", {1, 1},
                                                 std::vector<std::int64_t>{1})),
            0u)
      << "a default value";
  EXPECT_EQ(numMerged(ONNXWriter(Plain).sparseConstant(
                "a", {1, 1}, std::vector<std::int64_t>{1})),
            0u)
      << "a sparse default value";
  EXPECT_EQ(numMerged(ONNXWriter(Plain).node("Neg", {"out"}, {"row"})), 0u)
      << "another node also makes the row";
  EXPECT_EQ(numMerged(ONNXWriter(Plain).node("Neg", {"out"}, {"b"})), 0u)
      << "also a node's output";
  EXPECT_EQ(numMerged(row({"a", "b"}, ElementType::String)), 0u);
  EXPECT_EQ(numMerged(row({"a"})), 0u);
  EXPECT_EQ(numMerged(row({"a", "a"})), 0u);
  EXPECT_EQ(numMerged(add(1)), 0u);
  EXPECT_EQ(numMerged(row({"a", ""})), 0u)
      << "an empty name means an omitted value";
  ONNXWriter Free;
  Free.input("a", ElementType::Float, {"n"})
      .input("b", ElementType::Float, {"m"})
      .node("Concat", {"a", "b"}, {"row"}, {{"axis", 0}})
      .node("Neg", {"row"}, {"out"})
      .output("out", ElementType::Float, {"k"});
  EXPECT_EQ(numMerged(Free), 0u) << "rows of free length";
  ONNXWriter Uneven;
  Uneven.input("a", ElementType::Float, {"n", 1})
      .input("b", ElementType::Float, {"m", 1})
      .node("Concat", {"a", "b"}, {"row"}, {{"axis", 1}})
      .node("Neg", {"row"}, {"out"})
      .output("out", ElementType::Float, {"k", 2});
  EXPECT_EQ(numMerged(Uneven), 0u) << "different names for the number of rows";
}

TEST_F(ONNXInputMergeTest, AnInvalidGraphIsRefused) {
  // No node produces the input b of Add.
  ONNXWriter Writer;
  Writer.input("a", ElementType::Int64, {"N", 1})
      .input("c", ElementType::Int64, {"N", 1})
      .node("Concat", {"a", "c"}, {"row"}, {{"axis", 1}})
      .node("Add", {"row", "b"}, {"out"})
      .output("out", ElementType::Int64, {"N", 2});
  auto Loaded = loadONNXModel(write(Writer), Options);
  EXPECT_FALSE(Loaded);
  EXPECT_THAT(std::string(Loaded.message()), HasSubstr(path("m.onnx")));
}

TEST_F(ONNXInputMergeTest, ATruncatedFileIsNotMerged) {
  const std::string Bytes = row({"a", "b", "c"}).bytes();
  for (std::size_t Length = 0; Length < Bytes.size(); ++Length) {
    std::ofstream(path("cut"), std::ios::binary) << Bytes.substr(0, Length);
    auto Merged = onnx::mergeInputs(path("cut"));
    // A truncated file is merged only if the whole graph is in it.
    EXPECT_TRUE(!Merged || Length + 32 > Bytes.size()) << Length;
  }
  EXPECT_FALSE(onnx::mergeInputs(path("nowhere")));
}

TEST_F(ONNXInputMergeTest, AllocatesNoMoreThanOneInput) {
  write(row({"a", "b", "c", "d"}), "many.onnx");
  ONNXWriter One;
  One.input("row", ElementType::Int64, {"N", 4})
      .node("Neg", {"row"}, {"out"})
      .output("out", ElementType::Int64, {"N", 4});
  write(One, "one.onnx");
  ONNXModelRunner Many(path("many.onnx"), {}, Options);
  ONNXModelRunner Single(path("one.onnx"), {}, Options);
  const std::vector<std::int64_t> Row{1, 2, 3, 4};
  const std::size_t Floor = allocationsOnceWarm([&] {
    Single.populateFeatures(std::pair{"row", Span<const std::int64_t>(Row)});
    EXPECT_EQ(Single.evaluate<Span<const std::int64_t>>()[3], -4);
  });
  EXPECT_LE(allocationsOnceWarm([&] {
              Many.populateFeatures(
                  std::pair{"a", Row[0]}, std::pair{"b", Row[1]},
                  std::pair{"c", Row[2]}, std::pair{"d", Row[3]});
              EXPECT_EQ(Many.evaluate<Span<const std::int64_t>>()[3], -4);
            }),
            Floor);
}
