//===- CTensorTest.cpp - Every type, in and out ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests that the model receives the values that C sets, and that C receives
/// the reply's values. Values are only converted if this preserves them.
///
//===----------------------------------------------------------------------===//

#include "capi/CAPITest.h"
#include "support/AllocationCounter.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The functions of the API for one C type.
template <typename T> struct FunctionsOf;
#define FUNCTIONS_OF(NAME, TYPE)                                               \
  template <> struct FunctionsOf<TYPE> {                                       \
    static constexpr auto Element = MLBridgeElement##NAME;                     \
    static constexpr auto Set = mlbridgeSet##NAME;                             \
    static constexpr auto SetVector = mlbridgeSet##NAME##Vector;               \
    static constexpr auto BorrowVector = mlbridgeBorrow##NAME##Vector;         \
    static constexpr auto Get = mlbridgeGet##NAME;                             \
    static constexpr auto GetVector = mlbridgeGet##NAME##Vector;               \
    static constexpr auto Evaluate = mlbridgeEvaluate##NAME;                   \
    static constexpr auto EvaluateVector = mlbridgeEvaluate##NAME##Vector;     \
  };
FUNCTIONS_OF(Int8, std::int8_t)
FUNCTIONS_OF(Int16, std::int16_t)
FUNCTIONS_OF(Int32, std::int32_t)
FUNCTIONS_OF(Int64, std::int64_t)
FUNCTIONS_OF(UInt8, std::uint8_t)
FUNCTIONS_OF(UInt16, std::uint16_t)
FUNCTIONS_OF(UInt32, std::uint32_t)
FUNCTIONS_OF(UInt64, std::uint64_t)
FUNCTIONS_OF(Float, float)
FUNCTIONS_OF(Double, double)
FUNCTIONS_OF(Bool, bool)
#undef FUNCTIONS_OF

template <typename T> class CTensorTest : public testing::Test {
protected:
  using Functions = FunctionsOf<T>;

  ReplyFunction Echo = echo;
  RunnerHandle Model = makeRunner(Echo);
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model.get());
};

using AllTypes =
    testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                   float, double, bool>;
TYPED_TEST_SUITE(CTensorTest, AllTypes);

TYPED_TEST(CTensorTest, AScalarComesBack) {
  using F = FunctionsOf<TypeParam>;
  for (TypeParam Value : {std::numeric_limits<TypeParam>::lowest(),
                          std::numeric_limits<TypeParam>::max()}) {
    ASSERT_EQ(F::Set(this->Features, "x", Value), MLBridgeStatusSuccess);
    TypeParam Found = !Value;
    ASSERT_EQ(F::Evaluate(this->Model.get(), &Found), MLBridgeStatusSuccess)
        << lastMessage();
    EXPECT_EQ(Found, Value);
  }
}

TYPED_TEST(CTensorTest, AVectorComesBack) {
  using F = FunctionsOf<TypeParam>;
  const std::array<TypeParam, 3> Values = {TypeParam(1), TypeParam(0),
                                           TypeParam(1)};
  for (auto Set : {F::SetVector, F::BorrowVector})
    for (std::size_t Count : {0, 1, 3}) {
      ASSERT_EQ(Set(this->Features, "x", Values.data(), Count),
                MLBridgeStatusSuccess);
      const TypeParam *Found = nullptr;
      std::size_t FoundCount = 99;
      ASSERT_EQ(F::EvaluateVector(this->Model.get(), &Found, &FoundCount),
                MLBridgeStatusSuccess)
          << lastMessage();
      ASSERT_EQ(FoundCount, Count);
      ASSERT_NE(Found, nullptr);
      for (std::size_t I = 0; I != Count; ++I)
        EXPECT_EQ(Found[I], Values[I]);
    }
}

