//===- ProtobufMessageTest.cpp - A user's own messages --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ProtobufSerDes with the messages of features.proto against protoc's
/// generated code. Each side must read the other side's messages.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#include "features.pb.h"
#include "support/AllocationCounter.h"
#include "support/EchoModel.h"
#include "support/Messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::unique_ptr<ProtobufSerDes> codec(SerDes::Side Our) {
  auto Made = ProtobufSerDes::create(*::test::Features::descriptor(),
                                     *::test::Decision::descriptor(), Our);
  EXPECT_TRUE(Made) << Made.takeError().str();
  return std::move(*Made);
}

/// All fields of test.Features except the optional one.
FeatureSet features() {
  FeatureSet Set;
  Set.set("callee_size", std::int32_t(-12));
  Set.set("count", std::int64_t(1) << 40);
  Set.set("mask", std::uint32_t(~0u));
  Set.set("hash", std::uint64_t(~0ull));
  Set.set("weight", 0.1f);
  Set.set("cost", 0.1);
  Set.set("hot", true);
  Set.set("callee", "main");
  Set.set("blob", std::vector<std::uint8_t>{0, 255});
  Set.set("opcode", std::int32_t(7));
  Set.set("delta", std::int32_t(-3));
  Set.set("address", std::int64_t(-4));
  Set.set("word", std::uint32_t(5));
  Set.set("sizes", std::vector<std::int32_t>{1, -2});
  Set.set("deltas", std::vector<std::int64_t>{-1, 1});
  Set.set("hashes", std::vector<std::uint64_t>{1, ~0ull});
  Set.set("embedding", std::vector<float>{0.5f, -1.5f});
  Set.set("costs", std::vector<double>{0.5});
  Set.set("flags", std::vector<bool>{true, false});
  Set.set("names", std::vector<std::string>{"a", "", "é"});
  Set.set("opcodes", std::vector<std::int32_t>{0, 7});
  Set.set("unpacked", std::vector<float>{1.5f, 2.5f});
  return Set;
}

Expected<Message> written(const FeatureSet &Set,
                          SerDes::Side Our = SerDes::Side::Compiler) {
  return serialize(*codec(Our), Set.tensors());
}

void expectMismatch(const FeatureSet &Set, const std::string &Says) {
  Expected<Message> Written = written(Set);
  EXPECT_EQ(Written.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Written.message()),
              AllOf(HasSubstr("test.Features"), HasSubstr(Says)));
}

TEST(ProtobufMessage, WritesWhatProtocReads) {
  Expected<Message> Written = written(features());
  ASSERT_TRUE(Written) << Written.takeError().str();
  ::test::Features F;
  ASSERT_TRUE(F.ParseFromArray(Written->text().data(),
                               static_cast<int>(Written->text().size())));
  EXPECT_EQ(F.callee_size(), -12);
  EXPECT_EQ(F.count(), std::int64_t(1) << 40);
  EXPECT_EQ(F.mask(), ~0u);
  EXPECT_EQ(F.hash(), ~0ull);
  EXPECT_EQ(F.weight(), 0.1f);
  EXPECT_EQ(F.cost(), 0.1);
  EXPECT_TRUE(F.hot());
  EXPECT_EQ(F.callee(), "main");
  EXPECT_EQ(F.blob(), std::string("\0\xff", 2));
  EXPECT_EQ(F.opcode(), ::test::CALL);
  EXPECT_EQ(F.delta(), -3);
  EXPECT_EQ(F.address(), -4);
  EXPECT_EQ(F.word(), 5u);
  EXPECT_THAT(F.sizes(), ElementsAre(1, -2));
  EXPECT_THAT(F.deltas(), ElementsAre(-1, 1));
  EXPECT_THAT(F.hashes(), ElementsAre(1, ~0ull));
  EXPECT_THAT(F.embedding(), ElementsAre(0.5f, -1.5f));
  EXPECT_THAT(F.costs(), ElementsAre(0.5));
  EXPECT_THAT(F.flags(), ElementsAre(true, false));
  EXPECT_THAT(F.names(), ElementsAre("a", "", "é"));
  EXPECT_THAT(F.opcodes(), ElementsAre(0, 7));
  EXPECT_THAT(F.unpacked(), ElementsAre(1.5f, 2.5f));
  EXPECT_FALSE(F.has_hint());
  EXPECT_EQ(F.GetReflection()->GetUnknownFields(F).field_count(), 0);
}

