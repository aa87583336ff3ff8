//===- ONNXFaultTest.cpp - Faults of ONNX models --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests errors of the model, of the ONNX Runtime library, of the features and
/// of memory. Each error must be typed, and the next request must succeed.
///
//===----------------------------------------------------------------------===//

#include "support/Child.h"
#include "support/ONNXTest.h"
#include "support/Sanitizers.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {
class ONNXFaultTest : public ONNXTest {
protected:
  /// Returns the error of a request with the float x.
  static Error failure(MLModelRunner &Runner, float X = 1) {
    Runner.populateFeatures(std::pair{"x", X});
    return Runner.tryEvaluate<Advice>().takeError();
  }
  Error failure(const std::string &File) {
    ONNXModelRunner Runner(File, {}, Options);
    return failure(Runner);
  }
  std::string writeBytes(const std::string &Bytes) {
    std::ofstream(path("m.onnx"), std::ios::binary) << Bytes;
    return path("m.onnx");
  }
};
} // namespace

TEST_F(ONNXFaultTest, FilesThatAreNoModels) {
  Error Missing = failure(path("none.onnx"));
  EXPECT_EQ(Missing.code(), ErrorCode::System);
  EXPECT_EQ(Missing.message(), "model file '" + path("none.onnx") +
                                   "': No such file or directory");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(failure(path("pipe")).code(), ErrorCode::InvalidArgument)
      << "opening it must not block";
  ASSERT_EQ(::mkdir(path("folder").c_str(), 0700), 0);
  EXPECT_TRUE(failure(path("folder")));
  Error Empty = failure(writeBytes(""));
  EXPECT_THAT(Empty.message(), HasSubstr("onnx:" + path("m.onnx") + ": "));
  if (::geteuid() != 0) {
    ASSERT_EQ(::chmod(path("m.onnx").c_str(), 0), 0);
    EXPECT_TRUE(failure(path("m.onnx")));
  }
}

