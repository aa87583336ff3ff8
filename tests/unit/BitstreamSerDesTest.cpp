//===- BitstreamSerDesTest.cpp - A header line and raw tensors ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the bitstream format: which bytes are written, which can be read, and
/// which are refused.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"

#include "MLCompilerBridge/FeatureSet.h"
#include "support/AllocationCounter.h"
#include "support/Messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

/// Serializes \p Features.
Message written(BaseSerDes &Codec, const FeatureSet &Features) {
  Expected<Message> Result = serialize(Codec, Features.tensors());
  if (Result)
    return std::move(*Result);
  ADD_FAILURE() << Result.takeError().str();
  return Message(0);
}

Message written(const FeatureSet &Features) {
  BitstreamSerDes Codec;
  return written(Codec, Features);
}

/// The header line of \p M, without its padding.
std::string headerOf(const Message &M) {
  std::string Line(M.text().substr(0, M.text().find('\n')));
  Line.erase(Line.find_last_not_of(' ') + 1);
  return Line;
}

/// Returns the error of reading \p Bytes. Fails the test if there is no error.
Error readError(std::string_view Bytes, bool Bare = false,
                const AdviceSpec &Wanted = AdviceSpec::any()) {
  BitstreamSerDes Codec;
  if (Bare)
    Codec.setDialect(BaseSerDes::Dialect::BareCompiler);
  Message M(Bytes);
  Expected<Span<const TensorView>> Tensors =
      Codec.deserialize(M.bytes(), Wanted);
  EXPECT_FALSE(Tensors) << Bytes;
  return Tensors.takeError();
}

FeatureSet manyTypes() {
  static const float Floats[] = {1, 2, 3};
  static const std::int16_t Shorts[] = {1, 2, 3, 4, 5, 6};
  FeatureSet Set;
  Set.set("flag", true);
  Set.set("count", std::int32_t(-7));
  Set.set("floats", Span<const float>(Floats));
  Set.set("big", std::uint64_t(1) << 63);
  Set.set("matrix", TensorRef<std::int16_t>(Shorts, {2, 3}));
  Set.set("name", "foo");
  Set.set("byte", std::int8_t(-1));
  Set.set("names", std::vector<std::string>{"a", "", "bcd"});
  Set.set("rate", 0.5);
  return Set;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

TEST(BitstreamWriting, EmptyMessage) {
  std::string Expected = "{\"features\":[]}";
  Expected.resize(64 - 8 - 1, ' ');
  EXPECT_EQ(written(FeatureSet()).text(), Expected + "\n\n");
}

TEST(BitstreamWriting, OneTensorByteForByte) {
  FeatureSet Set;
  Set.set("x", std::vector<std::int16_t>{1, -2});
  std::string Expected = "{\"features\":[{\"name\":\"x\",\"port\":0,"
                         "\"type\":\"int16_t\",\"shape\":[2]}]}";
  Expected.resize(2 * 64 - 8 - 1, ' ');
  Expected += std::string("\n\x01\x00\xfe\xff\n", 6);
  EXPECT_EQ(written(Set).text(), Expected);
}

TEST(BitstreamWriting, TensorsAreOrderedByFallingElementSize) {
  EXPECT_EQ(headerOf(written(manyTypes())),
            R"({"features":[)"
            R"({"name":"big","port":0,"type":"uint64_t","shape":[]},)"
            R"({"name":"rate","port":0,"type":"double","shape":[]},)"
            R"({"name":"count","port":0,"type":"int32_t","shape":[]},)"
            R"({"name":"floats","port":0,"type":"float","shape":[3]},)"
            R"({"name":"matrix","port":0,"type":"int16_t","shape":[2,3]},)"
            R"({"name":"flag","port":0,"type":"uint8_t","shape":[],)"
            R"("semantics":"bool"},)"
            R"({"name":"name","port":0,"type":"uint8_t","shape":[3],)"
            R"("semantics":"string"},)"
            R"({"name":"byte","port":0,"type":"int8_t","shape":[]},)"
            R"({"name":"names","port":0,"type":"uint8_t","shape":[4],)"
            R"("semantics":"strings","lengths":[1,0,3]}]})");
}

TEST(BitstreamWriting, NamesAreEscaped) {
  FeatureSet Set;
  Set.set(std::string_view("a\"\\\n\x01\0é", 8), std::uint8_t(1));
  EXPECT_THAT(headerOf(written(Set)),
              HasSubstr(R"("name":"a\"\\\n\u0001\u0000é","port")"));
}

TEST(BitstreamWriting, FirstTensorStartsOnA64ByteBoundary) {
  for (std::size_t Length = 1; Length <= 130; ++Length) {
    FeatureSet Set;
    Set.set(std::string(Length, 'n'), 1.0);
    Message M = written(Set);
    std::size_t Start = M.text().find('\n') + 1;
    EXPECT_EQ((BaseSerDes::MessageOffset + Start) % 64, 0u) << Length;
    EXPECT_EQ(M.text().size(), Start + sizeof(double) + 1);
  }
}

TEST(BitstreamWriting, ANewSchemaGetsANewHeader) {
  BitstreamSerDes Codec;
  FeatureSet Set;
  Set.set("x", 1);
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("int32_t"));
  Set.clear();
  Set.set("x", 1.0f);
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("float"));
  Set.clear();
  Set.set("y", 1.0f);
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("\"y\""));
  Set.clear();
  Set.set("y", std::vector<float>{1, 2});
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("[2]"));
  Set.clear();
  Set.set("y", std::vector<std::string>{"ab", "c"});
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("[2,1]"));
  Set.clear();
  Set.set("y", std::vector<std::string>{"a", "bc"});
  EXPECT_THAT(headerOf(written(Codec, Set)), HasSubstr("[1,2]"));
}

