//===- ONNXTest.h - The fixture of ONNX tests -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXTest: a fixture with a directory for models, and with the ONNX Runtime
/// library that runs the models.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_ONNXTEST_H
#define MLBRIDGE_TESTS_SUPPORT_ONNXTEST_H

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#include "support/EchoModel.h"
#include "support/ONNXWriter.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace MLBridge::test {

class ONNXTest : public testing::Test {
protected:
  void SetUp() override {
    // Look for the library in the same order as a compiler: in the environment
    // variable, with the dynamic loader, and at the path that CMake found.
    if (!std::getenv("MLBRIDGE_ONNXRUNTIME"))
      Options.Runtime = MLBRIDGE_TEST_ONNXRUNTIME;
    addONNX(Factory, Options);
    const std::string File = add(1).write(path("probe.onnx"));
    Expected<std::shared_ptr<const Model>> Loaded =
        loadONNXModel(File, Options);
    if (Loaded.code() == ErrorCode::Unsupported)
      GTEST_SKIP() << Loaded.message() << "; `make setup` installs it";
    ASSERT_TRUE(Loaded) << Loaded.message();
  }

  /// Returns a model that adds \p Number to the float "x".
  static ONNXWriter add(float Number) {
    ONNXWriter Writer;
    Writer.input("x", ElementType::Float, {})
        .constant("c", {}, std::vector{Number})
        .node("Add", {"x", "c"}, {"out"})
        .output("out", ElementType::Float, {});
    return Writer;
  }

  /// Returns a model that adds 1 to the float "x" n times. The input "n" is an
  /// int64.
  static ONNXWriter addInALoop() {
    ONNXWriter Body, Writer;
    Body.input("i", ElementType::Int64, {})
        .input("go", ElementType::Bool, {})
        .input("sum", ElementType::Float, {})
        .node("Identity", {"go"}, {"go on"})
        .node("Add", {"sum", "one"}, {"new sum"})
        .output("go on", ElementType::Bool, {})
        .output("new sum", ElementType::Float, {});
    Writer.input("x", ElementType::Float, {})
        .input("n", ElementType::Int64, {})
        .constant("one", {}, std::vector{1.0F})
        .nodeWithBody("Loop", {"n", "", "x"}, {"out"}, Body)
        .output("out", ElementType::Float, {});
    return Writer;
  }

  std::string path(const std::string &Name) const {
    return Directory.path(Name);
  }
  std::string write(const ONNXWriter &Writer,
                    const std::string &Name = "m.onnx") const {
    return Writer.write(path(Name));
  }

  TemporaryDirectory Directory;
  ONNXOptions Options;
  RunnerFactory Factory;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_ONNXTEST_H