TEST_F(ONNXFaultTest, NamesInAModelAreEscapedAndShortened) {
  const std::string Name = "\x1b[31m" + std::string(100'000, 'a') + "\n";
  ONNXWriter Writer;
  Writer.input(Name, ElementType::Float, {})
      .constant("c", {}, std::vector{1.0F})
      .node("Add", {Name, "c"}, {"\x1b[2J" + Name})
      .output("\x1b[2J" + Name, ElementType::Float, {});
  const std::string File = write(Writer);
  auto Check = [](const std::string &Message) {
    EXPECT_NE(Message, "");
    EXPECT_LT(Message.size(), 5'000U);
    EXPECT_EQ(Message.find('\x1b'), std::string::npos) << Message;
    EXPECT_EQ(Message.find('\n'), std::string::npos) << Message;
  };
  Check(failure(File).message()); // The input is not set.
  ONNXModelRunner Runner(File, {}, Options);
  Runner.populateFeatures(std::pair{Name, 1});
  Check(Runner.tryEvaluate<Advice>().takeError().message());
  Runner.populateFeatures(std::pair{Name, 1.0F});
  Check(Runner.tryEvaluate<std::string>().takeError().message());
  DecisionOptions Other;
  Other.Output = Name;
  ONNXModelRunner Decided(File, Other, Options);
  Check(failure(Decided).message());
  Check(failure("/" + Name).message());
  ONNXOptions NoLibrary;
  NoLibrary.Runtime = "/" + Name;
  ONNXModelRunner Unloaded(File, {}, NoLibrary);
  Check(failure(Unloaded).message());
}

TEST_F(ONNXFaultTest, TruncatedAndDamagedModels) {
  // The weights are so large that some truncations fall within them.
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {})
      .constant("w", {64}, std::vector<float>(64, 0.5f))
      .node("Mul", {"x", "w"}, {"scaled"})
      .node("ReduceSum", {"scaled"}, {"out"}, {{"keepdims", 0}})
      .output("out", ElementType::Float, {})
      .metadata("mlbridge.finite", "true");
  const std::string Whole = Writer.bytes();
  ASSERT_FALSE(failure(writeBytes(Whole)));
  int Refused = 0;
  for (std::size_t Length = 0; Length < Whole.size(); Length += 3) {
    Error E = failure(writeBytes(Whole.substr(0, Length)));
    // If a truncation removes only the metadata, the model stays valid. After
    // any other truncation, the error must name the file.
    if (!E)
      continue;
    ++Refused;
    EXPECT_THAT(E.message(), HasSubstr("m.onnx")) << Length;
  }
  EXPECT_GT(Refused, int(Whole.size() / 3 - 5));
  for (std::size_t I = 0; I < Whole.size(); I += 7) {
    std::string Damaged = Whole;
    Damaged[I] = static_cast<char>(Damaged[I] ^ 0x5a);
    static_cast<void>(failure(writeBytes(Damaged))); // It must end.
  }
  EXPECT_EQ(failure(writeBytes(std::string(5000, '\xff'))).code(),
            ErrorCode::Malformed);
}

TEST_F(ONNXFaultTest, ModelsThatTheRuntimeCannotRun) {
  EXPECT_THAT(failure(write(add(1).opset(99))).message(),
              AllOf(HasSubstr("onnx:" + path("m.onnx")), HasSubstr("99")));
  ONNXWriter Unknown;
  Unknown.input("x", ElementType::Float, {})
      .node("InlineBetter", {"x"}, {"out"})
      .output("out", ElementType::Float, {});
  EXPECT_THAT(failure(write(Unknown)).message(), HasSubstr("InlineBetter"));
  ONNXWriter Sequence;
  Sequence.input("x", ElementType::Float, {})
      .node("SequenceConstruct", {"x"}, {"out"})
      .sequenceOutput("out", ElementType::Float);
  Error NoTensor = failure(write(Sequence));
  EXPECT_EQ(NoTensor.code(), ErrorCode::Unsupported);
  EXPECT_THAT(NoTensor.message(), HasSubstr("'out': expected a tensor"));
  ONNXWriter Deep;
  Deep.input("x", ElementType::Float, {1, 1, 1, 1, 1, 1, 1, 1, 1})
      .node("Identity", {"x"}, {"out"})
      .output("out", ElementType::Float, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(failure(write(Deep)).message(),
              HasSubstr("'x': expected a rank of at most 8, found 9"));
}

TEST_F(ONNXFaultTest, ModelsThatFailInTheMiddle) {
  ONNXWriter Writer;
  Writer.input("table", ElementType::Float, {3})
      .input("index", ElementType::Int64, {})
      .node("Gather", {"table", "index"}, {"out"})
      .output("out", ElementType::Float, {});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  auto Ask = [&](std::int64_t Index) {
    Runner.populateFeatures(std::pair{"table", std::array{5.0f, 6.0f, 7.0f}},
                            std::pair{"index", Index});
    return Runner.tryEvaluate<float>();
  };
  for (int Round = 0; Round < 3; ++Round) {
    EXPECT_EQ(*Ask(1), 6);
    Expected<float> Outside = Ask(3);
    EXPECT_EQ(Outside.code(), ErrorCode::Model);
    EXPECT_THAT(
        std::string(Outside.message()),
        AllOf(HasSubstr("onnx:" + path("m.onnx") + ": "), HasSubstr("out of")));
  }
}

TEST_F(ONNXFaultTest, FeaturesThatDoNotFit) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {2})
      .node("Identity", {"x"}, {"out"})
      .output("out", ElementType::Float, {2})
      .metadata("mlbridge.finite", "true");
  ONNXModelRunner Runner(write(Writer), {}, Options);
  auto Failure = [&](const auto &Feature) {
    Runner.populateFeatures(Feature);
    Error E = Runner.tryEvaluate<Advice>().takeError();
    EXPECT_EQ(E.code(), ErrorCode::SchemaMismatch);
    return E.message();
  };
  const std::string Model = "onnx:" + path("m.onnx") + ": ";
  EXPECT_EQ(Failure(std::pair{"X", 1}),
            Model + "expected a feature 'x' float[2], found none of that name "
                    "among 'X' int32_t");
  EXPECT_EQ(Failure(std::pair{"x", std::array{1.0, 2.0}}),
            Model + "feature 'x': expected float[2], found double[2]");
  EXPECT_EQ(Failure(std::pair{"x", std::array{1.0f, 2.0f, 3.0f}}),
            Model + "feature 'x': expected float[2], found float[3]");
  EXPECT_THAT(Failure(std::pair{"x", std::array{1.0f, NAN}}),
              HasSubstr("found NaN or an infinity at element 1"));
  Runner.populateFeatures(std::pair{"x", std::array{1.0f, 2.0f}});
  EXPECT_EQ(Runner.evaluate<std::vector<float>>()[1], 2);
}

