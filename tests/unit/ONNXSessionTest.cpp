//===- ONNXSessionTest.cpp - Providers, operators, external data ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests execution providers and custom operators named in a spec, and external
/// data outside the model's folder.
///
//===----------------------------------------------------------------------===//

#include "support/ONNXTest.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
class ONNXSessionTest : public ONNXTest {
protected:
  /// Asks the model in \p Spec for its reply to x = 2.
  Expected<float> ask(const std::string &Spec) const {
    auto Runner = Factory.create(Spec);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", 2.0F});
    return (*Runner)->tryEvaluate<float>();
  }
  std::string messageOf(const std::string &Spec, ErrorCode Code) const {
    Expected<float> Reply = ask(Spec);
    EXPECT_EQ(Reply.code(), Code) << Reply.message();
    return std::string(Reply.message());
  }
  /// Writes a model that adds to x the number in \p File, which is 5.
  std::string writeExternal(const std::string &Model,
                            const std::string &File) const {
    ONNXWriter Writer;
    Writer.input("x", ElementType::Float, {})
        .externalConstant("c", {}, File)
        .node("Add", {"x", "c"}, {"out"})
        .output("out", ElementType::Float, {});
    return write(Writer, Model);
  }
  void writeWeight(const std::string &File) const {
    const float Number = 5;
    std::ofstream(path(File), std::ios::binary)
        .write(reinterpret_cast<const char *>(&Number), sizeof(Number));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Execution providers
//===----------------------------------------------------------------------===//

TEST_F(ONNXSessionTest, TheCPUIsAProvider) {
  const std::string Spec = "onnx:" + write(add(1)) + "?provider=";
  for (const char *Name : {"cpu", "CPU", "CPUExecutionProvider"})
    EXPECT_EQ(*ask(Spec + Name), 3) << Name;
}

TEST_F(ONNXSessionTest, AMissingProviderIsAnErrorThatListsTheOthers) {
  const std::string Name = "onnx:" + write(add(1));
  EXPECT_THAT(
      messageOf(Name + "?provider=cpux,cpu", ErrorCode::Unsupported),
      AllOf(StartsWith(Name + ": execution provider 'cpux': this build of ONNX "
                              "Runtime has only "),
            HasSubstr("cpu"), HasSubstr("?runtime=PATH")));
  // The providers are tried in order. The CPU supports every model, so a
  // provider after it is never used.
  EXPECT_EQ(*ask(Name + "?provider=cpu,cpux"), 3);
  for (const char *Empty : {"", "cpu,", ",cpu", "cpu,,cpu"})
    EXPECT_THAT(
        messageOf(Name + "?provider=" + Empty, ErrorCode::InvalidArgument),
        HasSubstr("option 'provider': expected items separated by commas"));
}

//===----------------------------------------------------------------------===//
// Custom operators
//===----------------------------------------------------------------------===//

TEST_F(ONNXSessionTest, ALibraryAddsItsOperators) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {})
      .customNode("Triple", "test", {"x"}, {"out"})
      .output("out", ElementType::Float, {});
  const std::string Spec = "onnx:" + write(Writer);
  EXPECT_EQ(*ask(Spec + "?ops=" MLBRIDGE_TEST_OPERATORS), 6);
  EXPECT_FALSE(ask(Spec)) << "the operator is unknown without its library";
  // A second session of this process registers the operators again.
  EXPECT_EQ(*ask(Spec + "?ops=" MLBRIDGE_TEST_OPERATORS "&provider=cpu"), 6);
}

TEST_F(ONNXSessionTest, ALibraryWithoutOperatorsIsAnError) {
  const std::string Name = "onnx:" + write(add(1));
  EXPECT_THAT(messageOf(Name + "?ops=" + path("none.so"), ErrorCode::System),
              StartsWith(Name + ": operators '" + path("none.so") + "': "));
  std::ofstream(path("text.so")) << "text";
  EXPECT_THAT(messageOf(Name + "?ops=" + path("text.so"), ErrorCode::Malformed),
              HasSubstr("text.so"));
  // ONNX Runtime's own file is a library, but has no RegisterCustomOps().
  EXPECT_THAT(messageOf(Name + "?ops=" MLBRIDGE_TEST_ONNXRUNTIME,
                        ErrorCode::Unsupported),
              HasSubstr("RegisterCustomOps"));
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

TEST_F(ONNXSessionTest, ExternalDataAreInTheModelsFolderOnly) {
  std::filesystem::create_directories(path("sub/deeper"));
  for (const char *File : {"out.bin", "sub/in.bin", "sub/deeper/in.bin"})
    writeWeight(File);
  std::filesystem::create_symlink("../out.bin", path("sub/link.bin"));
  for (const char *File : {"in.bin", "deeper/in.bin", "deeper/../in.bin"})
    EXPECT_EQ(*ask("onnx:" + writeExternal("sub/m.onnx", File)), 7) << File;
  for (const std::string &File :
       {std::string("../out.bin"), std::string("deeper/../../out.bin"),
        path("out.bin"), std::string("link.bin")})
    EXPECT_THAT(messageOf("onnx:" + writeExternal("sub/m.onnx", File),
                          ErrorCode::Malformed),
                HasSubstr("external data '" + File +
                          "': expected a file in the model's folder, found '"));
}