/// A tensor that FeatureSet would not create.
TensorView wrongTensor(ElementType Type, Shape Dims, std::size_t NumBytes) {
  static const std::byte Bytes[64] = {};
  return {"wrong", Type, Dims, Bytes, NumBytes, {}};
}

Error writeError(Span<const TensorView> Tensors) {
  BitstreamSerDes Codec;
  Expected<Message> Result = serialize(Codec, Tensors);
  EXPECT_FALSE(Result);
  return Result.takeError();
}

TEST(BitstreamWriting, ContradictionsAreRefused) {
  static const std::uint64_t Lengths[] = {1, 2};
  TensorView List = wrongTensor(ElementType::String, {2}, 4);
  List.Lengths = Lengths;
  TensorView LongList = wrongTensor(ElementType::String, {2}, 2);
  LongList.Lengths = Lengths;
  TensorView LengthsOfFloats = wrongTensor(ElementType::Float, {2}, 8);
  LengthsOfFloats.Lengths = Lengths;
  TensorView Wrong[] = {
      wrongTensor(ElementType::Float, {3}, 8),
      wrongTensor(ElementType::Float, {}, 3),
      wrongTensor(ElementType::Int8, {-1}, 1),
      wrongTensor(ElementType::Int8, {std::int64_t(1) << 62, 4}, 0),
      wrongTensor(ElementType::String, {2}, 4),
      wrongTensor(ElementType::String, {2, 2}, 4),
      List,
      LongList,
      LengthsOfFloats,
  };
  for (const TensorView &Tensor : Wrong) {
    Error E = writeError({&Tensor, 1});
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument) << E.str();
    EXPECT_THAT(E.message(), HasSubstr("'wrong'"));
  }
}

TEST(BitstreamWriting, WrongNamesAreRefused) {
  TensorView Tensor = wrongTensor(ElementType::Int8, {}, 1);
  TensorView Twins[] = {Tensor, Tensor};
  EXPECT_THAT(writeError(Twins).str(), HasSubstr("'wrong': appears twice"));
  Tensor.Name = "";
  EXPECT_THAT(writeError({&Tensor, 1}).str(), HasSubstr("empty name"));
  Tensor.Name = "\xff";
  EXPECT_THAT(writeError({&Tensor, 1}).str(), HasSubstr("not UTF-8"));
}

TEST(BitstreamWriting, WrongElementsAreRefused) {
  TensorView Tensor = wrongTensor(ElementType::Bool, {}, 1);
  Tensor.Data = "\x02";
  EXPECT_THAT(writeError({&Tensor, 1}).str(), HasSubstr("'wrong': expected b"));
  Tensor = wrongTensor(ElementType::String, {}, 1);
  Tensor.Data = "\xc3";
  EXPECT_THAT(writeError({&Tensor, 1}).str(), HasSubstr("expected UTF-8"));
  // The bytes are valid UTF-8 as a whole, but neither string is valid by
  // itself.
  static const std::uint64_t Lengths[] = {1, 1};
  Tensor = wrongTensor(ElementType::String, {2}, 2);
  Tensor.Data = "\xc3\xa9";
  Tensor.Lengths = Lengths;
  EXPECT_THAT(writeError({&Tensor, 1}).str(), HasSubstr("expected UTF-8"));
}