TEST_F(ONNXFaultTest, NoRuntimeOrAnotherLibrary) {
  const std::string File = write(add(1));
  auto Failure = [&](const std::string &Runtime) {
    ONNXOptions Options;
    Options.Runtime = Runtime;
    Error E = loadONNXModel(File, Options).takeError();
    EXPECT_EQ(E.code(), ErrorCode::Unsupported) << E.str();
    return E.message();
  };
  EXPECT_THAT(Failure("/nowhere/libonnxruntime.so.1"),
              AllOf(HasSubstr("/nowhere/libonnxruntime.so.1: cannot open"),
                    HasSubstr("?runtime=PATH"),
                    HasSubstr("MLBRIDGE_ONNXRUNTIME=PATH")));
  EXPECT_THAT(Failure("libm.so.6"), HasSubstr("OrtGetApiBase"));
  std::ofstream(path("text.so")) << "no library";
  EXPECT_THAT(Failure(path("text.so")), HasSubstr("text.so"));

  auto Runner = Factory.create("onnx:" + File + "?runtime=/nowhere/lib.so");
  ASSERT_TRUE(Runner) << Runner.message();
  EXPECT_EQ(failure(**Runner).code(), ErrorCode::Unsupported);

  Child NamedByTheEnvironment([&] {
    ::setenv("MLBRIDGE_ONNXRUNTIME", "/elsewhere/lib.so", 1);
    Error E = loadONNXModel(File).takeError();
    return E.code() == ErrorCode::Unsupported &&
                   E.message().find("/elsewhere/lib.so") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(NamedByTheEnvironment.wait(), 0);
}

/// Limits this process's address space to its current size plus \p More bytes.
static bool limitAddressSpace(std::size_t More) {
  std::size_t Pages = 0;
  std::ifstream("/proc/self/statm") >> Pages;
  const rlim_t Most = Pages * std::size_t(::sysconf(_SC_PAGESIZE)) + More;
  const rlimit Limit{Most, Most};
  return Pages != 0 && ::setrlimit(RLIMIT_AS, &Limit) == 0;
}

TEST_F(ONNXFaultTest, OutOfMemory) {
#if MLBRIDGE_UNDER_ASAN || MLBRIDGE_UNDER_TSAN
  GTEST_SKIP() << "sanitizers need more address space than any limit";
#endif
  ONNXWriter Writer;
  Writer.input("n", ElementType::Int64, {1})
      .node("ConstantOfShape", {"n"}, {"zeros"})
      .node("ReduceSum", {"zeros"}, {"out"}, {{"keepdims", 0}})
      .output("out", ElementType::Float, {});
  const std::string File = write(Writer);
  Child Evaluating([&] {
    ONNXModelRunner Runner(File, {}, Options);
    auto Ask = [&](std::int64_t N) {
      Runner.populateFeatures(std::pair{"n", std::array{N}});
      return Runner.tryEvaluate<float>();
    };
    if (!Ask(10) || !limitAddressSpace(std::size_t(1) << 30))
      return 1;
    // LLVM's tools install such a handler.
    std::set_new_handler([] { std::abort(); });
    // The tensor needs 4 GiB.
    Error E = Ask(std::int64_t(1) << 30).takeError();
    std::fprintf(stderr, "%s\n", E.str().c_str());
    if (E.code() != ErrorCode::System)
      return 2;
    return Ask(10) ? 0 : 3;
  });
  EXPECT_EQ(Evaluating.wait(), 0);

  constexpr std::int64_t N = 16 << 20;
  ONNXWriter Large;
  Large.input("x", ElementType::Float, {})
      .constant("w", {N}, std::vector<float>(N, 1))
      .node("Mul", {"x", "w"}, {"out"})
      .output("out", ElementType::Float, {N});
  const std::string LargeFile = write(Large, "large.onnx");
  Child Loading([&] {
    std::set_new_handler([] { std::abort(); });
    // The model's 64 MiB of weights must exceed the limit.
    if (failure(File).code() != ErrorCode::SchemaMismatch ||
        !limitAddressSpace(std::size_t(8) << 20))
      return 1;
    Error E = failure(LargeFile);
    std::fprintf(stderr, "%s\n", E.str().c_str());
    if (E.code() != ErrorCode::System)
      return 2;
    return failure(path("probe.onnx")) ? 3 : 0;
  });
  EXPECT_EQ(Loading.wait(), 0);
}

TEST_F(ONNXFaultTest, NothingLeaks) {
  const bool Full = std::getenv("MLBRIDGE_TEST_FULL") != nullptr;
  const int Loads = Full ? 1000 : 50;
  const int Evaluations = Full ? 100'000 : 10'000;
  const std::string File = write(add(1));
  auto Load = [&](int Times) {
    for (int I = 0; I < Times; ++I) {
      ONNXModelRunner Runner(File, {}, Options);
      ASSERT_FALSE(failure(Runner));
      ASSERT_TRUE(failure(path("none.onnx")));
    }
  };
  ONNXModelRunner Runner(File, {}, Options);
  auto Evaluate = [&](int Times) {
    for (int I = 0; I < Times; ++I) {
      Runner.populateFeatures(std::pair{"x", float(I % 100)});
      ASSERT_EQ(Runner.evaluate<float>(), float(I % 100 + 1));
    }
  };
  Load(20);
  Evaluate(1000);
  const std::size_t Descriptors = countOpenDescriptors();
  const std::size_t Before = residentBytes();
  Load(Loads);
  Evaluate(Evaluations);
  EXPECT_EQ(countOpenDescriptors(), Descriptors);
#if !MLBRIDGE_UNDER_ASAN && !MLBRIDGE_UNDER_TSAN
  // If sessions leaked, each would leak some 100 KiB.
  EXPECT_LT(residentBytes(), Before + (std::size_t(8) << 20));
#else
  static_cast<void>(Before); // Sanitizers keep freed memory.
#endif
}
