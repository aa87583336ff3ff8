//===- MemoryTest.cpp - When memory runs out ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes each allocation fail in turn, in a process that continues afterwards,
/// as programs in C and in Python do. After each failure no lock is held, no
/// file stays open, and the next request succeeds.
//===----------------------------------------------------------------------===//

#include "FunctionModel.h"
#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "support/AllocationCounter.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::test;

/// Calls \p Round repeatedly: the first allocation fails in the first call, the
/// second in the second call, and so on. Calls \p Check after each call of \p
/// Round.
template <typename Function, typename Checking>
static void withEachFailure(Function Round, Checking Check) {
  if (!AllocationFailure::isPossible())
    GTEST_SKIP() << "allocations cannot fail under sanitizers";
  for (std::size_t After = 0;; ++After) {
    SCOPED_TRACE("request " + std::to_string(After));
    bool HasHappened;
    bool HasThrown = false;
    {
      AllocationFailure Failure(After);
      try {
        Round();
      } catch (const std::bad_alloc &) {
        HasThrown = true;
      } catch (...) {
        ADD_FAILURE() << "another exception";
      }
      HasHappened = Failure.hasHappened();
    }
    Check();
    if (!HasHappened) {
      EXPECT_FALSE(HasThrown);
      EXPECT_GT(After, 3U);
      return;
    }
    if (testing::Test::HasFailure())
      return;
  }
}

/// Returns the reply to the number 5 from the runner for \p Spec, or -1.
static int ask(const RunnerFactory &Factory, const std::string &Spec) {
  Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
  if (!Runner)
    return -1;
  (*Runner)->populateFeatures(std::pair{"x", 5});
  Expected<int> Reply = (*Runner)->tryEvaluate<int>();
  return Reply ? *Reply : -1;
}

TEST(MemoryTest, AFileIsLoadedByTheNextRequest) {
  TemporaryDirectory Directory;
  const std::string Spec = "echo:" + Directory.path("m");
  std::ofstream(Directory.path("m")) << "m";
  std::unique_ptr<RunnerFactory> Factory;
  auto Fresh = [&] {
    Factory = std::make_unique<RunnerFactory>();
    addModelFormat(
        *Factory,
        {"echo", "echo:FILE",
         [](const std::string &File,
            const ModelSpec &) -> Expected<std::shared_ptr<const Model>> {
           return std::make_shared<FunctionModel>(
               "echo:" + File,
               std::vector<TensorSpec>{{"x", ElementType::Int32, {}}},
               std::vector<TensorSpec>{{"x", ElementType::Int32, {}}},
               [](Span<const TensorView> Inputs, FeatureSet &Out) {
                 Out.set("x", Inputs[0]);
                 return Error::success();
               });
         }});
  };
  Fresh();
  withEachFailure([&] { (void)ask(*Factory, Spec); },
                  [&] {
                    EXPECT_EQ(ask(*Factory, Spec), 5);
                    Fresh();
                  });
}

TEST(MemoryTest, AModulesSchemesAreAvailableToTheNextSpec) {
  ASSERT_EQ(::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1), 0);
  auto Factory = std::make_unique<RunnerFactory>();
  EXPECT_EQ(ask(*Factory, "test:5"), 5);
  Factory = std::make_unique<RunnerFactory>();
  withEachFailure([&] { (void)ask(*Factory, "test:5"); },
                  [&] {
                    EXPECT_EQ(ask(*Factory, "test:5"), 5);
                    Factory = std::make_unique<RunnerFactory>();
                  });
  ASSERT_EQ(::unsetenv("MLBRIDGE_MODULES"), 0);
}

TEST(MemoryTest, TheDynamicLinkersFailureIsReported) {
  // Load a copy, because a module that another test loaded stays loaded.
  TemporaryDirectory Directory;
  const std::string Path = Directory.path("library.so");
  std::filesystem::copy_file(MLBRIDGE_TEST_MODULES "/MLBridge-test.so", Path);
  withEachFailure(
      [&] {
        Expected<void *> Library = openLibrary(Path, RTLD_NOW | RTLD_LOCAL);
        if (!Library)
          EXPECT_EQ(Library.code(), ErrorCode::System) << Library.message();
        else
          ::dlclose(*Library);
      },
      [] {});
}

TEST(MemoryTest, SessionsLeaveNoFileOpen) {
  TemporaryDirectory Directory;
  EchoModel Model(Directory.path("model"));
  const RunnerFactory Factory;
  for (const std::string Scheme : {"pipe:", "shm:"}) {
    const std::string Spec = Scheme + Directory.path("model") + "?timeout=20s";
    EXPECT_EQ(ask(Factory, Spec), 5);
    // The server runs in this process, and closes its ends a little later than
    // the client.
    auto Settled = [](std::size_t Wanted) {
      const auto Latest =
          std::chrono::steady_clock::now() + std::chrono::seconds(10);
      std::size_t Found = countOpenDescriptors();
      while (Found > Wanted && std::chrono::steady_clock::now() < Latest) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        Found = countOpenDescriptors();
      }
      return Found;
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::size_t Before = countOpenDescriptors();
    withEachFailure([&] { (void)ask(Factory, Spec); },
                    [&] { EXPECT_LE(Settled(Before), Before); });
    EXPECT_EQ(ask(Factory, Spec), 5);
  }
}
