//===- CPluginTest.cpp - A plug-in in C, loaded by a C tool ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs plugin.c in host.c with served models, with and without valgrind.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/Listener.h"
#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Transport/gRPCListener.h"
#endif

#include "support/Child.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "support/ONNXWriter.h"
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;

namespace {

class CPluginTest : public testing::Test {
protected:
  CPluginTest() {
    auto Local = openLocalListener(Name);
    EXPECT_TRUE(Local) << Local.takeError().str();
    std::vector<std::unique_ptr<Listener>> Listeners;
    Listeners.push_back(std::move(*Local));
    addSpec("pipe:" + Name);
    addSpec("pipe:" + Name, "&serdes=json");
    addSpec("shm:" + Name);
#ifdef MLBRIDGE_HAS_GRPC
    // TSan does not see gRPC's synchronisation: see GRPCSanitizers.h.
    if (!MLBRIDGE_UNDER_TSAN) {
      auto Remote = openGRPCListener("grpc+unix:" + Name + ".grpc");
      EXPECT_TRUE(Remote) << Remote.takeError().str();
      Listeners.push_back(std::move(*Remote));
      addSpec("grpc+unix:" + Name + ".grpc");
    }
#endif
#ifdef MLBRIDGE_HAS_ONNX
    ONNXWriter AddsOne;
    AddsOne.input("x", ElementType::Float, {})
        .constant("c", {}, std::vector{1.0F})
        .node("Add", {"x", "c"}, {"out"})
        .output("out", ElementType::Float, {});
    // ONNX Runtime may be missing. Its own tests then report that.
    if (*MLBRIDGE_TEST_ONNXRUNTIME)
      Arguments.push_back("onnx:" + AddsOne.write(Folder.path("m.onnx")) +
                          "?timeout=60s");
#endif
    Model =
        std::make_unique<EchoModel>(ModelServer::create(std::move(Listeners)));
  }

  void addSpec(const std::string &Where, const std::string &Options = {}) {
    Arguments.push_back(Where + "?timeout=60s&connect=60s" + Options);
  }

  /// Runs the plug-in in the host. \p Command precedes the host's command line,
  /// for example `valgrind`.
  void run(std::vector<std::string> Command) {
    Command.insert(Command.end(),
                   {MLBRIDGE_HOST, MLBRIDGE_PLUGIN, Folder.path("x.log")});
    Command.insert(Command.end(), Arguments.begin(), Arguments.end());
    std::vector<char *> Argv;
    for (std::string &Word : Command)
      Argv.push_back(Word.data());
    Argv.push_back(nullptr);
    const std::string Log = Folder.path("output");
    Child Host([&] {
      const int Out = ::open(Log.c_str(), O_WRONLY | O_CREAT, 0600);
      if (::dup2(Out, STDOUT_FILENO) < 0 || ::dup2(Out, STDERR_FILENO) < 0)
        return 126;
#ifdef MLBRIDGE_HAS_ONNX
      if (::setenv("MLBRIDGE_ONNXRUNTIME", MLBRIDGE_TEST_ONNXRUNTIME, 0) != 0)
        return 126;
#endif
      ::execv(Argv[0], Argv.data());
      return 127;
    });
    const int Status = Host.wait();
    std::ostringstream Output;
    Output << std::ifstream(Log).rdbuf();
    EXPECT_EQ(Status, 0) << Output.str();
    EXPECT_THAT(Output.str(), testing::HasSubstr("plugin: 0 failures"));
  }

  TemporaryDirectory Folder;
  std::string Name = Folder.path("model");
  std::vector<std::string> Arguments;
  std::unique_ptr<EchoModel> Model;
};

TEST_F(CPluginTest, EveryRunner) { run({}); }

TEST_F(CPluginTest, EveryRunnerUnderValgrind) {
#if defined(MLBRIDGE_SANITIZED)
  GTEST_SKIP() << "valgrind cannot run code that a sanitizer has instrumented";
#elif !defined(MLBRIDGE_VALGRIND)
  GTEST_SKIP() << "valgrind was not found";
#else
  run({MLBRIDGE_VALGRIND, "--quiet", "--error-exitcode=99", "--leak-check=full",
       "--errors-for-leak-kinds=definite,possible",
       "--show-leak-kinds=definite,possible",
       std::string("--suppressions=") + MLBRIDGE_SUPPRESSIONS});
#endif
}

} // namespace