TEST(BitstreamWriting, ARefusedMessageDoesNotSpoilTheNext) {
  BitstreamSerDes Codec;
  FeatureSet Set = manyTypes();
  std::string Good(written(Codec, Set).text());
  TensorView Wrong = wrongTensor(ElementType::Float, {3}, 8);
  EXPECT_FALSE(serialize(Codec, {&Wrong, 1}));
  EXPECT_FALSE(serialize(Codec, {&Wrong, 1}));
  EXPECT_EQ(written(Codec, Set).text(), Good);
}

TEST(BitstreamWriting, ASmallRegionIsRefused) {
  BitstreamSerDes Codec;
  FeatureSet Set = manyTypes();
  for (const TensorView &Tensor : Set.tensors())
    Codec.setFeature(Tensor);
  Message Region(*Codec.getMaxSerializedSize() - 1);
  EXPECT_EQ(Codec.getSerializedData(Region.region()).code(),
            ErrorCode::InvalidArgument);
}

TEST(BitstreamWriting, OverAnEarlierMessage) {
  // As in shared memory, messages of different lengths overwrite each other.
  BitstreamSerDes Codec;
  Codec.setOutputIsKept(true);
  Message Region(4096);
  std::vector<float> Xs(200, 1.5F);
  for (std::size_t Length : {5, 5, 6, 100, 5, 0, 200, 7})
    for (const char *Name : {"x", "y",
                             "a name that takes a line of its own, "
                             "or two lines, of the cache"}) {
      FeatureSet Features;
      Features.set(Name, Span<const float>(Xs.data(), Length));
      Features.set("rest", static_cast<std::int32_t>(Length));
      Codec.cleanUp();
      for (const TensorView &Feature : Features.tensors())
        Codec.setFeature(Feature);
      ASSERT_TRUE(Codec.getMaxSerializedSize());
      Expected<std::size_t> Size = Codec.getSerializedData(Region.region());
      ASSERT_TRUE(Size) << Size.message();
      EXPECT_EQ(Region.text().substr(0, *Size), written(Features).text());
    }
}

