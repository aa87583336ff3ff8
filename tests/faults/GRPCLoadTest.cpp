//===- GRPCLoadTest.cpp - More compilers than descriptors -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opens so many sessions and connections that the server's process runs out of
/// descriptors, and runs many short compilers. Each compiler is served or
/// refused with a reason, and the server keeps working. Unless
/// MLBRIDGE_TEST_FULL is set, the numbers are divided by ten.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "GRPCPeers.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"
#include "support/GRPCSanitizers.h"
#include "support/Sanitizers.h"

#include <cstdlib>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

int tenthOf(int Count) {
  return std::getenv("MLBRIDGE_TEST_FULL") ? Count : Count / 10;
}

void setDescriptorLimit(rlim_t Most) {
  rlimit Limit{};
  ::getrlimit(RLIMIT_NOFILE, &Limit);
  Limit.rlim_cur = std::min(Most, Limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &Limit);
}

class GRPCLoad : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    awaitEndOfGRPC();
    Port = freePort();
    Spec = isTCP() ? "grpc://127.0.0.1:" + std::to_string(Port)
                   : "grpc+unix:" + Name;
  }
  void TearDown() override {
    if (!Server)
      return;
    // Within two seconds, the server must have room again.
    Expected<float> Reply = Error();
    for (Deadline Until = Deadline::in(2s); !Reply && !Until.expired();)
      Reply = ask(*runner("connect=1s"), 7);
    EXPECT_TRUE(Reply) << Reply.message();
  }
  static bool isTCP() { return GetParam() == std::string("TCP"); }

  /// Starts a model in its own process, which may open \p Descriptors
  /// descriptors.
  void serve(rlim_t Descriptors = 256, const std::string &Options = {}) {
    Server = std::make_unique<Child>([=, this] {
      setDescriptorLimit(Descriptors);
      auto Opened = openGRPCListener(Spec + Options);
      if (!Opened) {
        std::fprintf(stderr, "the server: %s\n",
                     Opened.takeError().str().c_str());
        return 5;
      }
      auto Model = serverOf(std::move(*Opened));
      for (;;)
        if (auto Request = Model->next(Deadline::in(60s)))
          (void)bool(Model->reply(Request->Features));
        else
          std::fprintf(stderr, "the server: %s\n",
                       Request.takeError().str().c_str());
    });
    setDescriptorLimit(16'384);
    ASSERT_TRUE(ask(*runner("connect=10s"), 1)) << "the server does not answer";
  }

  std::unique_ptr<MLModelRunner> runner(const std::string &Options) const {
    RunnerFactory Factory;
    addGRPC(Factory);
    return std::move(*Factory.create(Spec + "?serdes=json&" + Options));
  }
  static Expected<float> ask(MLModelRunner &Runner, float X) {
    Runner.populateFeatures(std::pair{"x", X});
    return Runner.tryEvaluate<float>();
  }

  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  int Port = 0;
  std::string Spec;
  std::unique_ptr<Child> Server;
};

TEST_P(GRPCLoad, SessionsOverOneConnection) {
  if (!isTCP())
    GTEST_SKIP() << "the raw client knows TCP only";
  serve();
  const int Count = tenthOf(1000);
  std::vector<std::unique_ptr<RawCall>> Sessions;
  for (int I = 0; I < Count; ++I)
    Sessions.push_back(std::make_unique<RawCall>(
        Port, "session",
        std::vector<std::pair<std::string, std::string>>{
            {"mlbridge-serdes", "json"}}));
  for (int Round = 0; Round < 2; ++Round) {
    for (int I = 0; I < Count; ++I)
      ASSERT_TRUE(Sessions[I]->write("{\"x\":" + std::to_string(I) + "}"));
    for (int I = 0; I < Count; ++I)
      ASSERT_EQ(Sessions[I]->read(), "{\"x\":" + std::to_string(I) + "}");
  }
}

TEST_P(GRPCLoad, ManyConnections) {
  // Even a tenth of the connections exceeds the number of descriptors.
  const int Count = tenthOf(1000);
  serve(Count < 256 ? 96 : 256);
  std::vector<std::unique_ptr<MLModelRunner>> Runners;
  int NumServed = 0;
  for (int I = 0; I < Count; ++I) {
    Runners.push_back(runner("connect=10s"));
    const Clock::time_point Start = Clock::now();
    Expected<float> Reply = ask(*Runners.back(), float(I));
    EXPECT_LT(Clock::now() - Start, 5s);
    if (Reply) {
      EXPECT_EQ(*Reply, float(I));
      ++NumServed;
      continue;
    }
    ASSERT_EQ(Reply.code(), ErrorCode::PeerClosed) << Reply.message();
    ASSERT_NE(Reply.message().find("ulimit -n"), std::string_view::npos)
        << Reply.message();
  }
  EXPECT_GT(NumServed, 20);
  EXPECT_LT(NumServed, Count);
  // Compilers that already have a session keep it.
  for (int I = 0; I < 20; ++I) {
    Expected<float> Reply = ask(*Runners[I], 0.5F);
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, 0.5F);
  }
}

