//===- ProtobufNestedTest.cpp - Messages in a user's own messages ---------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ProtobufSerDes with the messages of graph.proto against protoc's
/// generated code: an interference graph as nested messages, and its colouring.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#include "graph.pb.h"
#include "support/AllocationCounter.h"
#include "support/Messages.h"

#include <google/protobuf/descriptor.pb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Strings = std::vector<std::string>;

std::unique_ptr<ProtobufSerDes> graphCodec(SerDes::Side Our) {
  auto Made = ProtobufSerDes::create(*::test::GraphFeatures::descriptor(),
                                     *::test::Colouring::descriptor(), Our);
  EXPECT_TRUE(Made) << Made.takeError().str();
  return std::move(*Made);
}

/// The features of a graph of three intervals.
FeatureSet graph() {
  FeatureSet Set;
  Set.set("num_registers", std::int32_t(2));
  Set.set("target", std::int32_t(::test::VECTOR));
  Set.set("graph.function", "main");
  Set.set("graph.nodes[].id", std::vector<std::int32_t>{1, 2, 3});
  Set.set("graph.nodes[].weight", std::vector<float>{0.5f, 1.5f, 2.5f});
  Set.set("graph.nodes[].kind", std::vector<std::int32_t>{0, 5, 1});
  Set.set("graph.nodes[].name", Strings{"a", "", "ç"});
  Set.set("graph.nodes[].neighbours", std::vector<std::int32_t>{2, 3, 1});
  Set.set("graph.nodes[].neighbours[]", std::vector<std::int64_t>{2, 1, 0});
  Set.set("graph.nodes[].uses[]", std::vector<std::int64_t>{0, 2, 1});
  Set.set("graph.nodes[].uses[].block", std::vector<std::int32_t>{7, 8, 9});
  Set.set("graph.nodes[].uses[].frequency",
          std::vector<double>{0.25, 0.0, 0.75});
  Set.set("graph.nodes[].uses[].frequency?",
          std::vector<bool>{true, false, true});
  Set.set("graph.nodes[].range.begin", std::vector<std::int64_t>{0, 4, 8});
  Set.set("graph.nodes[].range.end", std::vector<std::int64_t>{4, 8, 99});
  Set.set("graph.nodes[].preferred", std::vector<std::int32_t>{1, 0, 0});
  Set.set("graph.nodes[].preferred?", std::vector<bool>{true, false, false});
  Set.set("graph.nodes[].near?", std::vector<bool>{false, true, false});
  Set.set("graph.nodes[].near.begin", std::vector<std::int64_t>{0, -1, 0});
  Set.set("graph.nodes[].near.end", std::vector<std::int64_t>{0, 1, 0});
  Set.set("graph.nodes[].reason", Strings{"", "", ""});
  Set.set("graph.nodes[].reason?", std::vector<bool>{false, false, false});
  Set.set("graph.nodes[].embedding", std::vector<float>{1, 2, 3, 4, 5, 6});
  Set.set("graph.nodes[].embedding[]", std::vector<std::int64_t>{2, 2, 2});
  Set.set("graph.nodes[].mask", std::vector<std::uint8_t>{0, 255});
  Set.set("graph.nodes[].mask[]", std::vector<std::int64_t>{0, 2, 0});
  Set.set("graph.nodes[].aliases", Strings{"x", "yy", ""});
  Set.set("graph.nodes[].aliases[]", std::vector<std::int64_t>{1, 0, 2});
  Set.set("graph.costs[].key", Strings{"a", "ç"});
  Set.set("graph.costs[].value", std::vector<double>{0.5, 2.0});
  Set.set("graph.classes", std::vector<std::int32_t>{0, 5});
  Set.set("graph.digest", std::vector<std::uint8_t>{1, 2});
  Set.set("budget?", true);
  Set.set("budget.begin", std::int64_t(3));
  Set.set("budget.end", std::int64_t(4));
  Set.set("blocks[].key", std::vector<std::int32_t>{9, -1});
  Set.set("blocks[].value.begin", std::vector<std::int64_t>{1, 2});
  Set.set("blocks[].value.end", std::vector<std::int64_t>{3, 4});
  Set.set("marks[]", std::int64_t(2));
  return Set;
}