TEST(BitstreamWriting, PiecesAreTheMessage) {
  BitstreamSerDes Codec;
  for (std::size_t Elements : {1, 100'000}) {
    FeatureSet Set = manyTypes();
    Set.set("floats", std::vector<float>(Elements, 0.5f));
    Message Whole = written(Codec, Set);
    for (const TensorView &Tensor : Set.tensors())
      Codec.setFeature(Tensor);
    EXPECT_TRUE(Codec.getMaxSerializedSize());
    Span<const Span<const std::byte>> Pieces = Codec.getSerializedPieces();
    // Small tensors are copied, because sending them from their own memory
    // costs more.
    EXPECT_EQ(Pieces.empty(), Elements == 1);
    std::string Gathered;
    for (Span<const std::byte> Piece : Pieces)
      Gathered.append(reinterpret_cast<const char *>(Piece.data()),
                      Piece.size());
    EXPECT_TRUE(Pieces.empty() || Gathered == Whole.text());
    Codec.cleanUp();
  }
}

TEST(BitstreamWriting, ATooLongHeaderIsRefused) {
  FeatureSet Set;
  Set.set(std::string((16 << 20) + 1, 'n'), 1);
  EXPECT_THAT(writeError(Set.tensors()).str(),
              HasSubstr("exceeds the limit of 16777216"));
}

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

/// Writes \p Set, reads it and compares.
void expectRoundTrip(const FeatureSet &Set) {
  BitstreamSerDes Writer, Reader;
  Message M = written(Writer, Set);
  Expected<Span<const TensorView>> Tensors = Reader.deserialize(M.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
}

template <typename T> class BitstreamNumbers : public testing::Test {};
using Numbers = testing::Types<std::int8_t, std::int16_t, std::int32_t,
                               std::int64_t, std::uint8_t, std::uint16_t,
                               std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(BitstreamNumbers, Numbers);

TYPED_TEST(BitstreamNumbers, RoundTrip) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> Elements = {Limits::min(),       Limits::max(),
                                     Limits::lowest(),    Limits::infinity(),
                                     Limits::quiet_NaN(), Limits::denorm_min(),
                                     TypeParam(0),        TypeParam(1)};
  FeatureSet Set;
  Set.set("scalar", Limits::max());
  Set.set("vector", Elements);
  Set.set("empty", std::vector<TypeParam>());
  Set.set("tensor", TensorRef<TypeParam>(Elements, {2, 1, 4}));
  Set.set("rank 8", TensorRef<TypeParam>(Elements, {2, 1, 1, 2, 1, 2, 1, 1}));
  Set.set("nothing", TensorRef<TypeParam>(Span<const TypeParam>(),
                                          {3, 0, std::int64_t(1) << 62}));
  expectRoundTrip(Set);
}

TEST(BitstreamRoundTrip, BoolsAndText) {
  FeatureSet Set;
  Set.set("yes", true);
  Set.set("no", false);
  Set.set("bools", std::vector<bool>{true, false, true});
  Set.set("no bools", std::vector<bool>());
  Set.set("text", std::string_view("a\n\0é", 5));
  Set.set("no text", "");
  Set.set("strings", std::vector<std::string>{"", "x\n", "日本"});
  Set.set("no strings", std::vector<std::string>());
  Set.set("日本 \"\\\n", 1);
  expectRoundTrip(Set);
  expectRoundTrip(FeatureSet());
  expectRoundTrip(manyTypes());
}

TEST(BitstreamReading, ViewsAreInTheMessageAndAligned) {
  BitstreamSerDes Codec;
  Message M = written(manyTypes());
  Expected<Span<const TensorView>> Tensors = Codec.deserialize(M.bytes());
  ASSERT_TRUE(Tensors);
  for (const TensorView &Tensor : *Tensors) {
    auto *Data = static_cast<const std::byte *>(Tensor.Data);
    EXPECT_GE(Data, M.bytes().begin());
    EXPECT_LE(Data + Tensor.NumBytes, M.bytes().end());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Data) % elementSize(Tensor.Type),
              0u)
        << Tensor.Name;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*Tensors)[0].Data) % 64, 0u);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(BitstreamReading, KeysInAnyOrderAndUnknownOnes) {
  // The header has no padding, so the tensors are unaligned.
  Message M(std::string_view(
      R"( {"score":{"a":[1,{}]},"features":[{"later":null,"shape":[2],)"
      R"("type":"uint8_t","semantics":"colour","port":3,"name":"x"}]} )"
      "\nab\n"));
  BitstreamSerDes Codec;
  Expected<Span<const TensorView>> Tensors = Codec.deserialize(M.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  ASSERT_EQ(Tensors->size(), 1u);
  EXPECT_EQ(Tensors->front().Name, "x");
  EXPECT_EQ(Tensors->front().typeStr(), "uint8_t[2]");
  EXPECT_EQ(Tensors->front().text(), "ab");
}

TEST(BitstreamReading, LayoutChangesWithTheHeaderOnly) {
  BitstreamSerDes Writer, Reader;
  FeatureSet Set;
  auto LayoutOf = [&] {
    Message M = written(Writer, Set);
    EXPECT_TRUE(Reader.deserialize(M.bytes()));
    Set.clear();
    return Reader.layout();
  };
  Set.set("x", 1.0f);
  std::uint64_t First = LayoutOf();
  Set.set("x", 2.0f);
  EXPECT_EQ(LayoutOf(), First);
  Set.set("x", std::int32_t(2));
  std::uint64_t Second = LayoutOf();
  EXPECT_NE(Second, First);
  Set.set("x", std::int32_t(3));
  EXPECT_EQ(LayoutOf(), Second);
  // A schema that the reader has seen before gets its old number again.
  Set.set("x", 1.0f);
  EXPECT_EQ(LayoutOf(), First);
  // The reader may forget old schemas, but must never give two schemas the same
  // number.
  std::map<std::uint64_t, std::size_t> LengthOf;
  const std::vector<float> Values(1000);
  for (int Round = 0; Round < 2; ++Round)
    for (std::size_t Length = 0; Length < Values.size(); ++Length) {
      Set.set("x", Span<const float>(Values.data(), Length));
      EXPECT_EQ(LengthOf.try_emplace(LayoutOf(), Length).first->second, Length);
    }
}

TEST(BitstreamReading, ABadMessageDoesNotSpoilTheNext) {
  BitstreamSerDes Reader;
  FeatureSet Set = manyTypes();
  Message Good = written(Set);
  std::string Text(Good.text());
  Message Short(std::string_view(Text).substr(0, Text.size() - 2));
  Message Bad(std::string_view("{\"features\":[{\"name\":\"x\"}]}\n\n"));
  for (int Round = 0; Round < 2; ++Round) {
    Expected<Span<const TensorView>> Tensors = Reader.deserialize(Good.bytes());
    ASSERT_TRUE(Tensors);
    EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
    EXPECT_FALSE(Reader.deserialize(Short.bytes()));
    EXPECT_FALSE(Reader.deserialize(Bad.bytes()));
    EXPECT_FALSE(Reader.deserialize(Bad.bytes()));
    EXPECT_FALSE(Reader.deserialize(Message(0).bytes()));
  }
}

struct BadMessage {
  const char *Header;
  std::string_view Payload;
  ErrorCode Code;
  const char *Says;
};

TEST(BitstreamReading, BadMessages) {
  constexpr ErrorCode Malformed = ErrorCode::Malformed;
#define FEATURE(REST) "{\"features\":[{\"name\":\"x\",\"port\":0," REST "}]}"
  const BadMessage Cases[] = {
      {"", "", Malformed, "not JSON"},
      {"nonsense", "", Malformed, "not an object"},
      {"[]", "", Malformed, "not an object"},
      {"{}", "", Malformed, "no \"features\""},
      {"{\"features\":{}}", "", Malformed, "\"features\""},
      {"{\"features\":[]", "", Malformed, "bitstream header"},
      {"{\"features\":[]}}", "", Malformed, "bitstream header"},
      {"{\"features\":[]} 1", "", Malformed, "bitstream header"},
      {"{\"features\":[]}{}", "", Malformed, "something follows"},
      {"{\"features\":[],\"features\":[]}", "", Malformed, "twice"},
      {"{\"features\":[1]}", "", Malformed, "\"features\""},
      {"{\"features\":[{}]}", "", Malformed, "has no name"},
      {"{\"features\":[{\"name\":\"\"}]}", "", Malformed, "has no name"},
      {"{\"features\":[{\"name\":7}]}", "", Malformed, "'name'"},
      {"{\"features\":[{\"name\":\"\xff\"}]}", "", Malformed, "UTF-8"},
      {"{\"features\":[{\"name\":\"\\ud800\"}]}", "", Malformed, "'name'"},
      {"{1}", "", Malformed, "bitstream header"},
      {"{\"\\ud800\":1}", "", Malformed, "a key"},
      {"{\"features\":[{1}]}", "", Malformed, "\"features\""},
      {"{\"features\":[{\"\\ud800\":1}]}", "", Malformed, "a feature's key"},
      {"{\"features\":[{\"port\":0,\"port\":0,\"name\":\"x\"}]}", "", Malformed,
       "a feature: 'port' appears twice"},
      {"{\"features\":[{\"name\":\"x\",\"port\":\"a\"}]}", "", Malformed,
       "'port'"},
      {FEATURE("\"shape\":[]"), "", Malformed, "'x': has no \"type\""},
      {FEATURE("\"type\":\"float\""), "", Malformed, "'x': has no \"shape\""},
      {FEATURE("\"type\":\"flaot\",\"shape\":[]"), "", Malformed,
       "'x': unknown type 'flaot'"},
      {FEATURE("\"type\":\"bool\",\"shape\":[]"), "a", Malformed,
       "unknown type 'bool'"},
      {FEATURE("\"type\":1,\"shape\":[]"), "", Malformed, "'type'"},
      {FEATURE("\"type\":\"float\",\"shape\":3"), "", Malformed, "'shape'"},
      {FEATURE("\"type\":\"float\",\"shape\":[1.5]"), "", Malformed, "'shape'"},
      {FEATURE("\"type\":\"float\",\"shape\":[-1]"), "", Malformed,
       "expected a non-negative integer, found -1"},
      {FEATURE("\"type\":\"float\",\"shape\":[9223372036854775808]"), "",
       Malformed, "'shape'"},
      {FEATURE("\"type\":\"float\",\"shape\":[1,1,1,1,1,1,1,1,1]"), "    ",
       ErrorCode::Unsupported, "more than 8"},
      {FEATURE("\"type\":\"int8_t\",\"shape\":[4294967296,4294967296]"), "",
       Malformed, "'x': shape [4294967296,4294967296]"},
      {FEATURE("\"type\":\"double\",\"shape\":[4611686018427387904]"), "",
       Malformed, "'x': shape"},
      {FEATURE("\"type\":\"int8_t\",\"shape\":[1152921504606846975]"), "",
       Malformed, "expected 1152921504606846975 bytes"},
      {FEATURE("\"type\":\"double\",\"shape\":[0,4611686018427387904]"), "",
       Malformed, "more elements than memory has bytes"},
      {FEATURE("\"type\":\"int8_t\",\"shape\":[1],\"shape\":[1]"), "a",
       Malformed, "'shape' appears twice"},
      {FEATURE("\"type\":\"int8_t\",\"shape\":[1],\"port\":0"), "a", Malformed,
       "'port' appears twice"},
      {FEATURE("\"type\":\"float\",\"shape\":[2]"), "1234567", Malformed,
       "'x': expected 8 bytes of float[2], found 7"},
      {FEATURE("\"type\":\"float\",\"shape\":[2]"), "123456789", Malformed,
       "after 8 bytes of tensors, found 1 more bytes"},
      {FEATURE("\"type\":\"float\",\"shape\":[],\"semantics\":\"bool\""),
       "1234", Malformed, "expected uint8_t for a bool"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[],\"semantics\":\"bool\""),
       "\2", Malformed, "'x': expected bools"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[],\"semantics\":\"string\""),
       "a", Malformed, "expected shape [bytes]"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[1],\"semantics\":\"string\""),
       "\xff", Malformed, "'x': expected UTF-8"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[2],\"semantics\":\"strings\","
               "\"lengths\":[1]"),
       "ab", Malformed, "expected \"lengths\" of 2 bytes in all, found 1"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[2],\"semantics\":\"strings\""),
       "ab", Malformed, "in all, found 0"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[2],\"semantics\":\"strings\","
               "\"lengths\":[9223372036854775807,9223372036854775807,4]"),
       "ab", Malformed, "\"lengths\" exceed"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[2],\"semantics\":\"strings\","
               "\"lengths\":[3,-1]"),
       "ab", Malformed, "found -1"},
      {FEATURE("\"type\":\"uint8_t\",\"shape\":[2],\"semantics\":\"strings\","
               "\"lengths\":[1,1]"),
       "\xc3\xa9", Malformed, "'x': expected UTF-8"},
      {"{\"features\":[{\"name\":\"x\",\"type\":\"int8_t\",\"shape\":[]},"
       "{\"name\":\"\\u0078\",\"type\":\"int8_t\",\"shape\":[]}]}",
       "ab", Malformed, "'x': appears twice"},
      {"{\"features\":["
       "{\"name\":\"x\",\"type\":\"int64_t\",\"shape\":[1152921504606846975]},"
       "{\"name\":\"y\",\"type\":\"int64_t\",\"shape\":[1152921504606846975]},"
       "{\"name\":\"z\",\"type\":\"int8_t\",\"shape\":[16]}]}",
       "", Malformed, "exceed 2^64 bytes"},
  };
