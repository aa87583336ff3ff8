//===- FeatureSetTest.cpp - The features of a request ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests FeatureSet: each kind of value, ownership, and rounds (clear, then set
/// again). A round may use other names. Later rounds must allocate no memory.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"

#include "support/AllocationCounter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <span>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T> static std::vector<T> elements(const TensorView &View) {
  auto Elements = View.as<T>();
  EXPECT_TRUE(Elements) << View.typeStr();
  return Elements ? std::vector<T>(Elements->begin(), Elements->end())
                  : std::vector<T>();
}

static std::vector<std::string> strings(const TensorView &View) {
  std::vector<std::string> Out;
  std::string_view Text = View.text();
  for (std::uint64_t Length : View.Lengths) {
    Out.emplace_back(Text.substr(0, Length));
    Text.remove_prefix(Length);
  }
  EXPECT_TRUE(Text.empty());
  return Out;
}

static bool isAligned(const TensorView &View, std::size_t Alignment) {
  return reinterpret_cast<std::uintptr_t>(View.Data) % Alignment == 0;
}

//===----------------------------------------------------------------------===//
// Each kind of value
//===----------------------------------------------------------------------===//

namespace {
template <typename T> class FeatureSetNumbers : public testing::Test {};
} // namespace
using Numbers = testing::Types<std::int8_t, std::int16_t, std::int32_t,
                               std::int64_t, std::uint8_t, std::uint16_t,
                               std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(FeatureSetNumbers, Numbers);

TYPED_TEST(FeatureSetNumbers, ScalarsAreCopied) {
  FeatureSet F;
  TypeParam Value = 7;
  F.set("x", Value);
  Value = 8;
  ASSERT_EQ(F.size(), 1U);
  const TensorView &View = F.tensors()[0];
  EXPECT_EQ(View.Name, "x");
  EXPECT_EQ(View.Type, elementTypeOf<TypeParam>());
  EXPECT_TRUE(View.Dims.isScalar());
  EXPECT_THAT(elements<TypeParam>(View), ElementsAre(TypeParam(7)));
  EXPECT_TRUE(isAligned(View, 8));
}

TYPED_TEST(FeatureSetNumbers, ContainersAreCopied) {
  FeatureSet F;
  std::vector<TypeParam> Vector = {1, 2, 3};
  std::array<TypeParam, 2> Array = {4, 5};
  TypeParam Plain[] = {6, 7};
  F.set("vector", Vector);
  F.set("array", Array);
  F.set("plain", Plain);
  Vector.assign(3, 0);
  Array.fill(0);
  Plain[0] = 0;
  EXPECT_THAT(elements<TypeParam>(*F.find("vector")), ElementsAre(1, 2, 3));
  EXPECT_THAT(elements<TypeParam>(*F.find("array")), ElementsAre(4, 5));
  EXPECT_THAT(elements<TypeParam>(*F.find("plain")), ElementsAre(6, 7));
  for (const TensorView &View : F.tensors()) {
    EXPECT_TRUE(isAligned(View, 64)) << View.Name;
    EXPECT_EQ(View.Dims.rank(), 1U) << View.Name;
  }
}

TYPED_TEST(FeatureSetNumbers, ViewsAreBorrowed) {
  FeatureSet F;
  std::vector<TypeParam> Data = {1, 2, 3, 4, 5, 6};
  F.set("span", Span<const TypeParam>(Data));
  F.set("writable", Span<TypeParam>(Data));
  F.set("std", std::span<const TypeParam>(Data));
  F.set("ref", TensorRef(Data, {2, 3}));
  for (const TensorView &View : F.tensors()) {
    EXPECT_EQ(View.Data, Data.data()) << View.Name;
    EXPECT_EQ(View.NumBytes, 6 * sizeof(TypeParam)) << View.Name;
    EXPECT_EQ(View.Type, elementTypeOf<TypeParam>()) << View.Name;
  }
  EXPECT_EQ(F.find("span")->Dims, Shape({6}));
  EXPECT_EQ(F.find("ref")->Dims, Shape({2, 3}));
}

TYPED_TEST(FeatureSetNumbers, EmptyOnesHaveAnAddress) {
  FeatureSet F;
  F.set("vector", std::vector<TypeParam>());
  F.set("span", Span<const TypeParam>());
  F.set("ref", TensorRef(Span<const TypeParam>(), {3, 0}));
  ASSERT_FALSE(F.error()) << F.error().str();
  ASSERT_EQ(F.size(), 3U);
  for (const TensorView &View : F.tensors()) {
    EXPECT_NE(View.Data, nullptr) << View.Name;
    EXPECT_EQ(View.NumBytes, 0U) << View.Name;
    EXPECT_TRUE(isAligned(View, sizeof(TypeParam))) << View.Name;
  }
  EXPECT_EQ(F.find("ref")->Dims, Shape({3, 0}));
}

