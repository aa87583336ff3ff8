//===- ProtobufSerDesTest.cpp - Generic messages --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ProtobufSerDes against protoc's generated code for
/// mlcompilerbridge.proto. Each side must read the other side's messages. Also
/// tests messages that foreign or hostile peers may send.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#include "MLCompilerBridge/FeatureSet.h"
#include "mlcompilerbridge.pb.h"
#include "support/AllocationCounter.h"
#include "support/Messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using mlcompilerbridge::Observation;
using mlcompilerbridge::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string write(const FeatureSet &Set) {
  ProtobufSerDes Codec;
  Expected<Message> Written = serialize(Codec, Set.tensors());
  EXPECT_TRUE(Written) << Written.takeError().str();
  return Written ? std::string(Written->text()) : std::string();
}

Observation parsed(std::string_view Bytes) {
  Observation O;
  EXPECT_TRUE(O.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size())));
  return O;
}

/// Reads a message and keeps it in memory, because the views point into it.
class Reading {
public:
  explicit Reading(std::string_view Bytes)
      : Bytes(Bytes), Result(Codec.deserialize(this->Bytes.bytes())) {}
  explicit Reading(const Observation &O) : Reading(O.SerializeAsString()) {}

  Error error() { return Result.takeError(); }
  const TensorView &only() {
    EXPECT_TRUE(Result) << Result.takeError().str();
    EXPECT_EQ(Result->size(), 1u);
    return Result->front();
  }
  template <typename T> std::vector<T> elements() {
    auto Elements = only().as<T>();
    EXPECT_TRUE(Elements) << only().typeStr();
    return std::vector<T>(Elements->begin(), Elements->end());
  }

private:
  Message Bytes;
  ProtobufSerDes Codec;
  Expected<Span<const TensorView>> Result;
};

/// A message with one tensor, to be filled in.
struct Filled {
  Observation Whole;
  Tensor *operator->() { return Whole.mutable_tensors(0); }
  explicit Filled(const char *Name) { Whole.add_tensors()->set_name(Name); }
};