#undef FEATURE
  for (const BadMessage &Case : Cases) {
    Error E = readError(std::string(Case.Header) + "\n" +
                        std::string(Case.Payload) + "\n");
    EXPECT_EQ(E.code(), Case.Code) << Case.Header << ": " << E.str();
    EXPECT_THAT(E.message(), HasSubstr(Case.Says)) << Case.Header;
  }
}

TEST(BitstreamReading, EveryTruncationIsAnError) {
  std::string Text(written(manyTypes()).text());
  for (std::size_t Length = 0; Length < Text.size(); ++Length)
    EXPECT_EQ(readError(Text.substr(0, Length)).code(), ErrorCode::Malformed)
        << Length;
  EXPECT_EQ(readError(Text + '\n').code(), ErrorCode::Malformed);
}

TEST(BitstreamReading, HostileHeadersCostLinearTime) {
  // The names are almost equal. Only the last two are equal.
  constexpr int Features = 100'000;
  std::string Header = "{\"features\":[";
  for (int I = 0; I < Features; ++I)
    Header += "{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaa" +
              std::to_string(std::min(I, Features - 2)) +
              "\",\"type\":\"int8_t\",\"shape\":[0]},";
  Header.back() = ']';
  Header += "}\n\n";
  auto Start = std::chrono::steady_clock::now();
  EXPECT_THAT(readError(Header).message(), HasSubstr("twice"));
  // An algorithm of quadratic time would need minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - Start, std::chrono::seconds(10));

  std::string Long = "{\"features\":[" + std::string(17 << 20, ' ') + "]}\n\n";
  EXPECT_THAT(readError(Long).message(), HasSubstr("exceed the limit"));
  EXPECT_THAT(readError(std::string(1 << 20, '[')).message(),
              HasSubstr("no newline"));
  EXPECT_EQ(readError(std::string(1 << 20, '[') + '\n').code(),
            ErrorCode::Malformed);
  EXPECT_EQ(readError("{\"a\":" + std::string(1 << 20, '[') + '\n').code(),
            ErrorCode::Malformed);
}