TEST(FeatureSetTest, Bools) {
  FeatureSet F;
  F.set("scalar", true);
  F.set("vector", std::vector<bool>{true, false, true});
  F.set("none", std::vector<bool>());
  F.set("array", std::array<bool, 2>{false, true});
  for (const TensorView &View : F.tensors())
    EXPECT_EQ(View.Type, ElementType::Bool) << View.Name;
  EXPECT_TRUE(F.find("scalar")->Dims.isScalar());
  EXPECT_THAT(elements<bool>(*F.find("scalar")), ElementsAre(true));
  EXPECT_THAT(elements<bool>(*F.find("vector")),
              ElementsAre(true, false, true));
  EXPECT_EQ(F.find("none")->Dims, Shape({0}));
  EXPECT_THAT(elements<bool>(*F.find("array")), ElementsAre(false, true));
}

TEST(FeatureSetTest, Strings) {
  FeatureSet F;
  std::string Text = "h\xC3\xA4ngt";
  F.set("string", Text);
  F.set("view", std::string_view(Text).substr(0, 1));
  F.set("literal", "abc");
  const char *Pointer = Text.c_str();
  F.set("pointer", Pointer);
  F.set("empty", "");
  F.set("zero", std::string(1, '\0'));
  Text = "something else altogether";
  for (const TensorView &View : F.tensors()) {
    EXPECT_EQ(View.Type, ElementType::String) << View.Name;
    EXPECT_TRUE(View.Dims.isScalar()) << View.Name;
    EXPECT_TRUE(View.Lengths.empty()) << View.Name;
    EXPECT_NE(View.Data, nullptr) << View.Name;
    EXPECT_EQ(View.numElements(), 1U) << View.Name;
  }
  EXPECT_EQ(F.find("string")->text(), "h\xC3\xA4ngt");
  EXPECT_EQ(F.find("view")->text(), "h");
  EXPECT_EQ(F.find("literal")->text(), "abc");
  EXPECT_EQ(F.find("pointer")->text(), "h\xC3\xA4ngt");
  EXPECT_EQ(F.find("empty")->text(), "");
  EXPECT_EQ(F.find("zero")->text(), std::string_view("\0", 1));
}

TEST(FeatureSetTest, ListsOfStrings) {
  FeatureSet F;
  F.set("strings", std::vector<std::string>{"one", "", "three"});
  F.set("views", std::array<std::string_view, 2>{"a", "bc"});
  const char *Literals[] = {"x", "yz"};
  F.set("literals", Literals);
  F.set("none", std::vector<std::string>());
  F.set("blank", std::vector<std::string>{"", ""});
  for (const TensorView &View : F.tensors()) {
    EXPECT_TRUE(View.isStringList()) << View.Name;
    EXPECT_EQ(View.Dims, Shape({std::int64_t(View.Lengths.size())}));
    EXPECT_NE(View.Data, nullptr) << View.Name;
  }
  EXPECT_THAT(strings(*F.find("strings")), ElementsAre("one", "", "three"));
  EXPECT_THAT(strings(*F.find("views")), ElementsAre("a", "bc"));
  EXPECT_THAT(strings(*F.find("literals")), ElementsAre("x", "yz"));
  EXPECT_THAT(strings(*F.find("none")), ElementsAre());
  EXPECT_THAT(strings(*F.find("blank")), ElementsAre("", ""));
}

TEST(FeatureSetTest, TensorViewsAreBorrowedUnderTheNewName) {
  FeatureSet Source, F;
  Source.set("a", std::vector<std::string>{"one", "two"});
  Source.set("b", 7);
  F.set("x", *Source.find("a"));
  F.set("y", *Source.find("b"));
  EXPECT_EQ(F.find("a"), nullptr);
  EXPECT_THAT(strings(*F.find("x")), ElementsAre("one", "two"));
  EXPECT_EQ(F.find("x")->Data, Source.find("a")->Data);
  EXPECT_THAT(elements<int>(*F.find("y")), ElementsAre(7));
}

//===----------------------------------------------------------------------===//
// Misuse
//===----------------------------------------------------------------------===//

