//===- ConformanceTest.cpp - What every runner must do --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the behaviour that every transport must have with every SerDes. To
/// test a new runner or SerDes, add a line for each transport to Subjects.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "support/AllocationCounter.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"
#include "support/Sanitizers.h"

#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"
#endif
#include "support/Formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

using namespace MLBridge;
using namespace MLBridge::test;

template <typename T> static std::vector<T> interestingValues() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> Values{T(0), T(1), Limits::max(), Limits::lowest()};
  if constexpr (std::is_floating_point_v<T>)
    for (T V : {T(-0.0), T(0.1), T(-1.5), Limits::min(), Limits::denorm_min(),
                Limits::epsilon(), Limits::infinity(), -Limits::infinity(),
                Limits::quiet_NaN(), T(16777217), T(3.4028235e38)})
      Values.push_back(V);
  else
    for (T V : {T(Limits::max() - 1), T(Limits::max() / 3), T(-1)})
      Values.push_back(V);
  return Values;
}

/// Returns values with random bits, from a fixed seed.
template <typename T> static std::vector<T> randomValues(std::size_t Count) {
  std::vector<T> Values(Count);
  std::mt19937_64 Random(Count + sizeof(T));
  for (T &V : Values) {
    std::uint64_t Bits = Random();
    std::memcpy(&V, &Bits, sizeof(T));
  }
  return Values;
}

template <typename Fn> static void forEachNumber(Fn F) {
  F(std::int8_t());
  F(std::int16_t());
  F(std::int32_t());
  F(std::int64_t());
  F(std::uint8_t());
  F(std::uint16_t());
  F(std::uint32_t());
  F(std::uint64_t());
  F(float());
  F(double());
}

namespace {

/// A model spec, in which %s stands for the name that the echo model serves.
struct Subject {
  const char *Name;
  const char *Spec;

  /// gRPC allocates memory for each message.
  bool isByGRPC() const { return std::string_view(Spec).starts_with("grpc"); }
  /// True if numbers are sent as decimal text.
  bool isText() const {
    std::string_view Text(Spec);
    return Text.find("=json") != Text.npos || Text.find("=yaml") != Text.npos;
  }
  /// True if the SerDes uses a library that allocates memory for each message.
  bool Allocates = false;
};

void PrintTo(const Subject &S, std::ostream *OS) { *OS << S.Spec; }

constexpr Subject Subjects[] = {
    {"PipeBitstream", "pipe:%s?serdes=bitstream"},
    {"PipeJSON", "pipe:%s?serdes=json"},
    {"SharedMemoryBitstream", "shm:%s?serdes=bitstream"},
    {"SharedMemoryJSON", "shm:%s?serdes=json"},
#ifdef MLBRIDGE_HAS_GRPC
    {"GRPCStreamBitstream", "grpc:%s?serdes=bitstream"},
    {"GRPCStreamJSON", "grpc:%s?serdes=json"},
    {"GRPCUnaryBitstream", "grpc:%s?serdes=bitstream&call=unary"},
    {"GRPCUnaryJSON", "grpc:%s?serdes=json&call=unary"},
#ifdef MLBRIDGE_WITH_PROTOBUF
    {"GRPCStreamProtobuf", "grpc:%s?serdes=protobuf"},
    {"GRPCUnaryProtobuf", "grpc:%s?serdes=protobuf&call=unary"},
#endif
    {"GRPCUnixStreamBitstream", "grpc+unix:%s?serdes=bitstream"},
    {"GRPCUnixUnaryBitstream", "grpc+unix:%s?serdes=bitstream&call=unary"},
#endif
#ifdef MLBRIDGE_WITH_PROTOBUF
    {"PipeProtobuf", "pipe:%s?serdes=protobuf"},
    {"SharedMemoryProtobuf", "shm:%s?serdes=protobuf"},
#endif
#ifdef MLBRIDGE_WITH_YAML
    {"PipeYAML", "pipe:%s?serdes=yaml", /*Allocates=*/true},
    {"SharedMemoryYAML", "shm:%s?serdes=yaml", /*Allocates=*/true},
#endif
#ifdef MLBRIDGE_WITH_FLATBUFFERS
    {"PipeFlatBuffers", "pipe:%s?serdes=flatbuffers"},
    {"SharedMemoryFlatBuffers", "shm:%s?serdes=flatbuffers"},
#endif
};

class Conformance : public testing::TestWithParam<Subject> {
protected:
  std::unique_ptr<MLModelRunner> makeRunner(const char *Options = "") {
    std::string Spec = GetParam().Spec + std::string(Options);
    Spec.replace(Spec.find("%s"), 2, Name);
    Expected<std::unique_ptr<MLModelRunner>> Made = Factory.create(Spec);
    if (!Made) {
      ADD_FAILURE() << Made.takeError().str();
      return nullptr;
    }
    (*Made)->setTimeout(std::chrono::seconds(60));
    return std::move(*Made);
  }

