//===- ModuleLoaderTest.cpp - Schemes from MLBridge-NAME.so ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads the modules of tests/unit/modules. The build puts them into the folder
/// MLBRIDGE_TEST_MODULES.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Training/EnvironmentServer.h"
#include "MLCompilerBridge/Version.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace MLBridge;
using testing::Each;
using testing::HasSubstr;

namespace {

class ModuleLoaderTest : public testing::Test {
protected:
  ModuleLoaderTest() {
    ::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, /*overwrite=*/1);
  }
  ~ModuleLoaderTest() override { ::unsetenv("MLBRIDGE_MODULES"); }

  static int ask(const RunnerFactory &Factory, std::string_view Spec) {
    Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
    EXPECT_TRUE(bool(Runner)) << Runner.message();
    Expected<int> Reply =
        Runner ? (*Runner)->tryEvaluate<int>() : Runner.takeError();
    return Reply ? *Reply : -1;
  }
};

class NoEnvironment final : public Environment {
  Error reset(FeatureSet &) override { return Error::success(); }
  Error step(const Advice &, FeatureSet &) override { return Error::success(); }
};

} // namespace

TEST_F(ModuleLoaderTest, ASchemeMayComeWithAModule) {
  RunnerFactory Factory;
  EXPECT_EQ(ask(Factory, "test:42"), 42);
  EXPECT_EQ(ask(Factory, "fallback|test:7"), 7);
  EXPECT_FALSE(Factory.check("test:1?timeout=3s"));
  EXPECT_EQ(Factory.check("test:1?timeout=x").code(),
            ErrorCode::InvalidArgument);
}

TEST_F(ModuleLoaderTest, CopiesShareTheSchemesState) {
  const RunnerFactory Factory, Another;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const RunnerFactory Copy = Factory;
  EXPECT_EQ(ask(Factory, "test+counted:"), 1);
  EXPECT_EQ(ask(Copy, "test+counted:"), 2);
  EXPECT_EQ(ask(Factory, "test+counted:"), 3);
  EXPECT_EQ(ask(Another, "test+counted:"), 1);
}

TEST_F(ModuleLoaderTest, AModelIsLoadedOnceForAllRunners) {
  const test::TemporaryDirectory Folder;
  const std::string File = Folder.path("model"), Spec = "test+model:" + File;
  std::ofstream(File) << "first";
  auto Factory = std::make_unique<const RunnerFactory>();
  // Eight threads make the first requests at once, which load the module.
  std::vector<int> Replies(8);
  std::vector<std::thread> Threads;
  for (int &Reply : Replies)
    Threads.emplace_back([&Reply, &Spec, Copy = RunnerFactory(*Factory)] {
      Reply = ask(Copy, Spec);
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  const int First = Replies.front();
  EXPECT_THAT(Replies, Each(First));
  EXPECT_EQ(ask(*Factory, "fallback|" + Spec + "?timeout=5s"), First);
  EXPECT_EQ(ask(RunnerFactory(), Spec), First + 1)
      << "another factory loads its own model";

  auto Old = Factory->create(Spec);
  ASSERT_TRUE(Old) << Old.message();
  EXPECT_EQ((*Old)->evaluate<int>(), First);
  std::ofstream(File) << "the second";
  EXPECT_EQ(ask(*Factory, Spec), First + 2);
  EXPECT_EQ(ask(*Factory, Spec), First + 2);
  // A runner keeps its model, also when its factory is gone.
  Factory.reset();
  EXPECT_EQ((*Old)->evaluate<int>(), First);
}

TEST_F(ModuleLoaderTest, TrainingSchemes) {
  NoEnvironment Env;
  EXPECT_EQ(serveEnvironment(Env, "test:here").str(),
            "Model: served at test:here");
  EXPECT_THAT(serveEnvironment(Env, "test+counted:").message(),
              HasSubstr("found 'test+counted'"));
}

TEST_F(ModuleLoaderTest, ErrorsSayWhatIsWrong) {
  RunnerFactory Factory;
  Error E = Factory.check("wrongversion:x");
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(E.message(),
              HasSubstr("MLBridge-wrongversion.so: expected "
                        "version " MLBRIDGE_VERSION ", found 0.0.0"));
  E = Factory.check("nosymbol:x");
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(E.message(), HasSubstr("MLBridgeRunnerModule"));
  E = Factory.check("noversion:x");
  EXPECT_EQ(E.code(), ErrorCode::Malformed);
  EXPECT_THAT(E.message(), HasSubstr("MLBridge-noversion.so: expected a "
                                     "version, found a null pointer"));
  E = Factory.check("norunners:x");
  EXPECT_EQ(E.code(), ErrorCode::Malformed);
  EXPECT_THAT(E.message(), HasSubstr("MLBridge-norunners.so: expected the "
                                     "function AddRunners, found a null "
                                     "pointer"));
  NoEnvironment Env;
  EXPECT_EQ(serveEnvironment(Env, "noversion:here").code(),
            ErrorCode::Malformed);
  std::ofstream(MLBRIDGE_TEST_MODULES "/MLBridge-text.so") << "text";
  E = Factory.check("text:x");
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(E.message(), HasSubstr("MLBridge-text.so"));
  // The module exists, but lacks this scheme.
  E = Factory.check("test+more:x");
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(E.message(), HasSubstr("scheme 'test+more': MLBridge-test.so has "
                                     "only test, test+counted, "));
}

TEST_F(ModuleLoaderTest, MissingModulesAreNamed) {
  RunnerFactory Factory;
  Error E = Factory.check("nowhere+x:y");
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(E.message(), HasSubstr("unknown scheme 'nowhere+x'"));
  EXPECT_THAT(E.message(),
              HasSubstr("found no module MLBridge-nowhere.so in "
                        "MLBRIDGE_MODULES=" MLBRIDGE_TEST_MODULES ", /"));
  EXPECT_TRUE(E.message().ends_with(" or the folders of the dynamic linker"));
}

TEST_F(ModuleLoaderTest, TruncatedModulesAreNotLoaded) {
  namespace fs = std::filesystem;
  const std::string Path = MLBRIDGE_TEST_MODULES "/MLBridge-short.so";
  fs::copy_file(MLBRIDGE_TEST_MODULES "/MLBridge-test.so", Path,
                fs::copy_options::overwrite_existing);
  fs::resize_file(Path, fs::file_size(Path) / 2);
  EXPECT_EQ(checkLibrary(Path).code(), ErrorCode::Malformed);
  Error E = RunnerFactory().check("short:x");
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(E.message(), HasSubstr("it was cut short"));
}
