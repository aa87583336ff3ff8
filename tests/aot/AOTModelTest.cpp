//===- AOTModelTest.cpp - Compiled models ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the schemes `aot:` and `builtin:`. Four models are linked into this
/// program. tests/python/test_aot.py compares their outputs with ONNX
/// Runtime's.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/AOTSchemes.h"

#include "ggnn.h"
#include "lstm.h"
#include "mlp.h"
#include "several.h"
#include "support/AllocationCounter.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace MLBridge;
using namespace MLBridge::test;
using testing::AllOf;
using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLBRIDGE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MLBRIDGE_SANITIZED 1
#endif
#endif
#ifndef MLBRIDGE_SANITIZED
#define MLBRIDGE_SANITIZED 0
#endif

namespace {

std::vector<float> randomFloats(std::size_t Count, unsigned Seed) {
  std::mt19937 Engine(Seed);
  std::normal_distribution<float> Normal;
  std::vector<float> Values(Count);
  for (float &Value : Values)
    Value = Normal(Engine);
  return Values;
}

/// Returns a factory with the four models of this program.
RunnerFactory builtins() {
  RunnerFactory Factory;
  addBuiltinModels(Factory,
                   {&mlbridge_aot_model_mlp, &mlbridge_aot_model_lstm,
                    &mlbridge_aot_model_ggnn, &mlbridge_aot_model_several});
  return Factory;
}

/// A small graph: node states and an adjacency matrix.
struct Nodes {
  explicit Nodes(std::int64_t N)
      : N(N), States(randomFloats(std::size_t(N * 16), 3)),
        Adjacency(std::size_t(N * N)) {
    for (std::int64_t I = 0; I < N; ++I)
      Adjacency[std::size_t(I * N + (I + 1) % N)] = 1;
  }
  void populate(MLModelRunner &Runner) const {
    Runner.populateFeatures(
        std::pair{"nodes", TensorRef(States, {N, 16})},
        std::pair{"adjacency", TensorRef(Adjacency, {N, N})});
  }

  std::int64_t N;
  std::vector<float> States;
  std::vector<float> Adjacency;
};

std::vector<float> logitsOf(MLModelRunner &Runner) {
  Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
  EXPECT_TRUE(Reply) << Reply.message();
  if (!Reply)
    return {};
  auto Logits = Reply->get<Span<const float>>("logits");
  EXPECT_TRUE(Logits) << Logits.message();
  return {Logits->begin(), Logits->end()};
}

double largestDifference(const std::vector<float> &A,
                         const std::vector<float> &B) {
  EXPECT_EQ(A.size(), B.size());
  double Largest = 0;
  for (std::size_t I = 0; I < std::min(A.size(), B.size()); ++I)
    Largest = std::max(Largest, std::abs(double(A[I]) - double(B[I])));
  return Largest;
}

/// Sets the features of the model "several", whose outputs have no rounding
/// errors.
void populateSeveral(MLModelRunner &Runner, std::int64_t Count) {
  static const std::vector<float> Sizes = {1, 2, 4, 8, 16, 32};
  static const std::array<bool, 6> Flags = {true,  false, true,
                                            false, true,  true};
  Runner.populateFeatures(std::pair{"count", Count}, std::pair{"weight", 0.5},
                          std::pair{"sizes", Sizes}, std::pair{"flags", Flags});
}

Expected<std::unique_ptr<MLModelRunner>> open(const std::string &Spec) {
  return RunnerFactory().create(Spec);
}

/// Returns the error of loading the library at \p Path and making a request.
Error failureOf(const std::string &Path) {
  auto Runner = open("aot:" + Path);
  if (!Runner)
    return Runner.takeError();
  populateSeveral(**Runner, 1);
  return (*Runner)->tryEvaluate<Advice>().takeError();
}

} // namespace

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