TYPED_TEST(CTensorTest, ItsTypeAndShapeAreThoseThatWereSet) {
  using F = FunctionsOf<TypeParam>;
  const TypeParam Values[6] = {};
  const std::int64_t Extents[] = {2, 3};
  ASSERT_EQ(mlbridgeSetTensor(this->Features, "matrix", F::Element, Values,
                              Extents, 2),
            MLBridgeStatusSuccess);
  ASSERT_EQ(F::Set(this->Features, "scalar", TypeParam(1)),
            MLBridgeStatusSuccess);
  MLBridgeAdviceRef Advice;
  ASSERT_EQ(mlbridgeEvaluate(this->Model.get(), &Advice),
            MLBridgeStatusSuccess);
  ASSERT_EQ(mlbridgeGetNumTensors(Advice), 2U);
  MLBridgeTensor Tensor;
  ASSERT_EQ(mlbridgeGetTensorAt(Advice, 0, &Tensor), MLBridgeStatusSuccess);
  EXPECT_STREQ(Tensor.Name, "matrix");
  EXPECT_EQ(Tensor.Type, F::Element);
  ASSERT_EQ(Tensor.Rank, 2U);
  EXPECT_EQ(Tensor.Extents[0], 2);
  EXPECT_EQ(Tensor.Extents[1], 3);
  EXPECT_EQ(Tensor.NumElements, 6U);
  EXPECT_EQ(Tensor.NumBytes, 6 * sizeof(TypeParam));
  EXPECT_EQ(Tensor.Lengths, nullptr);
  EXPECT_EQ(std::memcmp(Tensor.Data, Values, sizeof(Values)), 0);
  ASSERT_EQ(mlbridgeGetTensor(Advice, "scalar", &Tensor),
            MLBridgeStatusSuccess);
  EXPECT_EQ(Tensor.Rank, 0U);
  EXPECT_EQ(Tensor.NumElements, 1U);

  TypeParam Scalar = 0;
  ASSERT_EQ(F::Get(Advice, "scalar", &Scalar), MLBridgeStatusSuccess);
  EXPECT_EQ(Scalar, TypeParam(1));
  const TypeParam *Matrix = nullptr;
  std::size_t Count = 0;
  ASSERT_EQ(F::GetVector(Advice, "matrix", &Matrix, &Count),
            MLBridgeStatusSuccess);
  ASSERT_EQ(Count, 6U);
  EXPECT_EQ(std::memcmp(Matrix, Values, sizeof(Values)), 0);
}

class CAdviceTest : public testing::Test {
protected:
  /// Sends the features. The model returns them under the same names.
  MLBridgeAdviceRef evaluate() {
    MLBridgeAdviceRef Advice = nullptr;
    EXPECT_EQ(mlbridgeEvaluate(Model.get(), &Advice), MLBridgeStatusSuccess)
        << lastMessage();
    return Advice;
  }

  ReplyFunction Echo = echo;
  RunnerHandle Model = makeRunner(Echo);
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model.get());
};

TEST_F(CAdviceTest, ConversionsKeepTheValueOrFail) {
  mlbridgeSetInt64(Features, "five", 5);
  mlbridgeSetInt64(Features, "many", 300);
  mlbridgeSetDouble(Features, "half", 0.5);
  mlbridgeSetDouble(Features, "one", 1.0);
  MLBridgeAdviceRef Advice = evaluate();

  std::int8_t Small = -1;
  float Number = -1;
  bool Flag = false;
  EXPECT_EQ(mlbridgeGetInt8(Advice, "five", &Small), MLBridgeStatusSuccess);
  EXPECT_EQ(Small, 5);
  EXPECT_EQ(mlbridgeGetFloat(Advice, "half", &Number), MLBridgeStatusSuccess);
  EXPECT_EQ(Number, 0.5F);
  EXPECT_EQ(mlbridgeGetBool(Advice, "one", &Flag), MLBridgeStatusSuccess);
  EXPECT_TRUE(Flag);

  EXPECT_EQ(mlbridgeGetInt8(Advice, "many", &Small),
            MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("advice 'many'"));
  EXPECT_THAT(lastMessage(), HasSubstr("int8_t cannot represent"));
  EXPECT_EQ(mlbridgeGetInt8(Advice, "half", &Small),
            MLBridgeStatusSchemaMismatch);
  EXPECT_EQ(mlbridgeGetBool(Advice, "five", &Flag),
            MLBridgeStatusSchemaMismatch);
  EXPECT_EQ(mlbridgeGetBool(Advice, nullptr, &Flag),
            MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("'one' double; pass an output's name"));
  // A call that fails writes nothing.
  EXPECT_EQ(Small, 5);
  EXPECT_TRUE(Flag);
}

