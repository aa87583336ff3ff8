//===- VocabularyTest.cpp - Reading IR2Vec vocabularies -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests valid vocabulary files, the errors for invalid files, and the hash by
/// which a model identifies its vocabulary.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/EmbeddingVocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr char Small[] = R"({
  "Opcodes": {"Add": [1, 2], "Ret": [0.25, -3e1]},
  "Types": {"VoidTy": [2, 4], "IntegerTy": [-2, 0]},
  "Arguments": {"Variable": [10, 0], "ICMP_eq": [5, 5]}
})";
// tests/python/test_ir2vec.py expects the same hash.
constexpr char SmallHash[] =
    "sha256:"
    "524105d716a09a7ed11b4f23e6a62cc4062aab99367e36241875041ee2d14ce3";

Expected<EmbeddingVocabulary> parse(std::string_view Text) {
  return EmbeddingVocabulary::parse(Text, "folder/small.json");
}

void expectError(std::string_view Text, ErrorCode Code,
                 const std::string &Part) {
  Expected<EmbeddingVocabulary> Found = parse(Text);
  ASSERT_FALSE(Found) << Text.substr(0, 100);
  EXPECT_EQ(Found.code(), Code) << Found.message();
  EXPECT_THAT(std::string(Found.message()), HasSubstr("folder/small.json"));
  EXPECT_THAT(std::string(Found.message()), HasSubstr(Part));
}

unsigned entity(std::string_view Name) {
  for (unsigned Entity = 0; Entity != NumIREntities; ++Entity)
    if (entityName(Entity) == Name)
      return Entity;
  ADD_FAILURE() << Name;
  return 0;
}

TEST(IREntities, AreNumberedAndNamedAsLLVMDoes) {
  std::set<std::string> Names;
  for (unsigned Entity = 0; Entity != NumIREntities; ++Entity) {
    const std::string LLVMs =
        llvm::ir2vec::Vocabulary::getStringKey(Entity).str();
    EXPECT_EQ(entityName(Entity), LLVMs);
    Names.insert(LLVMs);
  }
  EXPECT_EQ(Names.size(), NumIREntities);
  for (unsigned P = llvm::CmpInst::FIRST_FCMP_PREDICATE;
       P <= llvm::CmpInst::LAST_FCMP_PREDICATE; ++P) {
    auto Predicate = static_cast<llvm::CmpInst::Predicate>(P);
    EXPECT_EQ(entityOfPredicate(Predicate),
              llvm::ir2vec::Vocabulary::getIndex(Predicate));
  }
  for (unsigned P = llvm::CmpInst::FIRST_ICMP_PREDICATE;
       P <= llvm::CmpInst::LAST_ICMP_PREDICATE; ++P) {
    auto Predicate = static_cast<llvm::CmpInst::Predicate>(P);
    EXPECT_EQ(entityOfPredicate(Predicate),
              llvm::ir2vec::Vocabulary::getIndex(Predicate));
  }
}

TEST(EmbeddingVocabulary, HasWeightedVectors) {
  Expected<EmbeddingVocabulary> V = parse(Small);
  ASSERT_TRUE(V) << V.message();
  EXPECT_EQ(V->dimension(), 2U);
  EXPECT_EQ(V->name(), "small.json");
  EXPECT_THAT((*V)[entity("Ret")], ElementsAre(0.25, -30));
  EXPECT_THAT((*V)[entity("IntegerTy")], ElementsAre(-1, 0));
  EXPECT_THAT(
      (*V)[entity("ICMP_eq")],
      ElementsAre(testing::DoubleNear(1, 1e-7), testing::DoubleNear(1, 1e-7)));
  EXPECT_THAT((*V)[entity("FRem")], ElementsAre(0, 0));
  EXPECT_EQ(V->missing().size(), NumIREntities - 6);
  EXPECT_THAT(V->missing(), testing::Contains("FRem"));
  EXPECT_TRUE(V->unknown().empty());
}