TEST(BitstreamReading, ErrorMessagesArePrintable) {
  Error E = readError("{\"features\":[{\"name\":\"\\u001b[31m" +
                      std::string(1000, 'x') +
                      "\",\"type\":\"int8_t\",\"shape\":[1]}]}\n\n");
  EXPECT_THAT(E.message(), HasSubstr("'\\x1b[31mxxx"));
  EXPECT_LT(E.message().size(), 200u);
  // Shortening must not split a UTF-8 character.
  std::string Name = "x";
  for (int I = 0; I < 40; ++I)
    Name += "é";
  E = readError("{\"features\":[{\"name\":\"" + Name +
                "\",\"type\":\"int8_t\",\"shape\":[1]}]}\n\n");
  EXPECT_THAT(E.message(), HasSubstr("é...é"));
}

//===----------------------------------------------------------------------===//
// Errors and deferrals
//===----------------------------------------------------------------------===//

TEST(BitstreamReplies, ErrorAndDeferred) {
  BitstreamSerDes Codec;
  FeatureSet Reply;
  Reply.set("_error", "no such model");
  Expected<Span<const TensorView>> Tensors =
      Codec.deserialize(written(Reply).bytes());
  EXPECT_EQ(Tensors.code(), ErrorCode::Model);
  EXPECT_EQ(Tensors.message(), "no such model");
  Reply.clear();
  Reply.set("_deferred", "too hot");
  Tensors = Codec.deserialize(written(Reply).bytes());
  EXPECT_EQ(Tensors.code(), ErrorCode::Deferred);
  EXPECT_EQ(Tensors.message(), "too hot");
  Reply.clear();
  Reply.set("_error", 1);
  Tensors = Codec.deserialize(written(Reply).bytes());
  EXPECT_EQ(Tensors.code(), ErrorCode::Malformed);
}