/// Expects an error with \p Code that contains \p Says.
void expectRefused(std::string_view Bytes, ErrorCode Code,
                   const std::string &Says) {
  Reading R(Bytes);
  Error E = R.error();
  EXPECT_EQ(E.code(), Code) << E.str();
  EXPECT_THAT(E.message(), HasSubstr(Says));
}
void expectRefused(const Filled &F, ErrorCode Code, const std::string &Says) {
  expectRefused(F.Whole.SerializeAsString(), Code, Says);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

TEST(ProtobufSerDes, WritesWhatProtocReads) {
  FeatureSet Set;
  std::vector<float> Matrix{1, 2, 3, 4, 5, 6};
  Set.set("matrix", TensorRef(Matrix, {2, 3}));
  Set.set("hot", true);
  Set.set("callee", "main");
  Set.set("names", std::vector<std::string>{"a", "", "c"});
  Set.set("none", std::vector<double>());
  Observation O = parsed(write(Set));
  ASSERT_EQ(O.tensors_size(), 5);

  const Tensor &First = O.tensors(0);
  EXPECT_EQ(First.name(), "matrix");
  EXPECT_EQ(First.type(), Tensor::FLOAT);
  EXPECT_THAT(First.shape(), ElementsAre(2, 3));
  ASSERT_EQ(First.data().size(), 24u);
  EXPECT_EQ(std::memcmp(First.data().data(), Matrix.data(), 24), 0);

  EXPECT_EQ(O.tensors(1).type(), Tensor::BOOL);
  EXPECT_EQ(O.tensors(1).shape_size(), 0);
  EXPECT_EQ(O.tensors(1).data(), "\1");

  EXPECT_EQ(O.tensors(2).type(), Tensor::STRING);
  EXPECT_EQ(O.tensors(2).shape_size(), 0);
  EXPECT_THAT(O.tensors(2).strings(), ElementsAre("main"));

  EXPECT_THAT(O.tensors(3).shape(), ElementsAre(3));
  EXPECT_THAT(O.tensors(3).strings(), ElementsAre("a", "", "c"));

  EXPECT_THAT(O.tensors(4).shape(), ElementsAre(0));
  EXPECT_EQ(O.tensors(4).data(), "");
}

TEST(ProtobufSerDes, WritesEachTypeByItsNumber) {
  FeatureSet Set;
  Set.set("INT8", std::int8_t());
  Set.set("INT16", std::int16_t());
  Set.set("INT32", std::int32_t());
  Set.set("INT64", std::int64_t());
  Set.set("UINT8", std::uint8_t());
  Set.set("UINT16", std::uint16_t());
  Set.set("UINT32", std::uint32_t());
  Set.set("UINT64", std::uint64_t());
  Set.set("FLOAT", float());
  Set.set("DOUBLE", double());
  Set.set("BOOL", false);
  Set.set("STRING", "");
  Observation O = parsed(write(Set));
  for (const Tensor &T : O.tensors())
    EXPECT_EQ(Tensor::Type_Name(T.type()), T.name());
  EXPECT_EQ(O.tensors_size() + 1, Tensor::Type_ARRAYSIZE);
}

TEST(ProtobufSerDes, AlignsWhatItWrites) {
  for (std::size_t Before = 0; Before < 70; ++Before) {
    std::vector<float> Many(100, 1.5f);
    FeatureSet Set;
    Set.set("first", std::string(Before, 'x'));
    Set.set("many", Span<const float>(Many));
    Set.set("double", 0.5);
    Set.set("short", std::int16_t(3));
    ProtobufSerDes Codec;
    Expected<Message> Written = serialize(Codec, Set.tensors());
    ASSERT_TRUE(Written);
    auto Tensors = Codec.deserialize(Written->bytes());
    ASSERT_TRUE(Tensors) << Tensors.takeError().str();
    auto Address = [&](std::size_t I) {
      auto *Data = static_cast<const std::byte *>((*Tensors)[I].Data);
      // A copy would also be aligned, so check that the data lie in the
      // message.
      EXPECT_GE(Data, Written->bytes().begin());
      EXPECT_LT(Data, Written->bytes().end());
      return reinterpret_cast<std::uintptr_t>(Data);
    };
    EXPECT_EQ(Address(1) % 64, 0u) << Before;
    EXPECT_EQ(Address(2) % 8, 0u) << Before;
    EXPECT_EQ(Address(3) % 2, 0u) << Before;
    EXPECT_EQ(parsed(Written->text()).tensors_size(), 4);
  }
}

TEST(ProtobufSerDes, LendsLargeTensorsInPieces) {
  std::vector<float> Large(100'000, 2.5f);
  FeatureSet Set;
  Set.set("size", 7);
  Set.set("large", Span<const float>(Large));
  ProtobufSerDes Codec;
  for (const TensorView &Feature : Set.tensors())
    Codec.setFeature(Feature);
  Expected<std::size_t> Size = Codec.getMaxSerializedSize();
  ASSERT_TRUE(Size);
  std::string Gathered;
  bool IsLent = false;
  for (Span<const std::byte> Piece : Codec.getSerializedPieces()) {
    Gathered.append(reinterpret_cast<const char *>(Piece.data()), Piece.size());
    IsLent |= static_cast<const void *>(Piece.data()) == Large.data();
  }
  EXPECT_TRUE(IsLent);
  EXPECT_EQ(Gathered, write(Set));
  EXPECT_EQ(Gathered.size(), *Size);
}

TEST(ProtobufSerDes, RefusesToWriteWhatCannotBeRead) {
  ProtobufSerDes Codec;
  FeatureSet Set;
  Set.set("text", "\xff");
  Expected<Message> Written = serialize(Codec, Set.tensors());
  EXPECT_EQ(Written.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(std::string(Written.message()), HasSubstr("'text'"));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(ProtobufSerDes, ReadsTypedElements) {
  Filled Ints("x");
  for (int I : {1, -2, 3})
    Ints->add_ints(I);
  EXPECT_THAT(Reading(Ints.Whole).elements<std::int64_t>(),
              ElementsAre(1, -2, 3));
  Ints->set_type(Tensor::INT8);
  EXPECT_THAT(Reading(Ints.Whole).elements<std::int8_t>(),
              ElementsAre(1, -2, 3));

  Filled UInts("x");
  UInts->add_uints(~0ull);
  Reading Scalar(UInts.Whole);
  EXPECT_EQ(Scalar.only().typeStr(), "uint64_t");
  EXPECT_THAT(Scalar.elements<std::uint64_t>(), ElementsAre(~0ull));

  Filled Floats("x");
  for (float F : {0.5f, 1.5f, 2.5f, 3.5f})
    Floats->add_floats(F);
  Floats->add_shape(2);
  Floats->add_shape(2);
  Reading Matrix(Floats.Whole);
  EXPECT_EQ(Matrix.only().typeStr(), "float[2,2]");
  EXPECT_THAT(Matrix.elements<float>(), ElementsAre(0.5, 1.5, 2.5, 3.5));

  Filled Doubles("x");
  Doubles->add_doubles(0.1);
  Doubles->add_shape(1);
  EXPECT_EQ(Reading(Doubles.Whole).only().typeStr(), "double[1]");

  Filled Bools("x");
  Bools->add_bools(true);
  Bools->add_bools(false);
  EXPECT_THAT(Reading(Bools.Whole).elements<bool>(), ElementsAre(true, false));
}

TEST(ProtobufSerDes, WithoutAShapeCountsTheElements) {
  Filled One("x");
  One->set_type(Tensor::FLOAT);
  One->set_data(std::string(4, '\0'));
  EXPECT_EQ(Reading(One.Whole).only().typeStr(), "float");
  One->set_data(std::string(12, '\0'));
  EXPECT_EQ(Reading(One.Whole).only().typeStr(), "float[3]");
  One->set_data("");
  EXPECT_EQ(Reading(One.Whole).only().typeStr(), "float[0]");

  Filled Text("x");
  Text->add_strings("a");
  Reading Scalar(Text.Whole);
  EXPECT_EQ(Scalar.only().typeStr(), "string");
  EXPECT_EQ(Scalar.only().text(), "a");
  Text->add_strings("bc");
  Reading List(Text.Whole);
  EXPECT_EQ(List.only().typeStr(), "string[2]");
  EXPECT_EQ(List.only().text(), "abc");
  EXPECT_THAT(List.only().Lengths, ElementsAre(1, 2));
}

TEST(ProtobufSerDes, CopiesWhatIsNotAligned) {
  for (int Before = 0; Before < 8; ++Before) {
    Filled F(std::string(Before + 1, 'x').c_str());
    double Values[] = {0.5, 1.5};
    F->set_type(Tensor::DOUBLE);
    F->set_data(Values, sizeof(Values));
    EXPECT_THAT(Reading(F.Whole).elements<double>(), ElementsAre(0.5, 1.5));
  }
}

TEST(ProtobufSerDes, SkipsUnknownFields) {
  Filled F("x");
  F->add_ints(7);
  auto *Unknown = F->GetReflection()->MutableUnknownFields(&*F.operator->());
  Unknown->AddVarint(1000, 1);
  Unknown->AddFixed64(1001, 2);
  Unknown->AddLengthDelimited(1002, "three");
  Unknown->AddGroup(1003)->AddGroup(1)->AddFixed32(1, 4);
  EXPECT_THAT(Reading(F.Whole).elements<std::int64_t>(), ElementsAre(7));
}

TEST(ProtobufSerDes, ReadsElementsInParts) {
  // The format permits packed and unpacked elements of one field, with another
  // field between them.
  std::string Bytes("\x0a\x0e"               // tensors, 14 bytes
                    "\x32\x02\x01\x02"       // ints: 1, 2
                    "\x0a\x01x"              // name
                    "\x30\x03"               // ints: 3
                    "\x32\x03\x04\x85\x01"); // ints: 4, 133
  EXPECT_THAT(Reading(Bytes).elements<std::int64_t>(),
              ElementsAre(1, 2, 3, 4, 133));
}

//===----------------------------------------------------------------------===//
// Hostile messages
//===----------------------------------------------------------------------===//

TEST(ProtobufSerDes, RefusesEveryTruncation) {
  FeatureSet Set;
  Set.set("size", 7);
  Set.set("x", std::vector<float>{1, 2, 3});
  Set.set("names", std::vector<std::string>{"a", "bc"});
  std::string Whole = write(Set);
  std::size_t NumWhole = 0;
  for (std::size_t Size = 0; Size < Whole.size(); ++Size) {
    Reading R(std::string_view(Whole).substr(0, Size));
    Error E = R.error();
    // If the message is cut between two tensors, the rest is a valid message.
    NumWhole += !E;
    EXPECT_TRUE(!E || E.code() == ErrorCode::Malformed) << E.str();
  }
  EXPECT_LE(NumWhole, 6u);
}

TEST(ProtobufSerDes, RefusesWrongLengths) {
  using namespace std::string_literals;
  expectRefused("\x0a\x05x"s, ErrorCode::Malformed, "at byte");
  expectRefused("\x0a\xff\xff\xff\xff\x0f"s, ErrorCode::Malformed, "at byte");
  // A length of 2^32 + 1.
  expectRefused("\x0a\x81\x80\x80\x80\x10x"s, ErrorCode::Malformed, "at byte");
  expectRefused("\x0a\x04\x0a\x7fxy"s, ErrorCode::Malformed, "cut short");
  expectRefused("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,
                ErrorCode::Malformed, "at byte");
  expectRefused("\x00"s, ErrorCode::Malformed, "at byte 1 of 1");
  expectRefused("\x07"s, ErrorCode::Malformed, "at byte");
}

TEST(ProtobufSerDes, RefusesDeepNesting) {
  std::string Groups;
  for (int I = 0; I < 100'000; ++I)
    Groups += '\x13';
  expectRefused(Groups, ErrorCode::Malformed, "at byte");
  for (int I = 0; I < 100'000; ++I)
    Groups += '\x14';
  expectRefused(Groups, ErrorCode::Malformed, "at byte");
}

TEST(ProtobufSerDes, RefusesShapesThatDoNotFit) {
  Filled F("x");
  F->set_type(Tensor::FLOAT);
  F->set_data(std::string(12, '\0'));
  F->add_shape(4);
  expectRefused(F, ErrorCode::Malformed,
                "feature 'x': shape [4] needs 4 elements, found 3");
  F->set_shape(0, -3);
  expectRefused(F, ErrorCode::Malformed, "negative extent or too many");
  F->set_shape(0, std::int64_t(1) << 62);
  F->add_shape(4);
  expectRefused(F, ErrorCode::Malformed, "negative extent or too many");
  F->clear_shape();
  for (int I = 0; I < 9; ++I)
    F->add_shape(1);
  expectRefused(F, ErrorCode::Unsupported, "more than 8 extents");
  F->clear_shape();
  F->set_data(std::string(11, '\0'));
  expectRefused(F, ErrorCode::Malformed, "11 bytes are not a whole number");

  Filled Text("x");
  Text->add_strings("a");
  Text->add_shape(1);
  Text->add_shape(1);
  expectRefused(Text, ErrorCode::Malformed, "a list of strings has rank 1");
}

TEST(ProtobufSerDes, RefusesElementsOfAnotherType) {
  Filled F("x");
  expectRefused(F, ErrorCode::Malformed, "feature 'x': it has no type");
  F->set_type(static_cast<Tensor::Type>(13));
  expectRefused(F, ErrorCode::Malformed, "unknown type number 13");
  F->set_type(Tensor::INT8);
  F->add_ints(128);
  expectRefused(F, ErrorCode::Malformed, "an element does not fit int8_t");
  F->set_type(Tensor::FLOAT);
  expectRefused(F, ErrorCode::Malformed,
                "its type is float, its elements are int64_t");
  F->set_type(Tensor::STRING);
  expectRefused(F, ErrorCode::Malformed, "its elements are not strings");
  F->set_type(Tensor::INT64);
  F->add_uints(1);
  expectRefused(F, ErrorCode::Malformed, "its elements are in two fields");
  F->clear_uints();
  F->set_data("12345678");
  expectRefused(F, ErrorCode::Malformed, "its elements are in two fields");

  Filled Text("x");
  Text->add_strings("a");
  Text->set_type(Tensor::BOOL);
  expectRefused(Text, ErrorCode::Malformed, "its elements are strings");

  Filled Bools("x");
  Bools->set_type(Tensor::BOOL);
  Bools->set_data("\2");
  expectRefused(Bools, ErrorCode::Malformed, "expected bools of 0 or 1");
}

TEST(ProtobufSerDes, RefusesNames) {
  Filled Twice("x");
  Twice->add_ints(1);
  *Twice.Whole.add_tensors() = Twice.Whole.tensors(0);
  expectRefused(Twice, ErrorCode::Malformed, "'x': appears twice");
  Filled Unnamed("");
  Unnamed->add_ints(1);
  expectRefused(Unnamed, ErrorCode::Malformed, "empty name");
}

TEST(ProtobufSerDes, RefusesTextThatIsNotUTF8) {
  using namespace std::string_literals;
  expectRefused("\x0a\x06\x0a\x01x\x2a\x01\xff"s, ErrorCode::Malformed,
                "feature 'x': expected UTF-8");
  expectRefused("\x0a\x05\x0a\x01\xff\x30\x01"s, ErrorCode::Malformed,
                "its name is not UTF-8");
  // The two bytes of one UTF-8 character, each in another string.
  expectRefused("\x0a\x09\x0a\x01x\x2a\x01\xc3\x2a\x01\xa9"s,
                ErrorCode::Malformed, "expected UTF-8");
}

TEST(ProtobufSerDes, ForgetsBrokenMessages) {
  ProtobufSerDes Codec;
  FeatureSet Set;
  Set.set("x", 1);
  Message Good(write(Set)), Bad("\x0a\x05x");
  for (int Round = 0; Round < 2; ++Round) {
    auto Tensors = Codec.deserialize(Good.bytes());
    ASSERT_TRUE(Tensors);
    EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
    EXPECT_FALSE(Codec.deserialize(Bad.bytes()));
  }
}

//===----------------------------------------------------------------------===//
// Promises to callers
//===----------------------------------------------------------------------===//

TEST(ProtobufSerDes, LayoutChangesWithTheViews) {
  ProtobufSerDes Codec;
  auto Read = [&](const FeatureSet &Set) {
    static std::deque<Message> Kept;
    Kept.emplace_back(write(Set));
    EXPECT_TRUE(Codec.deserialize(Kept.back().bytes()));
    return Codec.layout();
  };
  FeatureSet A, B, C;
  A.set("x", 1);
  B.set("x", 2);
  C.set("y", 2);
  std::uint64_t First = Read(A);
  EXPECT_EQ(Read(B), First);
  EXPECT_NE(Read(C), First);
}

TEST(ProtobufSerDes, AllocatesNothingOnceWarm) {
  FeatureSet Short, Long;
  Short.set("x", std::vector<float>(10, 0.5f));
  Short.set("text", "short");
  Long.set("x", std::vector<float>(1000, 0.5f));
  Long.set("names", std::vector<std::string>(50, "abc"));
  ProtobufSerDes Writer, Reader;
  Message Region(1 << 16);
  auto Round = [&] {
    for (const FeatureSet *Set : {&Short, &Short, &Long})
      EXPECT_TRUE(passes(Writer, Reader, Set->tensors(), Region));
  };
  EXPECT_EQ(allocationsOnceWarm(Round), 0u);
}

} // namespace