TEST(EmbeddingVocabulary, HashesWhatItMeans) {
  Expected<EmbeddingVocabulary> V = parse(Small);
  ASSERT_TRUE(V);
  EXPECT_EQ(V->hash(), SmallHash);
  // Another order, other notations of the numbers, zero vectors, and an unknown
  // section leave the hash the same.
  Expected<EmbeddingVocabulary> Same = parse(
      R"({"Arguments":{"ICMP_eq":[5e0,5.0],"Variable":[1e1,-0.0]},"more":[1],
          "Types":{"IntegerTy":[-2,0.0],"VoidTy":[2,4],"ArrayTy":[0,-0.0]},
          "Opcodes":{"Ret":[0.25,-30],"Add":[1,2]}})");
  ASSERT_TRUE(Same) << Same.message();
  EXPECT_EQ(Same->hash(), V->hash());
  // The hash changes with a different number, an additional entity (even if
  // LLVM does not know it), or an entity in another section.
  for (const char *Text :
       {R"({"Opcodes":{"Add":[1,2],"Ret":[0.25,-30.000000000000004]},
            "Types":{"VoidTy":[2,4],"IntegerTy":[-2,0]},
            "Arguments":{"Variable":[10,0],"ICMP_eq":[5,5]}})",
        R"({"Opcodes":{"Add":[1,2],"Ret":[0.25,-30],"New":[1,1]},
            "Types":{"VoidTy":[2,4],"IntegerTy":[-2,0]},
            "Arguments":{"Variable":[10,0],"ICMP_eq":[5,5]}})",
        R"({"Opcodes":{"Add":[1,2],"Ret":[0.25,-30],"ICMP_eq":[5,5]},
            "Types":{"VoidTy":[2,4],"IntegerTy":[-2,0]},
            "Arguments":{"Variable":[10,0]}})"}) {
    Expected<EmbeddingVocabulary> Other = parse(Text);
    ASSERT_TRUE(Other) << Other.message();
    EXPECT_NE(Other->hash(), V->hash()) << Text;
  }
}

TEST(EmbeddingVocabulary, NamesWhatLLVMDoesNotKnow) {
  Expected<EmbeddingVocabulary> V =
      parse(R"({"Opcodes":{"Add":[1],"getelementptr":[1],"Variable":[2]},
                "Types":{}, "Arguments":{}})");
  ASSERT_TRUE(V) << V.message();
  EXPECT_THAT(V->unknown(), ElementsAre("Variable", "getelementptr"));
}

TEST(EmbeddingVocabulary, RefusesWhatIsNoVocabulary) {
  const auto Malformed = ErrorCode::Malformed;
  const auto Mismatch = ErrorCode::SchemaMismatch;
  expectError("", Malformed, "expected JSON");
  expectError("{", Malformed, "expected JSON");
  expectError("{\"Opcodes\": {\"Add\": [1,}}", Malformed, "expected JSON");
  expectError("\xff", Malformed, "expected JSON");
  expectError("[]", Mismatch, "expected a JSON object, found an array");
  expectError("{}", Mismatch, "found no Opcodes");
  expectError(R"({"Opcodes":{"Add":[1]},"Types":{}})", Mismatch,
              "found no Arguments");
  expectError(R"({"Opcodes":[],"Types":{},"Arguments":{}})", Mismatch,
              "Opcodes: expected an object, found an array");
  expectError(R"({"Opcodes":{},"Types":{},"Arguments":{}})", Mismatch,
              "expected vectors, found none");
  expectError(R"({"Opcodes":{"Add":1},"Types":{},"Arguments":{}})", Mismatch,
              "Opcodes.Add: expected an array, found a number");
  expectError(R"({"Opcodes":{"Add":["1"]},"Types":{},"Arguments":{}})",
              Mismatch, "Opcodes.Add: expected numbers, found a string");
  expectError(R"({"Opcodes":{"Add":[]},"Types":{},"Arguments":{}})", Malformed,
              "Opcodes.Add: expected numbers, found an empty array");
  expectError(
      R"({"Opcodes":{"Add":[1,2]},"Types":{"VoidTy":[1]},"Arguments":{}})",
      Malformed, "Types.VoidTy: expected dimension 2");
  expectError(R"({"Opcodes":{"Add":[1e999]},"Types":{},"Arguments":{}})",
              Malformed, "");
  expectError(R"({"Opcodes":{"add":[1]},"Types":{},"Arguments":{}})", Mismatch,
              "such as Opcodes.Ret, found none of them");
  // LLVM's own parser would recurse to this depth and overflow the stack.
  expectError(std::string(10'000'000, '['), Malformed,
              "nested more than 16 deep");
  expectError("{\"a\":\"" + std::string(100, '[') + "\"}", Mismatch,
              "found no Opcodes");
}