//===----------------------------------------------------------------------===//
// Bare mode
//===----------------------------------------------------------------------===//

TEST(BitstreamBare, RequestsKeepTheOrderAndScalarsHaveShape1) {
  BitstreamSerDes Codec;
  Codec.setDialect(BaseSerDes::Dialect::BareCompiler);
  FeatureSet Set;
  Set.set("b", true);
  Set.set("x", std::int64_t(-1));
  Set.set("v", std::vector<std::int8_t>{1, 2});
  EXPECT_EQ(
      written(Codec, Set).text(),
      std::string(
          R"({"features":[{"name":"b","port":0,"type":"uint8_t","shape":[1],)"
          R"("semantics":"bool"},)"
          R"({"name":"x","port":0,"type":"int64_t","shape":[1]},)"
          R"({"name":"v","port":0,"type":"int8_t","shape":[2]}]})"
          "\n") +
          std::string("\x01\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\n", 12));
}

TEST(BitstreamBare, ModelSideReadsRequests) {
  BitstreamSerDes Compiler, Model;
  Compiler.setDialect(BaseSerDes::Dialect::BareCompiler);
  Model.setDialect(BaseSerDes::Dialect::BareModel);
  FeatureSet Set;
  Set.set("b", true);
  Set.set("x", std::int64_t(-1));
  Message M = written(Compiler, Set);
  Expected<Span<const TensorView>> Tensors = Model.deserialize(M.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  ASSERT_EQ(Tensors->size(), 2u);
  EXPECT_EQ((*Tensors)[0].typeStr(), "bool[1]");
  EXPECT_EQ((*Tensors)[1].typeStr(), "int64_t[1]");
  // The data lie after a tensor of one byte, so they are unaligned. A reader
  // must not assume alignment.
  std::int64_t Value;
  std::memcpy(&Value, (*Tensors)[1].Data, sizeof(Value));
  EXPECT_EQ(Value, -1);
}

/// Writes \p Value as a bare reply, expects \p NumBytes bytes, and returns what
/// a compiler that expects a T reads.
template <typename T> T bareReply(const T &Value, std::size_t NumBytes) {
  BitstreamSerDes Compiler, Model;
  Compiler.setDialect(BaseSerDes::Dialect::BareCompiler);
  Model.setDialect(BaseSerDes::Dialect::BareModel);
  FeatureSet Reply;
  Reply.set("whatever", Value);
  Message M = written(Model, Reply);
  EXPECT_EQ(M.text().size(), NumBytes);
  Expected<Span<const TensorView>> Tensors =
      Compiler.deserialize(M.bytes(), AdviceSpec::of<T>());
  if (!Tensors) {
    ADD_FAILURE() << Tensors.takeError().str();
    return T();
  }
  EXPECT_EQ(Tensors->front().Name, "out");
  Expected<T> Result = Advice(*Tensors).template get<T>();
  EXPECT_TRUE(Result);
  return Result ? *Result : T();
}

TEST(BitstreamBare, RepliesAreRawBytes) {
  EXPECT_EQ(bareReply(1.5f, 4), 1.5f);
  EXPECT_EQ(bareReply(-2.5, 8), -2.5);
  EXPECT_EQ(bareReply(std::int64_t(-3), 8), -3);
  EXPECT_EQ(bareReply(std::uint8_t(200), 1), 200);
  EXPECT_EQ(bareReply(true, 1), true);
  EXPECT_EQ(bareReply(std::string("yes"), 3), "yes");
  EXPECT_EQ(bareReply(std::string(), 0), "");
  EXPECT_EQ(bareReply(std::vector<float>{1, 2, 3}, 12),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(bareReply(std::vector<std::int16_t>(), 0),
            std::vector<std::int16_t>());
}

TEST(BitstreamBare, RepliesOfAnotherSizeAreMalformed) {
  auto ErrorOf = [](std::size_t NumBytes, const AdviceSpec &Wanted) {
    Error E = readError(std::string(NumBytes, '\0'), true, Wanted);
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << E.str();
    return E.message();
  };
  EXPECT_EQ(ErrorOf(3, AdviceSpec::of<float>()),
            "bare reply: expected 4 bytes (float), found 3");
  EXPECT_EQ(ErrorOf(8, AdviceSpec::of<float>()),
            "bare reply: expected 4 bytes (float), found 8");
  EXPECT_EQ(ErrorOf(0, AdviceSpec::of<std::int64_t>()),
            "bare reply: expected 8 bytes (int64_t), found 0");
  EXPECT_EQ(ErrorOf(6, AdviceSpec::of<std::vector<std::int32_t>>()),
            "bare reply: expected a multiple of 4 bytes (int32_t), found 6");
  EXPECT_THAT(readError("\2", true, AdviceSpec::of<bool>()).message(),
              HasSubstr("expected bools"));
  EXPECT_THAT(readError("\xff", true, AdviceSpec::of<std::string>()).message(),
              HasSubstr("expected UTF-8"));
}

TEST(BitstreamBare, RepliesNeedAType) {
  for (const AdviceSpec &Wanted :
       {AdviceSpec::any(), AdviceSpec::of<std::vector<std::string>>()}) {
    Error E = readError("1234", true, Wanted);
    EXPECT_EQ(E.code(), ErrorCode::Unsupported);
    EXPECT_THAT(E.message(), HasSubstr("evaluate<float>()"));
  }
}

TEST(BitstreamBare, LayoutOfRepliesIsTheirTypeAndSize) {
  BitstreamSerDes Compiler;
  Compiler.setDialect(BaseSerDes::Dialect::BareCompiler);
  auto LayoutOf = [&](std::size_t Size, const AdviceSpec &Wanted) {
    EXPECT_TRUE(
        Compiler.deserialize(Message(std::string(Size, '\0')).bytes(), Wanted));
    return Compiler.layout();
  };
  std::uint64_t Float = LayoutOf(4, AdviceSpec::of<float>());
  EXPECT_EQ(LayoutOf(4, AdviceSpec::of<float>()), Float);
  std::uint64_t Int = LayoutOf(4, AdviceSpec::of<int>());
  EXPECT_NE(Int, Float);
  std::uint64_t Ints = LayoutOf(4, AdviceSpec::of<std::vector<int>>());
  EXPECT_NE(Ints, Int);
  EXPECT_NE(LayoutOf(8, AdviceSpec::of<std::vector<int>>()), Ints);
}

TEST(BitstreamBare, RepliesThatRawBytesCannotHold) {
  BitstreamSerDes Model;
  Model.setDialect(BaseSerDes::Dialect::BareModel);
  auto CodeOf = [&](const FeatureSet &Reply) {
    return serialize(Model, Reply.tensors()).code();
  };
  FeatureSet Reply;
  EXPECT_EQ(CodeOf(Reply), ErrorCode::Unsupported);
  Reply.set("a", 1);
  EXPECT_EQ(CodeOf(Reply), ErrorCode::Success);
  Reply.set("b", 2);
  EXPECT_EQ(CodeOf(Reply), ErrorCode::Unsupported);
  for (const char *Name : {"_error", "_deferred"}) {
    Reply.clear();
    Reply.set(Name, "because");
    EXPECT_EQ(CodeOf(Reply), ErrorCode::Unsupported);
    EXPECT_THAT(std::string(serialize(Model, Reply.tensors()).message()),
                HasSubstr("because"));
  }
  Reply.clear();
  Reply.set("a", std::vector<std::string>{"x"});
  EXPECT_EQ(CodeOf(Reply), ErrorCode::Unsupported);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(BitstreamMemory, NoAllocationOnceWarm) {
  BitstreamSerDes Writer, Reader;
  FeatureSet Short = manyTypes();
  FeatureSet Long = manyTypes();
  Long.set("floats", std::vector<float>(1000));
  Long.set("name", std::string(100, 'x'));
  Long.set("names", std::vector<std::string>(50, "abc"));
  Message Region(1 << 16);
  auto Round = [&] {
    for (const FeatureSet *Set : {&Short, &Short, &Long})
      EXPECT_TRUE(passes(Writer, Reader, Set->tensors(), Region));
  };
  EXPECT_EQ(allocationsOnceWarm(Round), 0u);
}

} // namespace