TEST(ProtobufMessage, ReadsWhatProtocWrites) {
  Expected<Message> Ours = written(features());
  ::test::Features F;
  ASSERT_TRUE(F.ParseFromArray(Ours->text().data(),
                               static_cast<int>(Ours->text().size())));
  Message Theirs(F.SerializeAsString());
  auto Model = codec(SerDes::Side::Model);
  auto Tensors = Model->deserialize(Theirs.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(features().tensors(), *Tensors), "");

  F.set_hint(2);
  Message WithHint(F.SerializeAsString());
  Tensors = Model->deserialize(WithHint.bytes());
  ASSERT_TRUE(Tensors);
  EXPECT_EQ(Tensors->size(), features().size() + 1);
  EXPECT_EQ(*Advice(*Tensors).get<float>("hint"), 2);
}

TEST(ProtobufMessage, OmittedFieldsAreZero) {
  auto Model = codec(SerDes::Side::Model);
  Message Empty("");
  auto Tensors = Model->deserialize(Empty.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  Advice All(*Tensors);
  EXPECT_EQ(All.size(), features().size());
  EXPECT_EQ(*All.get<int>("callee_size"), 0);
  EXPECT_EQ(*All.get<std::string>("callee"), "");
  EXPECT_EQ(All.find("blob")->typeStr(), "uint8_t[0]");
  EXPECT_EQ(All.find("embedding")->typeStr(), "float[0]");
  EXPECT_EQ(All.find("names")->typeStr(), "string[0]");
}

TEST(ProtobufMessage, ReadsPartsInAnyOrder) {
  // The format permits a field to be split, although protoc's code never does
  // so.
  ::test::Features A, B;
  A.add_embedding(1);
  A.add_sizes(10);
  A.add_names("x");
  A.set_callee_size(1);
  B.add_embedding(2);
  B.add_embedding(3);
  B.add_sizes(20);
  B.add_names("y");
  B.set_callee_size(2);
  Message Both(A.SerializeAsString() + B.SerializeAsString());
  auto Model = codec(SerDes::Side::Model);
  auto Tensors = Model->deserialize(Both.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  Advice All(*Tensors);
  EXPECT_THAT(*All.get<std::vector<float>>("embedding"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*All.get<std::vector<int>>("sizes"), ElementsAre(10, 20));
  EXPECT_THAT(*All.get<std::vector<std::string>>("names"),
              ElementsAre("x", "y"));
  EXPECT_EQ(*All.get<int>("callee_size"), 2);
}

TEST(ProtobufMessage, AcceptsOtherWidthsIfTheValueFits) {
  FeatureSet Set = features();
  Set.set("callee_size", std::int64_t(7));
  Set.set("hash", 7);
  Set.set("weight", 0.5);
  Set.set("sizes", std::vector<std::uint8_t>{1, 255});
  Expected<Message> Written = written(Set);
  ASSERT_TRUE(Written) << Written.takeError().str();
  ::test::Features F;
  ASSERT_TRUE(F.ParseFromArray(Written->text().data(),
                               static_cast<int>(Written->text().size())));
  EXPECT_EQ(F.callee_size(), 7);
  EXPECT_EQ(F.hash(), 7u);
  EXPECT_EQ(F.weight(), 0.5f);
  EXPECT_THAT(F.sizes(), ElementsAre(1, 255));
}

TEST(ProtobufMessage, MismatchesNameFeatureFieldAndMessage) {
  FeatureSet Set = features();
  Set.set("callee_syze", 1);
  expectMismatch(Set, "feature 'callee_syze': message test.Features has no "
                      "field of this name; its fields are: callee_size, count");

  Set.clear();
  Set.set("count", 1);
  expectMismatch(Set, "field 'callee_size' of message test.Features has no "
                      "feature of this name; the features are: 'count'");

  Set = features();
  Set.set("callee_size", "twelve");
  expectMismatch(Set, "feature 'callee_size': field 'callee_size' of message "
                      "test.Features is int32, found string");
  Set = features();
  Set.set("callee_size", 1.0f);
  expectMismatch(Set, "is int32, found float");
  Set = features();
  Set.set("hot", 1);
  expectMismatch(Set, "is bool, found int32_t");
  Set = features();
  Set.set("callee_size", std::int64_t(1) << 31);
  expectMismatch(Set, "is int32, found int64_t with a value that does not fit");
  Set = features();
  Set.set("hash", -1);
  expectMismatch(Set,
                 "is uint64, found int32_t with a value that does not fit");
  Set = features();
  Set.set("embedding", 0.5f);
  expectMismatch(Set, "is repeated float, found float");
  Set = features();
  Set.set("weight", std::vector<float>{1});
  expectMismatch(Set, "is float, found float[1]");
  Set = features();
  std::vector<float> Matrix(6);
  Set.set("embedding", TensorRef(Matrix, {2, 3}));
  expectMismatch(Set, "is repeated float, found float[2,3]");
  Set = features();
  Set.set("blob", "text");
  expectMismatch(Set, "is bytes, found string");
}

TEST(ProtobufMessage, ReadersRefuseUnknownFields) {
  ::test::NewFeatures New;
  New.set_brand_new(1);
  Message M(New.SerializeAsString());
  auto Tensors = codec(SerDes::Side::Model)->deserialize(M.bytes());
  EXPECT_EQ(Tensors.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(
      std::string(Tensors.message()),
      HasSubstr("message test.Features has the unknown field number 14: "
                "the two sides have different versions of its "
                ".proto"));
}

TEST(ProtobufMessage, RefusesOtherEncodings) {
  auto Refused = [](std::string_view Bytes, const std::string &Says) {
    Message M(Bytes);
    auto Tensors = codec(SerDes::Side::Model)->deserialize(M.bytes());
    EXPECT_EQ(Tensors.code(), ErrorCode::Malformed);
    EXPECT_THAT(std::string(Tensors.message()), HasSubstr(Says));
  };
  // Field 1, an int32, arrives as a string. Field 8, a string, arrives as a
  // number.
  Refused("\x0a\x01x", "feature 'callee_size': expected int32");
  Refused("\x40\x01", "feature 'callee': expected string");
  // Field 23, a list of floats, arrives with 3 bytes.
  Refused("\xba\x01\x03xyz", "feature 'embedding': expected repeated float");
  Refused("\x42\x01\xff", "feature 'callee': expected UTF-8");
  Refused("\x42\x7fx", "cut short");
}

TEST(ProtobufMessage, ErrorsAndDeferralsNeedNoFields) {
  auto Model = codec(SerDes::Side::Model),
       Compiler = codec(SerDes::Side::Compiler);
  for (std::string_view Name : {ReplyNames::Error, ReplyNames::Deferred}) {
    FeatureSet Set;
    Set.set(Name, "not today");
    Expected<Message> Written = serialize(*Model, Set.tensors());
    ASSERT_TRUE(Written) << Written.takeError().str();
    auto Tensors = Compiler->deserialize(Written->bytes());
    EXPECT_EQ(Tensors.code(), Name == ReplyNames::Error ? ErrorCode::Model
                                                        : ErrorCode::Deferred);
    EXPECT_EQ(Tensors.message(), "not today");
    // A reader that knows only the user's message finds no fields in it.
    ::test::Decision D;
    EXPECT_TRUE(D.ParseFromArray(Written->text().data(),
                                 static_cast<int>(Written->text().size())));
  }
}

TEST(ProtobufMessage, EnumsAreWrittenByName) {
  FeatureSet Set = features();
  Set.set("opcode", "CALL");
  Set.set("opcodes", std::vector<std::string>{"CALL", "ADD"});
  Expected<Message> Written = written(Set);
  ASSERT_TRUE(Written) << Written.takeError().str();
  ::test::Features F;
  ASSERT_TRUE(F.ParseFromArray(Written->text().data(),
                               static_cast<int>(Written->text().size())));
  EXPECT_EQ(F.opcode(), ::test::CALL);
  EXPECT_THAT(F.opcodes(), ElementsAre(::test::CALL, ::test::ADD));
  Set.set("opcode", "JUMP");
  expectMismatch(Set, "is enum, found the name 'JUMP', which the enum lacks");
}

TEST(ProtobufMessage, ReservedTensorsNeedNoFields) {
  FeatureSet Set;
  Set.set("_command", "reset");
  Set.set("_seed", std::int64_t(7));
  Expected<Message> Written = written(Set);
  ASSERT_TRUE(Written) << Written.takeError().str();
  auto Model = codec(SerDes::Side::Model);
  auto Tensors = Model->deserialize(Written->bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(*Advice(*Tensors).get<std::string>("_command"), "reset");
  Set.set("callee_size", 1);
  expectMismatch(Set, "field 'count' of message test.Features has no feature");
}

TEST(ProtobufMessage, CarriesReservedTensors) {
  FeatureSet Set = features();
  Set.set("_reward", 0.5);
  Set.set("_terminated", false);
  Expected<Message> Written = written(Set);
  ASSERT_TRUE(Written) << Written.takeError().str();
  auto Model = codec(SerDes::Side::Model);
  auto Tensors = Model->deserialize(Written->bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
}

TEST(ProtobufMessage, UnsupportedMessagesAreNamed) {
  auto Refused = [](const google::protobuf::Descriptor *Request) {
    auto Made = ProtobufSerDes::create(
        *Request, *::test::Decision::descriptor(), SerDes::Side::Compiler);
    EXPECT_EQ(Made.code(), ErrorCode::Unsupported);
    return std::string(Made.message());
  };
  EXPECT_THAT(
      Refused(::test::TakesOurNumber::descriptor()),
      HasSubstr("field 'x' of message test.TakesOurNumber cannot hold a "
                "feature: its number is reserved"));
  EXPECT_THAT(Refused(::test::ListOfBytes::descriptor()),
              HasSubstr("a list of bytes"));
}

TEST(ProtobufMessage, AllocatesNothingOnceWarm) {
  auto Writer = codec(SerDes::Side::Compiler),
       Reader = codec(SerDes::Side::Model);
  Message Region(1 << 16);
  FeatureSet Set = features();
  Set.set("count", 3);
  auto Round = [&] {
    EXPECT_TRUE(passes(*Writer, *Reader, Set.tensors(), Region));
  };
  EXPECT_EQ(allocationsOnceWarm(Round), 0u);
}

TEST(ProtobufMessage, TheHandshakeNamesTheMessages) {
  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  ModelServerOptions Options;
  addProtobuf<::test::Decision, ::test::Decision>(Options.Formats);
  EchoModel Model(Name, Options);
  RunnerFactory Factory;
  addProtobuf<::test::Decision, ::test::Decision>(Factory.formats());
  addProtobuf<::test::Features, ::test::Decision>(Factory.formats());
  auto Runner = Factory.create("pipe:" + Name +
                               "?serdes=protobuf:test.Decision/test.Decision");
  ASSERT_TRUE(Runner) << Runner.takeError().str();
  (*Runner)->populateFeatures(std::pair{"inline", true},
                              std::pair{"scores", std::vector<float>{1, 2}});
  Expected<Advice> Reply = (*Runner)->tryEvaluate<Advice>();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_TRUE(*Reply->get<bool>("inline"));
  EXPECT_THAT(*Reply->get<std::vector<float>>("scores"), ElementsAre(1, 2));

  Runner = Factory.create("pipe:" + Name +
                          "?serdes=protobuf:test.Features/test.Decision");
  ASSERT_TRUE(Runner) << Runner.takeError().str();
  (*Runner)->populateFeatures(std::pair{"inline", true});
  Reply = (*Runner)->tryEvaluate<Advice>();
  EXPECT_FALSE(Reply);
  EXPECT_THAT(
      std::string(Reply.message()),
      HasSubstr("unknown SerDes 'protobuf:test.Features/test.Decision'; "
                "known: bitstream, json, "
                "protobuf:test.Decision/test.Decision"));
}

} // namespace