TEST_P(GRPCLoad, ShortUnaryCompilers) {
  serve();
  // Under a sanitizer each compiler takes longer, so run fewer.
  for (int I = 0; I < tenthOf(MLBRIDGE_UNDER_ASAN ? 2'000 : 10'000); ++I) {
    Expected<float> Reply = ask(*runner("call=unary&connect=10s"), float(I));
    ASSERT_TRUE(Reply) << I << ": " << Reply.message();
    EXPECT_EQ(*Reply, float(I));
  }
}

TEST_P(GRPCLoad, AUnaryCompilerThatPausesIsStillServed) {
  serve();
  auto Pausing = runner("call=unary&connect=10s");
  ASSERT_TRUE(ask(*Pausing, 1));
  // Open more sessions than the server keeps while they are idle.
  for (int I = 0; I < 100; ++I)
    ASSERT_TRUE(ask(*runner("call=unary&connect=10s"), float(I)));
  Expected<float> Reply = ask(*Pausing, 2);
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 2.0F);
}

TEST_P(GRPCLoad, UnaryCompilersThatAreGoneMakeRoom) {
  serve(256, "?max-sessions=3");
  auto Last = runner("call=unary&connect=10s");
  for (int I = 0; I < 10; ++I) {
    Expected<float> Reply = ask(*runner("call=unary&connect=10s"), float(I));
    ASSERT_TRUE(Reply) << I << ": " << Reply.message();
    Reply = ask(*runner("connect=10s"), float(I));
    ASSERT_TRUE(Reply) << I << ": " << Reply.message();
    // The session of Last was idle for the longest time, so the server has
    // ended it. The next call opens another session.
    if (I % 5 == 0) {
      Reply = ask(*Last, float(I));
      ASSERT_TRUE(Reply) << I << ": " << Reply.message();
    }
  }
}

TEST_P(GRPCLoad, ALimitOnSessionsRefusesInWords) {
  serve(256, "?max-sessions=2");
  auto First = runner("connect=10s"), Second = runner("connect=10s");
  // The session of the request in serve() may still be open.
  Expected<float> Reply = Error();
  for (Deadline Until = Deadline::in(2s); !Reply && !Until.expired();)
    Reply = ask(*First, 1);
  ASSERT_TRUE(Reply) << Reply.message();
  for (Deadline Until = Deadline::in(2s); !ask(*Second, 1) && !Until.expired();)
    ;
  Reply = ask(*runner("connect=10s"), 1);
  EXPECT_EQ(Reply.code(), ErrorCode::Unsupported);
  EXPECT_NE(Reply.message().find("(max-sessions=2)"), std::string_view::npos)
      << Reply.message();
}

INSTANTIATE_TEST_SUITE_P(Over, GRPCLoad, testing::Values("TCP", "Unix"),
                         [](const auto &Info) { return Info.param; });

//===----------------------------------------------------------------------===//
// The compiler's process
//===----------------------------------------------------------------------===//

/// A process that lacks a resource makes requests.
class GRPCScarcity : public testing::Test {
protected:
  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    awaitEndOfGRPC();
  }

  /// Returns 0 (an exit status) if a request and the opening of a listener both
  /// fail with the code System and a message that contains \p Mentions.
  static int fails(int Port, std::string_view Mentions) {
    const std::string Spec = "grpc://127.0.0.1:" + std::to_string(Port);
    {
      RunnerFactory Factory;
      addGRPC(Factory);
      auto Runner = std::move(*Factory.create(Spec + "?connect=2s"));
      Runner->populateFeatures(std::pair{"x", 1.0F});
      Expected<float> Reply = Runner->tryEvaluate<float>();
      if (!isExpected(Reply.takeError(), Mentions))
        return 1;
    }
    return isExpected(openGRPCListener(Spec).takeError(), Mentions) ? 0 : 2;
  }

private:
  static bool isExpected(const Error &E, std::string_view Mentions) {
    if (E.code() == ErrorCode::System &&
        E.message().find(Mentions) != std::string::npos)
      return true;
    std::fprintf(stderr, "found: %s\n", E.str().c_str());
    return false;
  }
};