TEST_F(CAdviceTest, VectorsAreConvertedOnceAndSeenInPlaceWhereTheyFit) {
  const float Values[] = {1, 2, 3};
  mlbridgeBorrowFloatVector(Features, "x", Values, 3);
  MLBridgeAdviceRef Advice = evaluate();
  MLBridgeTensor Tensor;
  ASSERT_EQ(mlbridgeGetTensor(Advice, "x", &Tensor), MLBridgeStatusSuccess);
  const float *Floats;
  const std::int16_t *Shorts, *Again;
  std::size_t Count;
  ASSERT_EQ(mlbridgeGetFloatVector(Advice, nullptr, &Floats, &Count),
            MLBridgeStatusSuccess);
  EXPECT_EQ(Floats, Tensor.Data);
  ASSERT_EQ(mlbridgeGetInt16Vector(Advice, nullptr, &Shorts, &Count),
            MLBridgeStatusSuccess);
  EXPECT_THAT(std::vector(Shorts, Shorts + Count), ElementsAre(1, 2, 3));
  ASSERT_EQ(mlbridgeGetInt16Vector(Advice, "x", &Again, &Count),
            MLBridgeStatusSuccess);
  EXPECT_EQ(Again, Shorts);
}

TEST_F(CAdviceTest, AVectorThatCannotBeConvertedLeavesWhatWasThere) {
  const double Values[] = {1, 0.5};
  mlbridgeSetDoubleVector(Features, "x", Values, 2);
  MLBridgeAdviceRef Advice = evaluate();
  const std::int32_t Mine = 7, *Ints = &Mine;
  std::size_t Count = 1;
  EXPECT_EQ(mlbridgeGetInt32Vector(Advice, "x", &Ints, &Count),
            MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("element 1 of double[2] is 0.5"));
  EXPECT_EQ(Ints, &Mine);
  EXPECT_EQ(Count, 1U);
  // A vector does not convert to a scalar.
  double Number;
  EXPECT_EQ(mlbridgeGetDouble(Advice, "x", &Number),
            MLBridgeStatusSchemaMismatch);
}

TEST_F(CAdviceTest, StringsAndListsOfThem) {
  const char *Texts[] = {"loop", "", "Schleife äöü"};
  const char *WithNul[] = {"a\0b", "c"};
  const std::size_t Lengths[] = {3, 1};
  mlbridgeSetString(Features, "text", "-O2");
  mlbridgeSetStringWithLength(Features, "nul", "x\0y", 3);
  mlbridgeSetStringVector(Features, "list", Texts, nullptr, 3);
  mlbridgeSetStringVector(Features, "nuls", WithNul, Lengths, 2);
  mlbridgeSetStringVector(Features, "none", nullptr, nullptr, 0);
  MLBridgeAdviceRef Advice = evaluate();

  const char *Text;
  std::size_t Length;
  ASSERT_EQ(mlbridgeGetString(Advice, "text", &Text, nullptr),
            MLBridgeStatusSuccess);
  EXPECT_STREQ(Text, "-O2");
  ASSERT_EQ(mlbridgeGetString(Advice, "nul", &Text, &Length),
            MLBridgeStatusSuccess);
  EXPECT_EQ(std::string(Text, Length), std::string("x\0y", 3));
  EXPECT_EQ(Text[3], '\0');

  const char *const *List;
  std::size_t Count;
  ASSERT_EQ(mlbridgeGetStringVector(Advice, "list", &List, &Count),
            MLBridgeStatusSuccess);
  ASSERT_EQ(Count, 3U);
  for (std::size_t I = 0; I != 3; ++I)
    EXPECT_STREQ(List[I], Texts[I]);
  ASSERT_EQ(mlbridgeGetStringVector(Advice, "nuls", &List, &Count),
            MLBridgeStatusSuccess);
  MLBridgeTensor Tensor;
  ASSERT_EQ(mlbridgeGetTensor(Advice, "nuls", &Tensor), MLBridgeStatusSuccess);
  ASSERT_EQ(Tensor.NumElements, 2U);
  EXPECT_EQ(Tensor.Lengths[0], 3U);
  EXPECT_EQ(std::memcmp(List[0], "a\0b", 4), 0);
  EXPECT_STREQ(List[1], "c");
  ASSERT_EQ(mlbridgeGetStringVector(Advice, "none", &List, &Count),
            MLBridgeStatusSuccess);
  EXPECT_EQ(Count, 0U);
  // A string can be read as a list of one string, but a list of one string
  // cannot be read as a string.
  ASSERT_EQ(mlbridgeGetStringVector(Advice, "text", &List, &Count),
            MLBridgeStatusSuccess);
  ASSERT_EQ(Count, 1U);
  EXPECT_STREQ(List[0], "-O2");
  EXPECT_EQ(mlbridgeGetString(Advice, "list", &Text, nullptr),
            MLBridgeStatusSchemaMismatch);
  // Numbers and strings do not convert to each other.
  std::int32_t Number;
  EXPECT_EQ(mlbridgeGetInt32(Advice, "text", &Number),
            MLBridgeStatusSchemaMismatch);
  const std::int32_t *Numbers;
  EXPECT_EQ(mlbridgeGetInt32Vector(Advice, "list", &Numbers, &Count),
            MLBridgeStatusSchemaMismatch);
}