/// The same graph as a message of protoc's code.
::test::GraphFeatures graphMessage() {
  ::test::GraphFeatures F;
  Expected<Message> Ours =
      serialize(*graphCodec(SerDes::Side::Compiler), graph().tensors());
  EXPECT_TRUE(Ours) << Ours.takeError().str();
  EXPECT_TRUE(F.ParseFromArray(Ours->text().data(),
                               static_cast<int>(Ours->text().size())));
  return F;
}

void expectRefused(const FeatureSet &Set, const std::string &Says) {
  Expected<Message> Written =
      serialize(*graphCodec(SerDes::Side::Compiler), Set.tensors());
  EXPECT_EQ(Written.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Written.message()), HasSubstr(Says));
}

/// Writes \p Set, and parses the bytes with the class that protoc has made.
template <typename T>
static void write(const FeatureSet &Set, SerDes::Side Side, T &Theirs) {
  Expected<Message> Written = serialize(*graphCodec(Side), Set.tensors());
  ASSERT_TRUE(Written) << Written.takeError().str();
  ASSERT_TRUE(Theirs.ParseFromArray(Written->text().data(),
                                    static_cast<int>(Written->text().size())));
}

TEST(ProtobufNested, WritesTheGraphThatProtocReads) {
  const ::test::GraphFeatures F = graphMessage();
  EXPECT_EQ(F.num_registers(), 2);
  EXPECT_EQ(F.target(), ::test::VECTOR);
  EXPECT_EQ(F.graph().function(), "main");
  EXPECT_EQ(F.graph().digest(), "\1\2");
  EXPECT_THAT(F.graph().classes(), ElementsAre(0, 5));
  ASSERT_EQ(F.graph().nodes_size(), 3);
  const ::test::Interval &A = F.graph().nodes(0), &B = F.graph().nodes(1),
                         &C = F.graph().nodes(2);
  EXPECT_EQ(A.id(), 1);
  EXPECT_EQ(C.weight(), 2.5f);
  EXPECT_EQ(B.kind(), ::test::VECTOR);
  EXPECT_EQ(C.name(), "ç");
  EXPECT_THAT(A.neighbours(), ElementsAre(2, 3));
  EXPECT_THAT(B.neighbours(), ElementsAre(1));
  EXPECT_EQ(C.neighbours_size(), 0);
  ASSERT_EQ(B.uses_size(), 2);
  EXPECT_EQ(A.uses_size(), 0);
  EXPECT_EQ(B.uses(1).block(), 8);
  EXPECT_TRUE(B.uses(0).has_frequency());
  EXPECT_FALSE(B.uses(1).has_frequency());
  EXPECT_EQ(C.uses(0).frequency(), 0.75);
  EXPECT_EQ(C.range().end(), 99);
  EXPECT_EQ(A.hint_case(), ::test::Interval::kPreferred);
  EXPECT_EQ(B.hint_case(), ::test::Interval::kNear);
  EXPECT_EQ(C.hint_case(), ::test::Interval::HINT_NOT_SET);
  EXPECT_EQ(B.near().begin(), -1);
  EXPECT_THAT(C.embedding(), ElementsAre(5, 6));
  EXPECT_EQ(B.mask(), std::string("\0\xff", 2));
  EXPECT_EQ(A.mask(), "");
  EXPECT_THAT(A.aliases(), ElementsAre("x"));
  EXPECT_THAT(C.aliases(), ElementsAre("yy", ""));
  EXPECT_EQ(F.graph().costs().at("ç"), 2.0);
  EXPECT_EQ(F.limit_case(), ::test::GraphFeatures::kBudget);
  EXPECT_EQ(F.budget().end(), 4);
  EXPECT_FALSE(F.has_window());
  EXPECT_EQ(F.blocks().at(-1).end(), 4);
  EXPECT_EQ(F.marks_size(), 2);
}