TEST(EmbeddingVocabulary, SaysWhyAFileCannotBeRead) {
  const std::string Folder = testing::TempDir();
  Expected<EmbeddingVocabulary> Found =
      EmbeddingVocabulary::load(Folder + "/no-such-file");
  EXPECT_EQ(Found.code(), ErrorCode::System);
  EXPECT_THAT(std::string(Found.message()),
              HasSubstr("no-such-file': No such file or directory"));
  EXPECT_EQ(EmbeddingVocabulary::load(Folder).code(),
            ErrorCode::InvalidArgument);
  EXPECT_EQ(EmbeddingVocabulary::load("").code(), ErrorCode::System);

  const std::string Path =
      Folder + "/mlbridge-ir2vec-" + std::to_string(::getpid());
  // The FIFO has no writer, so a read would block.
  ASSERT_EQ(::mkfifo(Path.c_str(), 0600), 0);
  EXPECT_EQ(EmbeddingVocabulary::load(Path).code(), ErrorCode::InvalidArgument);
  ASSERT_EQ(::unlink(Path.c_str()), 0);

  // A sparse file.
  const int File = ::open(Path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  ASSERT_GE(File, 0);
  ASSERT_EQ(::ftruncate(File, EmbeddingVocabulary::MaxFileSize + 1), 0);
  EXPECT_EQ(EmbeddingVocabulary::load(Path).code(), ErrorCode::Malformed);
  ASSERT_EQ(::ftruncate(File, 0), 0);
  ASSERT_EQ(::write(File, Small, sizeof(Small) - 1),
            ssize_t(sizeof(Small) - 1));
  ::close(File);
  Found = EmbeddingVocabulary::load(Path);
  ASSERT_TRUE(Found) << Found.message();
  EXPECT_EQ(Found->hash(), SmallHash);
  EXPECT_EQ(Found->name(), std::filesystem::path(Path).filename());
  ASSERT_EQ(::unlink(Path.c_str()), 0);
}

TEST(EmbeddingVocabulary, KnowsTheModelsThatAreTrainedWithIt) {
  Expected<EmbeddingVocabulary> V = parse(Small);
  ASSERT_TRUE(V);
  EXPECT_FALSE(V->check(V->metadata(), "policy.onnx"));
  EXPECT_FALSE(V->check(R"({"hash":")" + V->hash() + R"(","name":"renamed"})",
                        "policy.onnx"));
  Error Other = V->check(R"({"name":"big.json","hash":"sha256:00"})", "a.onnx");
  EXPECT_EQ(Other.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(Other.message(),
            "a.onnx: expected embeddings by the vocabulary 'big.json' "
            "(sha256:00), found 'small.json' (" +
                V->hash() + ")");
  for (const std::string &Text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(R"({"name":1,"hash":"sha256:00"})"),
        std::string(1'000'000, '[')})
    EXPECT_EQ(V->check(Text, "a.onnx").code(), ErrorCode::Malformed);
}

} // namespace