  void SetUp() override {
    if (GetParam().isByGRPC())
      MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
#ifdef MLBRIDGE_HAS_GRPC
    addGRPC(Factory);
#endif
    Factory.formats() = allFormats();
    ASSERT_NO_FATAL_FAILURE(startModel());
    Runner = makeRunner();
    ASSERT_TRUE(Runner);
  }

  void startModel() {
    if (!GetParam().isByGRPC()) {
      Model.emplace(Name, serverOptions());
      return;
    }
#ifdef MLBRIDGE_HAS_GRPC
    const bool IsLocal = std::string_view(GetParam().Spec).starts_with("grpc+");
    Expected<std::unique_ptr<Listener>> Opened = openGRPCListener(
        IsLocal ? "grpc+unix:" + Name : "grpc://:0", serverOptions());
    ASSERT_TRUE(Opened) << Opened.takeError().str();
    Name = (*Opened)->name();
    Model.emplace(serverOf(std::move(*Opened)));
#endif
  }

  /// Sends \p Features and expects the same values back.
  void expectEcho(const FeatureSet &Features) {
    ASSERT_FALSE(Features.error()) << Features.error().str();
    Expected<Advice> Reply = Runner->ask(Features, AdviceSpec::any());
    ASSERT_TRUE(Reply) << Reply.takeError().str();
    ASSERT_EQ(Reply->size(), Features.size());
    for (const TensorView &Sent : Features.tensors()) {
      const TensorView *Back = Reply->find(Sent.Name);
      ASSERT_TRUE(Back) << "no '" << Sent.Name << "' came back";
      expectSame(Sent, *Back);
    }
  }

  template <typename T> void expectEcho(std::string_view Name, const T &Value) {
    FeatureSet Features;
    Features.set(Name, Value);
    expectEcho(Features);
  }

  static void expectSame(const TensorView &Sent, const TensorView &Back) {
    SCOPED_TRACE(std::string(Sent.Name.substr(0, 40)) + ": " + Sent.typeStr());
    ASSERT_EQ(Sent.typeStr(), Back.typeStr());
    ASSERT_EQ(Sent.NumBytes, Back.NumBytes);
    ASSERT_TRUE(std::ranges::equal(Sent.Lengths, Back.Lengths));
    if (Sent.NumBytes == 0 ||
        std::memcmp(Sent.Data, Back.Data, Sent.NumBytes) == 0)
      return;
    // Only a NaN may come back with other bits, because text has only one NaN.
    if (Sent.Type == ElementType::Float)
      expectSameButNaN<float>(Sent, Back);
    else if (Sent.Type == ElementType::Double)
      expectSameButNaN<double>(Sent, Back);
    else
      FAIL() << "the bytes differ";
  }

  template <typename T>
  static void expectSameButNaN(const TensorView &Sent, const TensorView &Back) {
    auto A = *Sent.as<T>(), B = *Back.as<T>();
    for (std::size_t I = 0; I < A.size(); ++I)
      ASSERT_TRUE(std::memcmp(&A[I], &B[I], sizeof(T)) == 0 ||
                  (std::isnan(A[I]) && std::isnan(B[I])))
          << "element " << I << ": " << A[I] << " came back as " << B[I];
  }