TEST(ProtobufNested, ReadsTheGraphThatProtocWrites) {
  Message Theirs(graphMessage().SerializeAsString());
  auto Model = graphCodec(SerDes::Side::Model);
  for (int Round = 0; Round < 2; ++Round) {
    auto Tensors = Model->deserialize(Theirs.bytes());
    ASSERT_TRUE(Tensors) << Tensors.takeError().str();
    // protoc's code may write the entries of a map in any order.
    Advice All(*Tensors);
    EXPECT_EQ(All.size(), graph().size());
    FeatureSet Set = graph();
    Set.set("graph.costs[].key", *All.get<Strings>("graph.costs[].key"));
    Set.set("graph.costs[].value",
            *All.get<std::vector<double>>("graph.costs[].value"));
    for (const char *Name : {"blocks[].value.begin", "blocks[].value.end"})
      Set.set(Name, *All.get<std::vector<std::int64_t>>(Name));
    Set.set("blocks[].key",
            *All.get<std::vector<std::int32_t>>("blocks[].key"));
    EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
  }
}

TEST(ProtobufNested, CarriesAColouringBack) {
  FeatureSet Set;
  Set.set("assignments[].colour", std::vector<std::int32_t>{4, 0, 0, 0});
  Set.set("assignments[].colour?",
          std::vector<bool>{true, false, false, false});
  Set.set("assignments[].spill?", std::vector<bool>{false, true, false, false});
  Set.set("assignments[].split?", std::vector<bool>{false, false, true, false});
  Set.set("assignments[].split.begin", std::vector<std::int64_t>{0, 0, 5, 0});
  Set.set("assignments[].split.end", std::vector<std::int64_t>{0, 0, 6, 0});
  Set.set("statistics[].key", Strings{"spills"});
  Set.set("statistics[].value", std::vector<std::int32_t>{1});
  Set.set("busiest", "FLOATING");
  ::test::Colouring Theirs;
  ASSERT_NO_FATAL_FAILURE(write(Set, SerDes::Side::Model, Theirs));
  ASSERT_EQ(Theirs.assignments_size(), 4);
  EXPECT_EQ(Theirs.assignments(0).colour(), 4);
  EXPECT_TRUE(Theirs.assignments(1).has_spill());
  EXPECT_EQ(Theirs.assignments(2).split().end(), 6);
  EXPECT_EQ(Theirs.assignments(3).where_case(),
            ::test::Assignment::WHERE_NOT_SET);
  EXPECT_EQ(Theirs.statistics().at("spills"), 1);
  EXPECT_EQ(Theirs.busiest(), ::test::FLOATING);

  Message Back(Theirs.SerializeAsString());
  auto Compiler = graphCodec(SerDes::Side::Compiler);
  auto Tensors = Compiler->deserialize(Back.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  Set.set("busiest", std::int32_t(::test::FLOATING));
  EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
}

TEST(ProtobufNested, RowsOfOneLengthAreAMatrix) {
  const FeatureSet All = graph();
  FeatureSet Set;
  for (const TensorView &Feature : All.tensors())
    if (Feature.Name != "graph.nodes[].embedding[]" &&
        Feature.Name != "graph.nodes[].embedding")
      Set.set(Feature.Name, Feature);
  std::vector<float> Rows{1, 2, 3, 4, 5, 6};
  Set.set("graph.nodes[].embedding", TensorRef(Rows, {3, 2}));
  ::test::GraphFeatures F;
  ASSERT_NO_FATAL_FAILURE(write(Set, SerDes::Side::Compiler, F));
  EXPECT_EQ(F.SerializeAsString().size(),
            graphMessage().SerializeAsString().size());
  EXPECT_THAT(F.graph().nodes(1).embedding(), ElementsAre(3, 4));
  Set.set("graph.nodes[].embedding[]", std::vector<int>{2, 2, 2});
  expectRefused(Set,
                "feature 'graph.nodes[].embedding[]': expected no lengths");
}

TEST(ProtobufNested, AbsentMessagesHaveZeros) {
  auto Model = graphCodec(SerDes::Side::Model);
  Message Empty("");
  auto Tensors = Model->deserialize(Empty.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  Advice All(*Tensors);
  EXPECT_EQ(*All.get<std::string>("graph.function"), "");
  EXPECT_EQ(All.find("graph.nodes[].weight")->typeStr(), "float[0]");
  EXPECT_EQ(All.find("graph.nodes[].name")->typeStr(), "string[0]");
  EXPECT_EQ(All.find("graph.nodes[].uses[]")->typeStr(), "int64_t[0]");
  EXPECT_EQ(*All.get<int>("marks[]"), 0);
  for (const char *Name : {"budget?", "budget.begin", "max_splits",
                           "unlimited?", "window?", "window.end"})
    EXPECT_EQ(All.find(Name), nullptr) << Name;
}

TEST(ProtobufNested, FollowsProtobufsRulesOfMerging) {
  // If a nested message is sent twice, its parts are merged. If several members
  // of a oneof are sent, the last one counts.
  ::test::GraphFeatures A, B;
  A.mutable_graph()->set_function("first");
  A.mutable_graph()->add_nodes()->set_id(1);
  A.mutable_budget()->set_begin(5);
  B.mutable_graph()->add_nodes()->set_preferred(2);
  B.mutable_graph()->mutable_nodes(0)->add_uses()->set_block(3);
  B.set_max_splits(7);
  Message Both(A.SerializeAsString() + B.SerializeAsString());
  auto Model = graphCodec(SerDes::Side::Model);
  auto Tensors = Model->deserialize(Both.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  Advice All(*Tensors);
  EXPECT_EQ(*All.get<std::string>("graph.function"), "first");
  EXPECT_THAT(*All.get<std::vector<int>>("graph.nodes[].id"),
              ElementsAre(1, 0));
  EXPECT_THAT(*All.get<std::vector<int>>("graph.nodes[].uses[]"),
              ElementsAre(0, 1));
  EXPECT_EQ(*All.get<int>("max_splits"), 7);
  EXPECT_EQ(All.find("budget?"), nullptr);

  // The same holds for a oneof in an element of a repeated field: this Interval
  // has field 8, then field 10.
  Message Twice("\x12\x07\x12\x05\x40\x02\x52\x01x");
  Tensors = Model->deserialize(Twice.bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  All = Advice(*Tensors);
  EXPECT_THAT(*All.get<std::vector<bool>>("graph.nodes[].preferred?"),
              ElementsAre(false));
  EXPECT_THAT(*All.get<Strings>("graph.nodes[].reason"), ElementsAre("x"));
}

TEST(ProtobufNested, OptionalMessagesAreLeftOut) {
  FeatureSet Set = graph();
  Set.set("window.begin", std::int64_t(1));
  expectRefused(Set, "feature 'window.end': expected this feature for message "
                     "test.GraphFeatures, found none");
  Set.set("window.end", std::int64_t(2));
  Set.set("budget?", false);
  Set.set("unlimited?", true);
  ::test::GraphFeatures F;
  ASSERT_NO_FATAL_FAILURE(write(Set, SerDes::Side::Compiler, F));
  EXPECT_EQ(F.window().end(), 2);
  EXPECT_EQ(F.limit_case(), ::test::GraphFeatures::kUnlimited);
}

TEST(ProtobufNested, MismatchesNameFeatureAndNumbers) {
  FeatureSet Set = graph();
  Set.set("graph.nodes[].weight", std::vector<float>{1, 2});
  expectRefused(Set, "feature 'graph.nodes[].weight': expected 3 messages "
                     "'graph.nodes[]' as in 'graph.nodes[].id', found 2");
  Set = graph();
  Set.set("graph.nodes[].uses[]", std::vector<std::int64_t>{0, 2});
  expectRefused(Set, "feature 'graph.nodes[].uses[]': expected 3 messages");
  Set = graph();
  Set.set("graph.nodes[].uses[]", std::vector<std::int64_t>{0, 3, 1});
  expectRefused(Set, "feature 'graph.nodes[].uses[].block': expected 4 "
                     "messages 'graph.nodes[].uses[]' as in "
                     "'graph.nodes[].uses[]', found 3");
  Set.set("graph.nodes[].uses[]", std::vector<std::int64_t>{0, -1, 1});
  expectRefused(Set, "expected lengths from 0");
  Set = graph();
  Set.set("graph.nodes[].neighbours[]", std::vector<std::int64_t>{1, 1, 0});
  expectRefused(Set, "feature 'graph.nodes[].neighbours': expected 2 elements, "
                     "which is the sum of 'graph.nodes[].neighbours[]', found "
                     "3");
  Set = graph();
  Set.set("graph.nodes[].weight", 1.0f);
  expectRefused(Set, "is float, one for each message, of rank 1, found float");
  Set = graph();
  Set.set("graph.nodes[].id", std::vector<std::int64_t>{1, 2, 1ll << 40});
  expectRefused(Set, "is int32, found int64_t[3] with a value that does not "
                     "fit");
  Set = graph();
  Set.set("graph.nodes[].kind", Strings{"GENERAL", "VECTOR", "GPR"});
  expectRefused(Set, "is enum, found the name 'GPR', which the enum lacks");
  Set = graph();
  Set.set("graph.nodes[].colour", 1);
  expectRefused(Set, "feature 'graph.nodes[].colour': message "
                     "test.GraphFeatures has no field of this name; its fields "
                     "are: num_registers, max_splits, target, graph.function");
  Set = graph();
  Set.set("graph.nodes[].preferred?", std::vector<bool>{true, true, false});
  expectRefused(Set, "oneof 'hint' in 'graph.nodes[]' of message "
                     "test.GraphFeatures can have one field, found two in "
                     "message 1");
  Set = graph();
  Set.set("max_splits", 3);
  expectRefused(Set, "oneof 'limit' of message test.GraphFeatures can have one "
                     "field, found 'max_splits' and 'budget'");
  Set = graph();
  Set.set("graph.costs[].key", Strings{"a", "a"});
  expectRefused(Set, "feature 'graph.costs[].key': a map has the same key "
                     "twice");
  Set = graph();
  Set.set("graph.digest", "text");
  expectRefused(Set, "is bytes, found string");
  Set.clear();
  Set.set("num_registers", 1);
  Set.set("target", "GENERAL");
  expectRefused(Set, "feature 'graph.function': expected this feature for "
                     "message test.GraphFeatures, found none");
}

TEST(ProtobufNested, ReadersRefuseOtherEncodings) {
  auto Refused = [](std::string_view Bytes, ErrorCode Code,
                    const std::string &Says) {
    Message M(Bytes);
    auto Tensors = graphCodec(SerDes::Side::Model)->deserialize(M.bytes());
    EXPECT_EQ(Tensors.code(), Code);
    EXPECT_THAT(std::string(Tensors.message()), HasSubstr(Says));
  };
  // Field 2, the graph, arrives as a number.
  Refused("\x10\x01", ErrorCode::Malformed,
          "feature 'graph': expected a message test.Graph");
  Refused("\x12\x01\x0a", ErrorCode::Malformed,
          "feature 'graph': message test.Graph: cut short");
  Refused("\x12\x02\x08\x01", ErrorCode::Malformed,
          "feature 'graph.function': expected string");
  Refused("\x12\x03\xa0\x06\x01", ErrorCode::SchemaMismatch,
          "message test.Graph has the unknown field number 100");
  // A node whose id, field 1, is a string.
  Refused(std::string("\x12\x04\x12\x02\x0a\x00", 6), ErrorCode::Malformed,
          "feature 'graph.nodes[].id': expected int32");
  // The name of a node is not UTF-8.
  Refused("\x12\x05\x12\x03\x22\x01\xff", ErrorCode::Malformed,
          "feature 'graph.nodes[].name': expected UTF-8");
  // Two entries of the map graph.costs without keys, thus with equal keys.
  Refused(std::string("\x12\x04\x1a\x00\x1a\x00", 6), ErrorCode::Malformed,
          "feature 'graph.costs[].key': a map has the same key twice");
}

TEST(ProtobufNested, KeepsMapsOfDifferentMessagesApart) {
  google::protobuf::FileDescriptorProto File;
  File.set_name("maps.proto");
  File.set_syntax("proto3");
  auto *Outer = File.add_message_type(), *Inner = File.add_message_type();
  Outer->set_name("Outer");
  Inner->set_name("Inner");
  auto *Items = Outer->add_field();
  Items->set_name("items");
  Items->set_number(1);
  Items->set_label(google::protobuf::FieldDescriptorProto::LABEL_REPEATED);
  Items->set_type(google::protobuf::FieldDescriptorProto::TYPE_MESSAGE);
  Items->set_type_name(".Inner");
  auto *Map = Inner->add_field();
  *Map = *Items;
  Map->set_name("sizes");
  Map->set_type_name(".Inner.SizesEntry");
  auto *Entry = Inner->add_nested_type();
  Entry->set_name("SizesEntry");
  Entry->mutable_options()->set_map_entry(true);
  for (const char *Name : {"key", "value"}) {
    auto *Field = Entry->add_field();
    Field->set_name(Name);
    Field->set_number(Entry->field_size());
    Field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
    Field->set_type(google::protobuf::FieldDescriptorProto::TYPE_STRING);
  }
  google::protobuf::DescriptorPool Pool;
  const auto *Built = Pool.BuildFile(File);
  ASSERT_NE(Built, nullptr);
  auto Codec = ProtobufSerDes::create(
      *Built->message_type(0), *Built->message_type(0), SerDes::Side::Compiler);
  ASSERT_TRUE(Codec) << Codec.takeError().str();
  FeatureSet Set;
  Set.set("items[].sizes[]", std::vector<std::int64_t>{2, 0, 1});
  Set.set("items[].sizes[].key", Strings{"a", "b", "a"});
  Set.set("items[].sizes[].value", Strings{"1", "2", "3"});
  Expected<Message> Written = serialize(**Codec, Set.tensors());
  ASSERT_TRUE(Written) << Written.takeError().str();
  auto Tensors = (*Codec)->deserialize(Written->bytes());
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(Set.tensors(), *Tensors), "");
  Set.set("items[].sizes[].key", Strings{"a", "a", "b"});
  EXPECT_EQ(serialize(**Codec, Set.tensors()).code(),
            ErrorCode::SchemaMismatch);
}

TEST(ProtobufNested, BoundsTheDepth) {
  auto Code = [](const google::protobuf::Descriptor &Type) {
    auto Made = ProtobufSerDes::create(Type, Type, SerDes::Side::Compiler);
    return std::pair(Made.code(), std::string(Made.message()));
  };
  auto [Recursive, Says] = Code(*::test::Recursive::descriptor());
  EXPECT_EQ(Recursive, ErrorCode::Unsupported);
  EXPECT_THAT(Says, HasSubstr("field 'children' of message test.Recursive "
                              "cannot hold a feature: its message "
                              "test.Recursive contains itself"));

  // Each message type has a field of the next type. From the fifth type on, it
  // has two such fields.
  google::protobuf::FileDescriptorProto File;
  File.set_name("deep.proto");
  File.set_syntax("proto3");
  constexpr int NumMessages = 20;
  for (int I = 0; I < NumMessages; ++I) {
    auto *Made = File.add_message_type();
    Made->set_name("M" + std::to_string(I));
    for (int Number = 1; Number <= 3 && I + 1 < NumMessages; ++Number) {
      auto *Field = Made->add_field();
      Field->set_name("f" + std::to_string(Number));
      Field->set_number(Number);
      Field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
      Field->set_type(google::protobuf::FieldDescriptorProto::TYPE_INT32);
      if (Number == 1 || (Number == 2 && I >= 4)) {
        Field->set_type(google::protobuf::FieldDescriptorProto::TYPE_MESSAGE);
        Field->set_type_name(".M" + std::to_string(I + 1));
      }
    }
  }
  google::protobuf::DescriptorPool Pool;
  const auto *Built = Pool.BuildFile(File);
  ASSERT_NE(Built, nullptr);
  EXPECT_THAT(Code(*Built->message_type(0)).second,
              HasSubstr("it is in more than 16 messages"));
  EXPECT_THAT(Code(*Built->message_type(3)).second,
              HasSubstr("it is in more than 16 messages"));
  EXPECT_THAT(Code(*Built->message_type(4)).second,
              HasSubstr("there are more than 4096 fields with it"));
  EXPECT_EQ(Code(*Built->message_type(12)).first, ErrorCode::Success);
}

TEST(ProtobufNested, AllocatesNothingOnceWarm) {
  auto Writer = graphCodec(SerDes::Side::Compiler),
       Reader = graphCodec(SerDes::Side::Model);
  Message Region(1 << 16);
  FeatureSet Set = graph();
  auto Round = [&] {
    EXPECT_TRUE(passes(*Writer, *Reader, Set.tensors(), Region));
  };
  EXPECT_EQ(allocationsOnceWarm(Round), 0u);
}

} // namespace