TEST(FeatureSetTest, AShapeMustFitItsData) {
  FeatureSet F;
  std::vector<float> Data(10);
  F.set("good", 1);
  F.set("matrix", TensorRef(Data, {3, 4}));
  EXPECT_EQ(F.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(F.error().message(),
            "feature 'matrix': shape [3,4] needs 12 elements, found 10");
  EXPECT_EQ(F.find("matrix"), nullptr);

  F.set("later", TensorRef(Data, {-1, 10}));
  EXPECT_THAT(F.error().message(), HasSubstr("'matrix'")) << "the first stays";

  F.clear();
  EXPECT_FALSE(F.error());
  F.set("later", TensorRef(Data, {-1, 10}));
  EXPECT_EQ(F.error().message(), "feature 'later': shape [-1,10] has a "
                                 "negative extent or too many elements");
}

TEST(FeatureSetTest, CopiedViewsOutliveTheirSource) {
  FeatureSet From, F;
  {
    std::vector<float> Data = {1, 2, 3, 4, 5, 6};
    From.set("matrix", TensorRef(Data, {2, 3}));
    From.set("list", std::vector<std::string>{"a", "", "bc"});
    From.set("scalar", std::int16_t(-7));
    for (const TensorView &View : From.tensors())
      F.copy(View.Name, View);
    Data.assign(6, 0);
  }
  From.clear();
  From.set("other", std::vector<std::string>{"overwritten"});
  ASSERT_FALSE(F.error()) << F.error().message();
  ASSERT_EQ(F.size(), 3U);
  EXPECT_EQ(F.tensors()[0].typeStr(), "float[2,3]");
  EXPECT_EQ(elements<float>(F.tensors()[0]),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(strings(F.tensors()[1]), (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_EQ(elements<std::int16_t>(F.tensors()[2]),
            (std::vector<std::int16_t>{-7}));
  // Copy a tensor of the set itself, to another name and to the same name.
  F.copy("again", F.tensors()[1]);
  F.copy("matrix", F.tensors()[0]);
  EXPECT_EQ(strings(*F.find("again")),
            (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_EQ(elements<float>(*F.find("matrix"))[5], 6);
  TensorView Bad = F.tensors()[0];
  Bad.Dims = {7};
  F.copy("bad", Bad);
  EXPECT_EQ(F.error().code(), ErrorCode::InvalidArgument);
}

TEST(FeatureSetTest, ATensorViewMustNotContradictItself) {
  const std::uint64_t Lengths[] = {2, 3};
  TensorView Good;
  Good.Type = ElementType::String;
  Good.Dims = {2};
  Good.Data = "onetwo";
  Good.NumBytes = 5;
  Good.Lengths = Lengths;
  auto ErrorOf = [](TensorView View) {
    FeatureSet F;
    F.set("x", View);
    EXPECT_EQ(F.empty(), bool(F.error()));
    return F.error().message();
  };
  EXPECT_EQ(ErrorOf(Good), "");

  TensorView Bad = Good;
  Bad.NumBytes = 4;
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("feature 'x'"));
  Bad.NumBytes = 6;
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("feature 'x'"));
  Bad = Good;
  Bad.Dims = {3};
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("feature 'x'"));
  Bad.Dims = {1, 2};
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("rank 1"));
  Bad = Good;
  Bad.Data = nullptr;
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("null"));
  Bad = Good;
  Bad.Dims = {};
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("string is not a list of strings"));
  Bad = Good;
  Bad.Type = ElementType::Float;
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("float[2] is not a list of strings"));
  Bad.Lengths = {};
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("feature 'x'")) << "5 bytes of float";
  Bad.NumBytes = 4;
  EXPECT_THAT(ErrorOf(Bad), HasSubstr("feature 'x'")) << "1 float for [2]";
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

TEST(FeatureSetTest, KeepsTheOrderAndReplaces) {
  FeatureSet F;
  F.set("a", 1);
  F.set("b", 2);
  F.set("c", 3);
  F.set("b", "two");
  ASSERT_EQ(F.size(), 3U);
  EXPECT_EQ(F.tensors()[0].Name, "a");
  EXPECT_EQ(F.tensors()[1].Name, "b");
  EXPECT_EQ(F.tensors()[1].text(), "two");
  EXPECT_EQ(F.tensors()[2].Name, "c");
  EXPECT_EQ(F.find("d"), nullptr);

  F.clear();
  EXPECT_TRUE(F.empty());
  EXPECT_EQ(F.find("a"), nullptr) << "cleared features are not found";
  F.set("c", 1);
  F.set("a", 2);
  F.set("c", 3);
  ASSERT_EQ(F.size(), 2U);
  EXPECT_EQ(F.tensors()[0].Name, "c");
  EXPECT_THAT(elements<int>(F.tensors()[0]), ElementsAre(3));
  EXPECT_EQ(F.tensors()[1].Name, "a");
}