  static ModelServerOptions serverOptions() {
    ModelServerOptions Options;
    Options.Formats = allFormats();
    return Options;
  }

  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  RunnerFactory Factory;
  std::optional<EchoModel> Model;
  std::unique_ptr<MLModelRunner> Runner;
};

TEST_P(Conformance, ScalarsOfEveryType) {
  forEachNumber([&](auto Zero) {
    for (auto Value : interestingValues<decltype(Zero)>())
      expectEcho("value", Value);
  });
  expectEcho("yes", true);
  expectEcho("no", false);
}

TEST_P(Conformance, VectorsOfEveryTypeAndLength) {
  forEachNumber([&](auto Zero) {
    using T = decltype(Zero);
    expectEcho("interesting", interestingValues<T>());
    for (std::size_t Length : {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 4099})
      expectEcho("values", randomValues<T>(Length));
  });
  expectEcho("bools", std::vector<bool>{true, false, true});
  expectEcho("no bools", std::vector<bool>{});
}

TEST_P(Conformance, OneMebibyteOfEveryType) {
  if ((MLBRIDGE_UNDER_ASAN || MLBRIDGE_UNDER_TSAN) && GetParam().isText() &&
      !std::getenv("MLBRIDGE_TEST_FULL"))
    GTEST_SKIP() << "takes long under sanitizers: MLBRIDGE_TEST_FULL=1";
  forEachNumber([&](auto Zero) {
    using T = decltype(Zero);
    expectEcho("values", randomValues<T>((1 << 20) / sizeof(T)));
  });
  expectEcho("text", std::string(1 << 20, 'x'));
  std::vector<bool> Bools(1 << 20);
  for (std::size_t I = 0; I < Bools.size(); I += 3)
    Bools[I] = true;
  expectEcho("bools", Bools);
}

#ifdef NDEBUG
TEST_P(Conformance, SixtyFourMebibytes) {
  if (GetParam().isText() && !std::getenv("MLBRIDGE_TEST_FULL"))
    GTEST_SKIP() << "takes long: MLBRIDGE_TEST_FULL=1";
  std::vector<float> Values((64 << 20) / sizeof(float));
  std::iota(Values.begin(), Values.end(), 0.5f);
  expectEcho("values", Span<const float>(Values));
}
#endif

TEST_P(Conformance, ShapesOfEveryRank) {
  std::vector<Shape> Shapes{{},
                            {0},
                            {1},
                            {5},
                            {3, 4},
                            {0, 3},
                            {3, 0},
                            {2, 3, 4},
                            {2, 0, 3},
                            {1, 1, 1},
                            {1, 2, 1, 3, 1, 2, 1, 2}};
  for (const Shape &Dims : Shapes) {
    forEachNumber([&](auto Zero) {
      using T = decltype(Zero);
      auto Values = randomValues<T>(*Dims.numElements());
      expectEcho("tensor", TensorRef<T>(Values, Dims));
    });
    std::unique_ptr<bool[]> Bools(new bool[*Dims.numElements() + 1]());
    expectEcho("tensor",
               TensorRef<bool>({Bools.get(), *Dims.numElements()}, Dims));
  }
}

TEST_P(Conformance, Strings) {
  using namespace std::string_literals;
  const std::vector<std::string> Texts{
      "",
      "a",
      "_ZN4llvm5Value3fooEv",
      "\"quoted\" \\ / \b\f\n\r\t \x01\x1f\x7f"s,
      "nul\0inside"s,
      "\u00e9\u4e2d\u6587 \U0001f40d",
      "NaN",
      "[1, 2]",
      std::string(70'000, 'y')};
  for (const std::string &Text : Texts)
    expectEcho("text", Text);
  expectEcho("texts", Texts);
  expectEcho("no texts", std::vector<std::string>{});
  expectEcho("empty texts", std::vector<std::string>(3));
}

TEST_P(Conformance, ManyFeaturesOfMixedTypes) {
  FeatureSet Features;
  for (int I = 0; I < 1000; ++I) {
    std::string Feature = "feature " + std::to_string(I);
    switch (I % 6) {
    case 0:
      Features.set(Feature, std::int64_t(I) << 40);
      break;
    case 1:
      Features.set(Feature, float(I) / 3);
      break;
    case 2:
      Features.set(Feature, I % 4 == 0);
      break;
    case 3:
      Features.set(Feature, std::to_string(I));
      break;
    case 4:
      Features.set(Feature, randomValues<std::uint16_t>(I % 7));
      break;
    default:
      Features.set(Feature, std::vector<std::string>(I % 3, "é"));
    }
  }
  expectEcho(Features);
}

TEST_P(Conformance, NoFeatures) { expectEcho(FeatureSet()); }

TEST_P(Conformance, NamesAreAnyText) {
  FeatureSet Features;
  Features.set("with \"quotes\", \\ and \n", 1);
  Features.set("\u4e2d\u6587", 2);
  Features.set(std::string(5000, 'n'), 3);
  expectEcho(Features);
}

TEST_P(Conformance, SchemaMayChangeWithEveryRequest) {
  for (int Round = 0; Round < 3; ++Round)
    for (std::size_t Length : {500, 0, 5000, 1, 50000})
      expectEcho("x", randomValues<float>(Length));
}

TEST_P(Conformance, EvaluateConvertsToWhatThePassWants) {
  Runner->populateFeatures(std::pair{"x", 7});
  EXPECT_EQ(Runner->evaluate<int>(), 7);
  Runner->populateFeatures(std::pair{"x", std::int64_t(7)});
  EXPECT_EQ(Runner->evaluate<float>(), 7.0f);
  Runner->populateFeatures(std::pair{"x", 0.1});
  EXPECT_EQ(Runner->evaluate<float>(), 0.1f);
  Runner->populateFeatures(std::pair{"x", true});
  EXPECT_TRUE(Runner->evaluate<bool>());
  Runner->populateFeatures(std::pair{"x", "text"});
  EXPECT_EQ(Runner->evaluate<std::string>(), "text");
  std::vector<double> Values{1.5, 2.5, -0.0};
  Runner->populateFeatures(std::pair{"x", Values});
  EXPECT_EQ(Runner->evaluate<std::vector<double>>(), Values);
  Runner->populateFeatures(std::pair{"x", Values});
  auto View = Runner->evaluate<Span<const double>>();
  EXPECT_TRUE(std::ranges::equal(View, Values));
  std::vector<std::string> Texts{"a", "", "c"};
  Runner->populateFeatures(std::pair{"x", Texts});
  EXPECT_EQ(Runner->evaluate<std::vector<std::string>>(), Texts);

  Runner->populateFeatures(std::pair{"spill", 0.25f}, std::pair{"colour", 3});
  auto Both = Runner->evaluate<Advice>();
  EXPECT_EQ(*Both.get<float>("spill"), 0.25f);
  EXPECT_EQ(*Both.get<int>("colour"), 3);
  EXPECT_EQ(Both.get<int>("split").code(), ErrorCode::SchemaMismatch);

  Runner->populateFeatures(std::pair{"x", 300});
  EXPECT_EQ(Runner->tryEvaluate<std::int8_t>().code(),
            ErrorCode::SchemaMismatch);
  Runner->populateFeatures(std::pair{"x", 0.5f});
  EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::SchemaMismatch);
}

TEST_P(Conformance, FailureAndDeferralAreRepliesToo) {
  for (int Round = 0; Round < 2; ++Round) {
    Runner->populateFeatures(std::pair{EchoModel::Control, "fail"});
    Expected<int> Failed = Runner->tryEvaluate<int>();
    EXPECT_EQ(Failed.code(), ErrorCode::Model);
    EXPECT_NE(Failed.message().find("the weights are missing"),
              std::string_view::npos)
        << Failed.message();
    Runner->populateFeatures(std::pair{EchoModel::Control, "defer"});
    EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::Deferred);
    expectEcho("x", 1);
  }
  // The failure and the deferral must not end the session.
  EXPECT_EQ(Model->stop().statistics().Sessions, 1u);
}

TEST_P(Conformance, TheLimitIsOnMessagesAsTheyAreSent) {
  Runner = makeRunner("&max-message=4KiB");
  ASSERT_TRUE(Runner);
  for (int Round = 0; Round < 2; ++Round) {
    // This text has less than 1 KiB. It must be sent, even if the SerDes's
    // upper bound for it exceeds the limit.
    expectEcho("x", std::vector<std::uint8_t>(400, 7));
    std::vector<std::uint8_t> Long(8 << 10, 77);
    Runner->populateFeatures(std::pair{"x", Span<const std::uint8_t>(Long)});
    Expected<Advice> Reply = Runner->tryEvaluate<Advice>();
    EXPECT_EQ(Reply.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(Reply.message().find("max-message"), std::string_view::npos)
        << Reply.message();
  }
}

TEST_P(Conformance, EachRunnerHasASessionOfItsOwn) {
  std::vector<std::unique_ptr<MLModelRunner>> Runners;
  for (int I = 0; I < 8; ++I)
    Runners.push_back(makeRunner());
  for (int Round = 0; Round < 20; ++Round)
    for (int I = 0; I < 8; ++I) {
      Runners[I]->populateFeatures(std::pair{"x", 100 * I + Round});
      EXPECT_EQ(Runners[I]->evaluate<int>(), 100 * I + Round);
    }
}

TEST_P(Conformance, OnceWarmNoMessageAllocates) {
  if (GetParam().isByGRPC())
    GTEST_SKIP() << "gRPC itself allocates memory for each message";
  std::vector<float> Embedding = randomValues<float>(300);
  std::ranges::replace_if(
      Embedding, [](float V) { return std::isnan(V); }, 1.0f);
  std::vector<std::string> Opcodes{"add", "a rather long name of an opcode"};
  auto Ask = [&](int I) {
    Runner->populateFeatures(
        std::pair{"callee_size", I}, std::pair{"weight", 0.5},
        std::pair{"hot", I % 2 == 0},
        std::pair{"callee", std::string_view("_ZN4llvm5Value3fooEv")},
        std::pair{"embedding", Span<const float>(Embedding)},
        std::pair<const char *, const std::vector<std::string> &>("opcodes",
                                                                  Opcodes));
    Expected<Advice> Reply = Runner->tryEvaluate<Advice>();
    return Reply && Reply->find("embedding")->NumBytes == 1200 &&
           *Reply->get<int>("callee_size") == I;
  };
  for (int I = 0; I < 10; ++I)
    ASSERT_TRUE(Ask(1000 + I));
  constexpr int Messages =
      MLBRIDGE_UNDER_ASAN || MLBRIDGE_UNDER_TSAN ? 100 : 1000;
  AllocationCounter Counter;
  bool AllRight = true;
  for (int I = 0; I < Messages; ++I)
    AllRight &= Ask(1000 + I);
  std::size_t Allocations = Counter.count();
  EXPECT_TRUE(AllRight);
  if (!GetParam().Allocates) {
    EXPECT_EQ(Allocations, 0u);
    return;
  }
  // Each message must allocate equally often.
  AllocationCounter Again;
  for (int I = 0; I < Messages; ++I)
    AllRight &= Ask(1000 + I);
  EXPECT_EQ(Again.count(), Allocations);
  EXPECT_TRUE(AllRight);
}

INSTANTIATE_TEST_SUITE_P(Runners, Conformance, testing::ValuesIn(Subjects),
                         [](const auto &Info) { return Info.param.Name; });

} // namespace