TEST(AOTModel, SeveralModelsInOneBinary) {
  RunnerFactory Factory = builtins();
  auto MLP = Factory.create("builtin:mlp");
  auto GGNN = Factory.create("builtin:ggnn");
  ASSERT_TRUE(MLP && GGNN);
  const std::vector<float> X = randomFloats(300, 1);
  (*MLP)->populateFeatures(std::pair{"x", TensorRef(X, {1, 300})});
  EXPECT_EQ(logitsOf(**MLP).size(), 15u);
  const Nodes Graph(5);
  Graph.populate(**GGNN);
  EXPECT_EQ(logitsOf(**GGNN).size(), 4u);
}

TEST(AOTModel, EachTypeInAndOut) {
  auto Runner = open("aot:" MLBRIDGE_SEVERAL);
  ASSERT_TRUE(Runner) << Runner.message();
  for (std::int64_t Count : {-100, 3}) {
    populateSeveral(**Runner, Count);
    Expected<Advice> Reply = (*Runner)->tryEvaluate<Advice>();
    ASSERT_TRUE(Reply) << Reply.message();
    const double Score = 53 * 0.5 + double(Count);
    EXPECT_EQ(*Reply->get<float>("score"), float(Score));
    EXPECT_EQ(*Reply->get<double>("score64"), Score);
    EXPECT_EQ(*Reply->get<bool>("decision"), Score > 0);
    EXPECT_EQ(*Reply->get<std::int64_t>("next"), Count + 1);
  }
}

TEST(AOTModel, AllVariantsAgree) {
  RunnerFactory Factory = builtins();
  const Nodes Graph(19);
  const std::vector<float> X = randomFloats(300, 1);
  std::vector<std::vector<float>> MLPs, GGNNs;
  for (std::uint32_t I = 0; I < mlbridge_aot_model_mlp.num_variants; ++I) {
    const MLBridgeAOTVariant &V = mlbridge_aot_model_mlp.variants[I];
    if (!V.supported())
      continue;
    const std::string Options = std::string("?cpu=") + V.cpu;
    auto MLP = Factory.create("builtin:mlp" + Options);
    auto GGNN = Factory.create("builtin:ggnn" + Options);
    ASSERT_TRUE(MLP && GGNN);
    (*MLP)->populateFeatures(std::pair{"x", TensorRef(X, {1, 300})});
    MLPs.push_back(logitsOf(**MLP));
    Graph.populate(**GGNN);
    GGNNs.push_back(logitsOf(**GGNN));
  }
  ASSERT_FALSE(MLPs.empty());
  for (std::size_t I = 1; I < MLPs.size(); ++I) {
    EXPECT_LE(largestDifference(MLPs[I], MLPs[0]), 1e-5);
    EXPECT_LE(largestDifference(GGNNs[I], GGNNs[0]), 1e-5);
  }
}

TEST(AOTModel, WhatTheFileSaidOfItself) {
  auto M = loadAOTModel(MLBRIDGE_SEVERAL);
  ASSERT_TRUE(M) << M.message();
  ASSERT_TRUE((*M)->metadata("mlbridge.source"));
  EXPECT_EQ(*(*M)->metadata("mlbridge.source"), "tests: several");
  EXPECT_EQ((*M)->metadata("mlbridge.nothing"), nullptr);
  EXPECT_EQ((*M)->inputs()[3].typeStr(), "bool[6]");
}