TEST_F(GRPCScarcity, TooFewDescriptorsAreAnError) {
  const int Port = freePort();
  for (rlim_t Left = 0; Left < 12; ++Left) {
    Child Compiler([&] {
      const int Next = ::dup(0);
      ::close(Next);
      setDescriptorLimit(static_cast<rlim_t>(Next) + Left);
      return fails(Port, "ulimit -n");
    });
    EXPECT_EQ(Compiler.wait(), 0) << Left << " left";
  }
}

TEST_F(GRPCScarcity, TooFewThreadsAreAnError) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become a user who has no process yet";
  const int Port = freePort();
  for (rlim_t More : {1, 3, 6}) {
    Child Compiler([&] {
      constexpr uid_t Nobodys = 64123;
      rlimit Limit{1 + More, 1 + More};
      if (::setrlimit(RLIMIT_NPROC, &Limit) != 0 ||
          ::setresuid(Nobodys, Nobodys, Nobodys) != 0)
        return 5;
      return fails(Port, "threads");
    });
    EXPECT_EQ(Compiler.wait(), 0) << More;
  }
}

TEST_F(GRPCScarcity, TooLittleAddressSpaceIsAnError) {
  if (MLBRIDGE_UNDER_ASAN)
    GTEST_SKIP() << "ASan's shadow memory is terabytes of address space";
  const int Port = freePort();
  for (rlim_t MiB : {8, 20, 40, 60}) {
    Child Compiler([&] {
      std::size_t Pages = 0;
      if (std::FILE *Statm = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(Statm, "%zu", &Pages) != 1)
          return 9;
        std::fclose(Statm);
      }
      const rlim_t Most = Pages * 4096 + (MiB << 20);
      const rlimit Limit{Most, Most};
      ::setrlimit(RLIMIT_AS, &Limit);
      return fails(Port, "ulimit -v");
    });
    EXPECT_EQ(Compiler.wait(), 0) << MiB << " MiB left";
  }
}

//===----------------------------------------------------------------------===//
// Forks
//===----------------------------------------------------------------------===//

class GRPCFork : public GRPCLoad {};

TEST_P(GRPCFork, AChildGetsAnErrorAndLeavesItsParentAlone) {
  serve();
  for (const char *Style : {"call=stream", "call=unary"}) {
    auto Runner = runner(std::string(Style) + "&connect=10s");
    ASSERT_TRUE(ask(*Runner, 1));
    Child Forked([&] {
      auto IsTold = [&](MLModelRunner &R) {
        Expected<float> Reply = ask(R, 2);
        return Reply.code() == ErrorCode::Unsupported &&
               Reply.message().find("forked") != std::string_view::npos;
      };
      if (!IsTold(*Runner) || !IsTold(*runner("connect=10s")))
        return 1;
      if (openGRPCListener("grpc://127.0.0.1:0").code() !=
          ErrorCode::Unsupported)
        return 2;
      Runner.reset();
      return 0;
    });
    const Clock::time_point Start = Clock::now();
    for (int I = 0; I < 100; ++I) {
      Expected<float> Reply = ask(*Runner, float(I));
      ASSERT_TRUE(Reply) << Reply.message();
      ASSERT_EQ(*Reply, float(I));
    }
    EXPECT_EQ(Forked.wait(), 0);
    EXPECT_LT(Clock::now() - Start, 5s);
    EXPECT_TRUE(ask(*Runner, 3));
  }
}

TEST_P(GRPCFork, AServersChildRemovesNothing) {
  Server = std::make_unique<Child>([&] {
    auto Opened = openGRPCListener(Spec);
    if (!Opened)
      return 5;
    auto Model = serverOf(std::move(*Opened));
    for (int I = 1;; ++I) {
      auto Request = Model->next(Deadline::in(60s));
      if (!Request || Model->reply(Request->Features))
        return 6;
      // Fork while both compilers have a session.
      if (I != 2)
        continue;
      Child Forked([&] {
        Model.reset();
        return 0;
      });
      if (Forked.wait() != 0)
        return 7;
    }
  });
  auto Stream = runner("connect=10s"), Unary = runner("call=unary&connect=10s");
  ASSERT_TRUE(ask(*Stream, 1));
  ASSERT_TRUE(ask(*Unary, 1));
  const Clock::time_point Start = Clock::now();
  EXPECT_TRUE(ask(*Stream, 2));
  EXPECT_TRUE(ask(*Unary, 2));
  if (!isTCP()) {
    EXPECT_TRUE(std::filesystem::exists(Name));
  }
  EXPECT_LT(Clock::now() - Start, 5s);
}

INSTANTIATE_TEST_SUITE_P(Over, GRPCFork, testing::Values("TCP", "Unix"),
                         [](const auto &Info) { return Info.param; });

} // namespace