TEST_F(CAdviceTest, EvaluatingToStrings) {
  mlbridgeSetString(Features, "x", "vectorize");
  const char *Text;
  std::size_t Length = 0;
  ASSERT_EQ(mlbridgeEvaluateString(Model.get(), &Text, &Length),
            MLBridgeStatusSuccess);
  EXPECT_STREQ(Text, "vectorize");
  EXPECT_EQ(Length, 9U);
  const char *Passes[] = {"sroa", "gvn"};
  mlbridgeSetStringVector(Features, "x", Passes, nullptr, 2);
  const char *const *List;
  std::size_t Count = 0;
  ASSERT_EQ(mlbridgeEvaluateStringVector(Model.get(), &List, &Count),
            MLBridgeStatusSuccess);
  ASSERT_EQ(Count, 2U);
  EXPECT_STREQ(List[1], "gvn");
  mlbridgeSetInt32(Features, "x", 1);
  EXPECT_EQ(mlbridgeEvaluateString(Model.get(), &Text, &Length),
            MLBridgeStatusSchemaMismatch);
  mlbridgeSetInt32(Features, "x", 1);
  EXPECT_EQ(mlbridgeEvaluateStringVector(Model.get(), &List, &Count),
            MLBridgeStatusSchemaMismatch);
}

TEST_F(CAdviceTest, OutputsByNameAndTheOnlyOne) {
  mlbridgeSetInt32(Features, "node", 1);
  mlbridgeSetInt32(Features, "out", 2);
  MLBridgeAdviceRef Advice = evaluate();
  std::int32_t Number = 0;
  ASSERT_EQ(mlbridgeGetInt32(Advice, nullptr, &Number), MLBridgeStatusSuccess);
  EXPECT_EQ(Number, 2);
  ASSERT_EQ(mlbridgeGetInt32(Advice, "node", &Number), MLBridgeStatusSuccess);
  EXPECT_EQ(Number, 1);
  EXPECT_EQ(mlbridgeGetInt32(Advice, "colour", &Number),
            MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("colour"));
  EXPECT_THAT(lastMessage(), HasSubstr("'node' int32_t"));
  MLBridgeTensor Tensor;
  EXPECT_EQ(mlbridgeGetTensorAt(Advice, 2, &Tensor),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("expected an index below 2"));
}

TEST_F(CAdviceTest, SetCopiesAndBorrowRefers) {
  float Copied[] = {1}, Borrowed[] = {1};
  mlbridgeSetFloatVector(Features, "copied", Copied, 1);
  mlbridgeBorrowFloatVector(Features, "borrowed", Borrowed, 1);
  Copied[0] = Borrowed[0] = 2;
  MLBridgeAdviceRef Advice = evaluate();
  float Found;
  ASSERT_EQ(mlbridgeGetFloat(Advice, "copied", &Found), MLBridgeStatusSuccess);
  EXPECT_EQ(Found, 1);
  ASSERT_EQ(mlbridgeGetFloat(Advice, "borrowed", &Found),
            MLBridgeStatusSuccess);
  EXPECT_EQ(Found, 2);
}