TEST(AOTModel, FreeExtentsThatAreOneAreHeldToIt) {
  auto Runner = builtins().create("builtin:ggnn");
  ASSERT_TRUE(Runner);
  const std::vector<float> States(48), Adjacency(4);
  (*Runner)->populateFeatures(
      std::pair{"nodes", TensorRef(States, {3, 16})},
      std::pair{"adjacency", TensorRef(Adjacency, {2, 2})});
  Expected<Advice> Reply = (*Runner)->tryEvaluate<Advice>();
  EXPECT_EQ(Reply.code(), ErrorCode::SchemaMismatch);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(AOTModel, NoRequestAllocatesOnceWarm) {
  RunnerFactory Factory = builtins();
  auto MLP = Factory.create("builtin:mlp");
  auto GGNN = Factory.create("builtin:ggnn");
  ASSERT_TRUE(MLP && GGNN);
  const std::vector<float> X = randomFloats(300, 1);
  EXPECT_EQ(allocationsOnceWarm([&] {
              (*MLP)->populateFeatures(std::pair{"x", TensorRef(X, {1, 300})});
              ASSERT_TRUE((*MLP)->tryEvaluate<Advice>());
            }),
            0u);
  // For smaller graphs than the largest so far, no more memory is needed.
  const Nodes Large(40), Small(7);
  EXPECT_EQ(allocationsOnceWarm([&] {
              for (const Nodes *Graph : {&Large, &Small}) {
                Graph->populate(**GGNN);
                ASSERT_TRUE((*GGNN)->tryEvaluate<Advice>());
              }
            }),
            0u);
}

TEST(AOTModel, NothingLeaks) {
  auto Runner = builtins().create("builtin:ggnn");
  ASSERT_TRUE(Runner);
  const Nodes Graph(3);
  auto Ask = [&](int Times) {
    for (int I = 0; I < Times; ++I) {
      Graph.populate(**Runner);
      ASSERT_TRUE((*Runner)->tryEvaluate<Advice>());
    }
  };
  auto Load = [](int Times) {
    for (int I = 0; I < Times; ++I)
      ASSERT_TRUE(loadAOTModel(MLBRIDGE_SEVERAL));
  };
  Ask(1000);
  Load(10);
  const std::size_t Memory = residentBytes(),
                    Descriptors = countOpenDescriptors();
  Ask(100'000);
  Load(1000);
  EXPECT_EQ(countOpenDescriptors(), Descriptors);
  // Sanitizers keep freed memory for a while.
  if (!MLBRIDGE_SANITIZED) {
    EXPECT_LE(residentBytes(), Memory + (2 << 20));
  }
}

TEST(AOTModel, AFailureToAllocateIsReportedAndGotOver) {
  if (MLBRIDGE_SANITIZED)
    GTEST_SKIP() << "sanitizers end the process where memory runs out";
  // Use another process, because this process could not raise the lowered limit
  // again.
  Child Poor([] {
    auto M = wrapAOTModel(mlbridge_aot_model_ggnn, "builtin:ggnn");
    auto Cursor = (*M)->open();
    if (!Cursor)
      return 1;
    rlimit Limit = {512U << 20, 512U << 20};
    if (::setrlimit(RLIMIT_AS, &Limit) != 0)
      return 2;
    // Of these features, the runner reads only the extents before it allocates
    // memory.
    auto Run = [&](std::int64_t N, const void *Data) {
      TensorView States, Adjacency;
      States.Type = Adjacency.Type = ElementType::Float;
      States.Dims = {N, 16};
      Adjacency.Dims = {N, N};
      States.Data = Adjacency.Data = Data;
      return (*Cursor)->run({{States, Adjacency}}).takeError();
    };
    std::vector<float> Zeros(4096);
    if (Run(10, Zeros.data()))
      return 3;
    for (std::int64_t N : {std::int64_t(1) << 20, std::int64_t(1) << 30})
      if (Error E = Run(N, nullptr);
          E.code() != ErrorCode::System ||
          E.message().find("out of memory") == std::string::npos)
        return 4;
    if (Error E = Run(std::int64_t(1) << 40, nullptr);
        E.code() != ErrorCode::SchemaMismatch)
      return 5;
    if (Error E = Run(0, nullptr);
        E.code() != ErrorCode::SchemaMismatch ||
        E.message().find("found 'nodes' float[0,16], 'adjacency' float[0,0]") ==
            std::string::npos)
      return 6;
    return Run(10, Zeros.data()) ? 7 : 0;
  });
  EXPECT_EQ(Poor.wait(), 0);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

TEST(AOTModel, ManyThreadsShareOneModel) {
  RunnerFactory Factory = builtins();
  auto Ask = [&](std::int64_t N) {
    auto Runner = Factory.create("builtin:ggnn");
    std::vector<float> Logits;
    const Nodes Graph(N);
    for (int I = 0; I < 20; ++I) {
      Graph.populate(**Runner);
      Logits = logitsOf(**Runner);
    }
    return Logits;
  };
  std::vector<std::vector<float>> Alone, Together(8);
  for (std::int64_t I = 0; I < 8; ++I)
    Alone.push_back(Ask(I + 1));
  std::vector<std::thread> Threads;
  for (std::size_t I = 0; I < 8; ++I)
    Threads.emplace_back(
        [&, I] { Together[I] = Ask(static_cast<std::int64_t>(I) + 1); });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Together, Alone);
}

TEST(AOTModel, ManyThreadsOpenOneLibrary) {
  RunnerFactory Factory;
  std::vector<std::thread> Threads;
  for (int I = 0; I < 8; ++I)
    Threads.emplace_back([&, I] {
      auto Runner = Factory.create("aot:" MLBRIDGE_SEVERAL);
      ASSERT_TRUE(Runner);
      populateSeveral(**Runner, I);
      Expected<Advice> Reply = (*Runner)->tryEvaluate<Advice>();
      ASSERT_TRUE(Reply) << Reply.message();
      EXPECT_EQ(*Reply->get<std::int64_t>("next"), I + 1);
    });
  for (std::thread &Thread : Threads)
    Thread.join();
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)
TEST(AOTModel, OpeningChangesNothingOfTheArithmetic) {
  const unsigned Before = _mm_getcsr();
  auto M = loadAOTModel(MLBRIDGE_MLP);
  ASSERT_TRUE(M) << M.message();
  EXPECT_EQ(_mm_getcsr(), Before);
  volatile float Denormal = 1e-40F;
  EXPECT_NE(Denormal * 0.5F, 0.0F);
}
#endif

TEST(AOTModel, ANewFileOfAnOldNameIsANewModel) {
  TemporaryDirectory Directory;
  const std::string Path = Directory.path("policy.so");
  auto Put = [&](const char *Library) {
    std::filesystem::copy_file(Library, Path + ".new");
    std::filesystem::rename(Path + ".new", Path);
  };
  RunnerFactory Factory;
  Put(MLBRIDGE_SEVERAL);
  auto Old = Factory.create("aot:" + Path);
  ASSERT_TRUE(Old);
  populateSeveral(**Old, 1);
  ASSERT_TRUE((*Old)->tryEvaluate<Advice>());

  Put(MLBRIDGE_MLP);
  auto New = Factory.create("aot:" + Path);
  ASSERT_TRUE(New);
  const std::vector<float> X = randomFloats(300, 1);
  (*New)->populateFeatures(std::pair{"x", TensorRef(X, {1, 300})});
  EXPECT_EQ(logitsOf(**New).size(), 15u);
  // A runner keeps the model with which it was created.
  populateSeveral(**Old, 1);
  EXPECT_TRUE((*Old)->tryEvaluate<Advice>());
}

TEST(AOTModel, ALibraryIsNotTakenForOneThatHadItsDescriptor) {
  // The file is opened under two paths and closed once, so the dynamic linker
  // keeps the library under both. One path contains the number of a descriptor,
  // which the next file reuses.
  auto First = loadAOTModel(MLBRIDGE_SEVERAL);
  auto Second = loadAOTModel(MLBRIDGE_SEVERAL);
  ASSERT_TRUE(First && Second);
  First->reset();
  auto Other = loadAOTModel(MLBRIDGE_MLP);
  ASSERT_TRUE(Other) << Other.message();
  ASSERT_EQ((*Other)->inputs().size(), 1U);
  EXPECT_EQ((*Other)->inputs()[0].Name, "x");
  EXPECT_EQ((*Second)->inputs().size(), 4U);
}

TEST(AOTModel, AFileThatIsNotThere) {
  Error E = failureOf("/nowhere/libpolicy.so");
  EXPECT_EQ(E.code(), ErrorCode::System);
  EXPECT_THAT(E.message(), HasSubstr("/nowhere/libpolicy.so"));
}

TEST(AOTModel, AFileThatIsNoLibrary) {
  TemporaryDirectory Directory;
  const std::string Path = Directory.path("policy.so");
  for (const char *Text : {"", "int main",
                           "\x7f"
                           "ELF"}) {
    std::ofstream(Path, std::ios::trunc) << Text;
    Error E = failureOf(Path);
    EXPECT_EQ(E.code(), ErrorCode::Malformed);
    EXPECT_THAT(E.message(), HasSubstr("expected a shared library"));
  }
}

TEST(AOTModel, ALibraryThatWasCutShort) {
  TemporaryDirectory Directory;
  const std::string Path = Directory.path("policy.so");
  const auto Size = std::filesystem::file_size(MLBRIDGE_SEVERAL);
  for (unsigned Part = 1; Part < 32; ++Part) {
    std::filesystem::remove(Path);
    std::filesystem::copy_file(MLBRIDGE_SEVERAL, Path);
    std::filesystem::resize_file(Path, Size * Part / 32);
    Error E = failureOf(Path);
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << Part;
    EXPECT_THAT(E.message(), HasSubstr("it was cut short"));
  }
  std::filesystem::resize_file(Path, Size - 1);
  EXPECT_EQ(failureOf(Path).code(), ErrorCode::Malformed);
}

TEST(AOTModel, ALibraryThatIsNoneOfOurs) {
  Error E = failureOf(MLBRIDGE_FOREIGN);
  EXPECT_EQ(E.code(), ErrorCode::Malformed);
  EXPECT_THAT(E.message(), HasSubstr("found no symbol mlbridge_aot_model"));
}

TEST(AOTModel, ALibraryOfAnotherABI) {
  Error E = failureOf(MLBRIDGE_OTHER_ABI);
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(E.message(), HasSubstr("expected ABI version 1, found 2"));
}

namespace {

/// A modifiable copy of a model's descriptor.
struct Descriptor {
  explicit Descriptor(const MLBridgeAOTModel &Of)
      : Model(Of), Inputs(Of.inputs, Of.inputs + Of.num_inputs),
        Outputs(Of.outputs, Of.outputs + Of.num_outputs),
        Properties(Of.properties, Of.properties + Of.num_properties),
        Variants(Of.variants, Of.variants + Of.num_variants) {
    Model.inputs = Inputs.data();
    Model.outputs = Outputs.data();
    Model.properties = Properties.data();
    Model.variants = Variants.data();
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  Error failure(std::string_view CPU = {}) const {
    return wrapAOTModel(Model, "builtin:x", CPU).takeError();
  }

  MLBridgeAOTModel Model;
  std::vector<MLBridgeAOTTensor> Inputs, Outputs;
  std::vector<MLBridgeAOTProperty> Properties;
  std::vector<MLBridgeAOTVariant> Variants;
};

} // namespace

TEST(AOTModel, ADescriptorIsNotBelieved) {
  using Change = void (*)(Descriptor &);
  const std::pair<const char *, Change> Wrong[] = {
      {"expected the model's name, found a null pointer",
       [](Descriptor &D) { D.Model.name = nullptr; }},
      {"expected inputs, found a null pointer",
       [](Descriptor &D) { D.Model.inputs = nullptr; }},
      {"expected 0 to 65536 inputs, found 4294967295",
       [](Descriptor &D) { D.Model.num_inputs = ~0U; }},
      {"expected outputs, found a null pointer",
       [](Descriptor &D) { D.Model.outputs = nullptr; }},
      {"expected 1 to 65536 outputs, found 0",
       [](Descriptor &D) { D.Model.num_outputs = 0; }},
      {"expected properties, found a null pointer",
       [](Descriptor &D) { D.Model.properties = nullptr; }},
      {"expected 0 to 65536 properties, found 65537",
       [](Descriptor &D) { D.Model.num_properties = 65'537; }},
      {"expected variants, found a null pointer",
       [](Descriptor &D) { D.Model.variants = nullptr; }},
      {"expected 1 to 64 variants, found 0",
       [](Descriptor &D) { D.Model.num_variants = 0; }},
      {"expected 1 to 64 variants, found 4294967295",
       [](Descriptor &D) { D.Model.num_variants = ~0U; }},
      {"expected 0 to 65536 free extents, found 4294967295",
       [](Descriptor &D) { D.Model.num_free_extents = ~0U; }},
      {"expected the function measure, found a null pointer",
       [](Descriptor &D) { D.Model.measure = nullptr; }},
      {"expected the name of input 0, found a null pointer",
       [](Descriptor &D) { D.Inputs[0].name = nullptr; }},
      {"expected the name of output 0, found a null pointer",
       [](Descriptor &D) { D.Outputs[0].name = nullptr; }},
      {"expected the extents of 'nodes', found a null pointer",
       [](Descriptor &D) { D.Inputs[0].extents = nullptr; }},
      {"'nodes': expected a rank of at most 8, found 4294967295",
       [](Descriptor &D) { D.Inputs[0].rank = ~0U; }},
      {"'nodes': this build does not know the element type 11",
       [](Descriptor &D) { D.Inputs[0].type = 11; }},
      {"'nodes': this build does not know the extent -2",
       [](Descriptor &D) { D.Model.num_free_extents = 0; }},
      {"expected the key of property 0, found a null pointer",
       [](Descriptor &D) { D.Properties[0].key = nullptr; }},
      {"expected the value of property 0, found a null pointer",
       [](Descriptor &D) { D.Properties[0].value = nullptr; }},
      {"expected the CPU of variant 0, found a null pointer",
       [](Descriptor &D) { D.Variants[0].cpu = nullptr; }},
      {"expected the function supported of variant 0, found a null pointer",
       [](Descriptor &D) { D.Variants[0].supported = nullptr; }},
      {"expected the function run of variant 0, found a null pointer",
       [](Descriptor &D) { D.Variants[0].run = nullptr; }},
      {"expected the function run of variant 1, found a null pointer",
       [](Descriptor &D) {
         D.Variants.push_back(D.Variants[0]);
         D.Variants.push_back(D.Variants[0]);
         D.Variants[1].run = nullptr;
         D.Model.variants = D.Variants.data();
         D.Model.num_variants = 2;
       }},
  };
  ASSERT_FALSE(Descriptor(mlbridge_aot_model_ggnn).failure());
  for (const auto &[Why, Apply] : Wrong)
    for (const char *CPU : {"", "baseline"}) {
      Descriptor Changed(mlbridge_aot_model_ggnn);
      Apply(Changed);
      Error E = Changed.failure(CPU);
      EXPECT_TRUE(E) << Why;
      EXPECT_THAT(E.message(),
                  AllOf(testing::StartsWith("builtin:x: "), HasSubstr(Why)));
      EXPECT_TRUE(E.code() == ErrorCode::Malformed ||
                  E.code() == ErrorCode::Unsupported)
          << E.str();
    }
}

TEST(AOTModel, AModelWithoutCodeForThisCPU) {
  Descriptor Changed(mlbridge_aot_model_mlp);
  for (MLBridgeAOTVariant &Variant : Changed.Variants)
    Variant.supported = [] { return 0; };
  for (const char *CPU : {"", "baseline"}) {
    Error E = Changed.failure(CPU);
    EXPECT_EQ(E.code(), ErrorCode::Unsupported);
    EXPECT_THAT(E.message(), HasSubstr("that this CPU can run"));
  }
}

TEST(AOTModel, AMeasureThatCannotBe) {
  static std::int64_t Extent;
  Descriptor Changed(mlbridge_aot_model_ggnn);
  Changed.Model.measure = [](const std::int64_t *, std::int64_t *Extents,
                             std::uint64_t *Bytes) {
    std::fill_n(Extents, 4, Extent); // Both outputs have these extents.
    *Bytes = 64;
    return int(MLBRIDGE_AOT_OK);
  };
  RunnerFactory Factory;
  addBuiltinModels(Factory, {&Changed.Model});
  for (std::int64_t Wrong :
       {std::int64_t(-1), INT64_MIN, INT64_MAX, std::int64_t(1) << 25}) {
    Extent = Wrong;
    auto Runner = Factory.create("builtin:ggnn");
    ASSERT_TRUE(Runner) << Runner.message();
    Nodes(4).populate(**Runner);
    Error E = (*Runner)->tryEvaluate<Advice>().takeError();
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << Wrong;
    EXPECT_THAT(E.message(),
                HasSubstr("builtin:ggnn: output 'logits': expected extents of "
                          "a tensor of less than 2^47 bytes, found [" +
                          std::to_string(Wrong)));
  }
}

TEST(AOTModel, ABuiltinModelWithoutAName) {
  Descriptor Nameless(mlbridge_aot_model_mlp);
  Nameless.Model.name = nullptr;
  RunnerFactory Factory;
  addBuiltinModels(Factory,
                   {nullptr, &Nameless.Model, &mlbridge_aot_model_ggnn});
  EXPECT_FALSE(Factory.check("builtin:ggnn"));
  Error E = Factory.check("builtin:mlp");
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(E.message(), testing::EndsWith("this program contains ggnn"));
}

TEST(AOTModel, WhatIsNoRegularFileIsNotOpened) {
  TemporaryDirectory Directory;
  const std::string Fifo = Directory.path("fifo");
  ASSERT_EQ(::mkfifo(Fifo.c_str(), 0600), 0);
  EXPECT_EQ(failureOf(Fifo).code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(loadAOTModel(Fifo).takeError().message(),
              HasSubstr("expected a regular file, found a FIFO"));
  EXPECT_THAT(loadAOTModel("/dev/zero").takeError().message(),
              HasSubstr("expected a regular file, found a device"));
  EXPECT_THAT(failureOf("/usr").message(),
              HasSubstr("expected a regular file, found a folder"));
}

TEST(AOTModel, ACPUThatThisIsNot) {
  auto Runner = open("aot:" MLBRIDGE_SEVERAL "?cpu=x86-64-v9");
  ASSERT_TRUE(Runner);
  populateSeveral(**Runner, 1);
  Expected<Advice> Reply = (*Runner)->tryEvaluate<Advice>();
  EXPECT_EQ(Reply.code(), ErrorCode::Unsupported);
  EXPECT_THAT(std::string(Reply.message()), HasSubstr("baseline"));
}

TEST(AOTModel, AnIndexBeyondTheTable) {
  auto Runner = builtins().create("builtin:lstm");
  ASSERT_TRUE(Runner);
  std::vector<std::int64_t> Tokens(12, 49);
  const std::vector<float> State(8);
  auto Ask = [&] {
    (*Runner)->populateFeatures(std::pair{"tokens", Tokens},
                                std::pair{"state", State});
    return (*Runner)->tryEvaluate<Advice>().takeError();
  };
  EXPECT_FALSE(Ask());
  for (std::int64_t Token : {std::int64_t(50), std::int64_t(-51),
                             std::int64_t(1) << 32, INT64_MIN}) {
    Tokens[7] = Token;
    Error E = Ask();
    EXPECT_EQ(E.code(), ErrorCode::Model) << Token;
    EXPECT_THAT(E.message(), HasSubstr("beyond the table's end"));
    EXPECT_THAT(E.message(),
                HasSubstr("'tokens' has " +
                          std::to_string(std::min(Token, Tokens[0])) + " to " +
                          std::to_string(std::max(Token, Tokens[0]))));
  }
  Tokens[7] = 0;
  EXPECT_FALSE(Ask());
}

TEST(AOTModel, ABuiltinModelThatIsNotThere) {
  Error E = builtins().check("builtin:imitation");
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(E.message(), HasSubstr("mlp, lstm, ggnn, several"));
  EXPECT_FALSE(builtins().check("builtin:mlp?cpu=baseline"));
}