TEST(FeatureSetTest, CanBeMoved) {
  FeatureSet A;
  A.set("x", std::string(100, 'x'));
  A.set("short", 1);
  FeatureSet B = std::move(A);
  EXPECT_EQ(B.find("x")->text(), std::string(100, 'x'));
  EXPECT_EQ(B.tensors()[1].Name, "short");

  FeatureSet C;
  C.set("y", 2);
  C = std::move(B);
  EXPECT_EQ(C.size(), 2U);
  EXPECT_EQ(C.find("x")->text(), std::string(100, 'x'));

  A = FeatureSet();
  A.set("z", 3);
  EXPECT_EQ(A.size(), 1U);
  A.swap(C);
  EXPECT_EQ(A.size(), 2U);
  EXPECT_THAT(elements<int>(*C.find("z")), ElementsAre(3));
}

namespace {
/// A plain vector with the same contents, for comparison.
struct Model {
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> Entries;

  void set(const std::string &Name, std::vector<std::int32_t> Value) {
    for (auto &Entry : Entries)
      if (Entry.first == Name) {
        Entry.second = std::move(Value);
        return;
      }
    Entries.emplace_back(Name, std::move(Value));
  }
};
} // namespace

TEST(FeatureSetTest, AgreesWithAPlainVector) {
  std::mt19937 Random(1);
  auto Below = [&](std::size_t N) { return std::size_t(Random() % N); };
  FeatureSet F;
  std::vector<std::string> Names;
  for (int Round = 0; Round < 20'000; ++Round) {
    // Usually a round has the same names as the previous round. Sometimes the
    // names are shuffled, fewer, more or duplicate.
    if (Below(4) == 0) {
      Names.resize(Below(8));
      for (std::string &Name : Names)
        Name = std::string(Below(2) * 30, '.') + char('a' + Below(8));
    }
    F.clear();
    Model Expected;
    for (const std::string &Name : Names) {
      // A value has up to 4 KiB, so that the arena grows within a round.
      std::vector<std::int32_t> Value(Below(8) == 0 ? Below(1024) : Below(4));
      for (std::int32_t &I : Value)
        I = std::int32_t(Random());
      F.set(Name, Value);
      Expected.set(Name, Value);
    }
    ASSERT_EQ(F.size(), Expected.Entries.size());
    for (std::size_t I = 0; I < F.size(); ++I) {
      ASSERT_EQ(F.tensors()[I].Name, Expected.Entries[I].first);
      ASSERT_EQ(elements<std::int32_t>(F.tensors()[I]),
                Expected.Entries[I].second);
      ASSERT_TRUE(isAligned(F.tensors()[I], 64));
    }
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(FeatureSetTest, DoesNotAllocateOnceWarm) {
  std::vector<float> Embedding(300);
  std::vector<std::string> Names = {"main", "a function with a long name"};
  std::vector<bool> Flags(100);
  std::string Text(5000, 'x');
  FeatureSet F;
  auto Populate = [&] {
    F.clear();
    F.set("size", 12);
    F.set("a feature whose name is longer than a string's own buffer", 1.5);
    F.set("copied", Embedding);
    F.set("borrowed", Span<const float>(Embedding));
    F.set("matrix", TensorRef(Embedding, {30, 10}));
    F.set("text", Text);
    F.set("names", Names);
    F.set("flags", Flags);
    F.set("empty", std::string_view());
    F.set("size", 13);
  };
  Populate();
  Populate();
  AllocationCounter Allocations;
  for (int Round = 0; Round < 1000; ++Round)
    Populate();
  EXPECT_EQ(Allocations.count(), 0U);
  EXPECT_EQ(F.size(), 9U);
}

TEST(FeatureSetTest, IsWarmAfterOneRoundOfAnySize) {
  std::vector<double> Values(128);
  for (int Count : {1, 3, 10, 30, 100}) {
    FeatureSet F;
    auto Populate = [&] {
      for (int I = 0; I < Count; ++I)
        F.set(std::string(1, char('A' + I)), Values);
    };
    Populate();
    F.clear();
    AllocationCounter Allocations;
    Populate();
    EXPECT_EQ(Allocations.count(), 0U) << Count;
  }
}

TEST(FeatureSetTest, SettingAgainNeedsNoMoreMemory) {
  FeatureSet F;
  std::vector<double> Values(100);
  auto Set = [&](std::size_t Size) {
    F.set("scalar", double(Size));
    F.set("vector",
          std::string_view(reinterpret_cast<char *>(Values.data()), Size));
  };
  Set(Values.size());
  AllocationCounter Allocations;
  for (std::size_t I = 0; I < 100'000; ++I)
    Set(I % Values.size());
  EXPECT_EQ(Allocations.count(), 0U);
}