TEST_F(CAdviceTest, AFeatureThatCouldNotBeSetFailsTheRequest) {
  const float Values[6] = {};
  const std::int64_t Negative[] = {2, -3},
                     TooDeep[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(mlbridgeSetTensor(Features, "x", MLBridgeElementFloat, Values,
                              Negative, 2),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("feature 'x': shape [2,-3]"));
  // Several calls fail, but the request reports the first failure.
  EXPECT_EQ(mlbridgeBorrowTensor(Features, "y", MLBridgeElementFloat, Values,
                                 TooDeep, 9),
            MLBridgeStatusInvalidArgument);
  EXPECT_EQ(mlbridgeSetTensor(Features, "y", MLBridgeElementString, Values,
                              nullptr, 0),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("mlbridgeSetString"));
  EXPECT_EQ(mlbridgeSetTensor(Features, "y", MLBridgeElementType(12), Values,
                              nullptr, 0),
            MLBridgeStatusInvalidArgument);
  // A later valid call succeeds on its own.
  EXPECT_EQ(mlbridgeSetInt32(Features, "z", 1), MLBridgeStatusSuccess);
  std::int32_t Number = 7;
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Number),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("feature 'x': shape [2,-3]"));
  EXPECT_EQ(Number, 7);
  // The request cleared the failure.
  mlbridgeSetInt32(Features, "z", 1);
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Number), MLBridgeStatusSuccess);
  EXPECT_EQ(Number, 1);
  // Clearing the features also clears the failure.
  EXPECT_NE(mlbridgeSetString(Features, "x", nullptr), MLBridgeStatusSuccess);
  EXPECT_EQ(mlbridgeClearFeatures(Features), MLBridgeStatusSuccess);
  mlbridgeSetInt32(Features, "z", 2);
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Number), MLBridgeStatusSuccess);
}

TEST_F(CAdviceTest, MemoryThatRunsOutIsReported) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer's operator new ends the process";
#endif
#endif
  const std::int8_t Byte = 0;
  const std::int64_t SixtyFourTebibytes = std::int64_t(1) << 46;
  EXPECT_EQ(mlbridgeSetTensor(Features, "x", MLBridgeElementInt8, &Byte,
                              &SixtyFourTebibytes, 1),
            MLBridgeStatusSystem);
  EXPECT_EQ(lastMessage(), "memory has run out");
  std::int32_t Number;
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Number), MLBridgeStatusSystem);
  mlbridgeSetInt32(Features, "x", 3);
  ASSERT_EQ(mlbridgeEvaluateInt32(Model.get(), &Number), MLBridgeStatusSuccess);
  EXPECT_EQ(Number, 3);
}

TEST_F(CAdviceTest, OnceWarmNothingIsAllocated) {
  const float Embedding[300] = {};
  const char *Passes[] = {"sroa", "gvn"};
  EXPECT_EQ(
      allocationsOnceWarm([&] {
        mlbridgeSetInt32(Features, "size", 12);
        mlbridgeSetFloatVector(Features, "embedding", Embedding, 300);
        mlbridgeSetString(Features, "function", "main");
        mlbridgeSetStringVector(Features, "passes", Passes, nullptr, 2);
        MLBridgeAdviceRef Advice = evaluate();
        MLBridgeTensor Tensor;
        const double *Doubles;
        const char *Text;
        const char *const *Texts;
        std::size_t Count;
        EXPECT_EQ(mlbridgeGetTensorAt(Advice, 1, &Tensor),
                  MLBridgeStatusSuccess);
        EXPECT_EQ(
            mlbridgeGetDoubleVector(Advice, "embedding", &Doubles, &Count),
            MLBridgeStatusSuccess);
        EXPECT_EQ(mlbridgeGetString(Advice, "function", &Text, nullptr),
                  MLBridgeStatusSuccess);
        EXPECT_EQ(mlbridgeGetStringVector(Advice, "passes", &Texts, &Count),
                  MLBridgeStatusSuccess);
      }),
      0U);
}

TEST_F(CAdviceTest, CopyingATensorOfAnotherAdvice) {
  const char *Texts[] = {"a", "bc"};
  mlbridgeSetStringVector(Features, "list", Texts, nullptr, 2);
  MLBridgeAdviceRef Advice = evaluate();
  ReplyFunction Echo = echo;
  RunnerHandle Other = makeRunner(Echo);
  ASSERT_EQ(mlbridgeCopyTensor(mlbridgeGetFeatures(Other.get()), "copy", Advice,
                               nullptr),
            MLBridgeStatusSuccess);
  EXPECT_EQ(mlbridgeCopyTensor(mlbridgeGetFeatures(Model.get()), "copy", Advice,
                               "nothing"),
            MLBridgeStatusSchemaMismatch);
  Model.reset();
  const char *const *List;
  std::size_t Count;
  ASSERT_EQ(mlbridgeEvaluateStringVector(Other.get(), &List, &Count),
            MLBridgeStatusSuccess);
  ASSERT_EQ(Count, 2U);
  EXPECT_STREQ(List[1], "bc");
}

} // namespace
