//===- ForkTest.cpp - Compilers that fork -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// If a compiler forks, two processes have its runner. Each process must get
/// the replies to its own requests, so the child opens a new session.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "RawModel.h"

#include <poll.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

class Fork : public FaultTest,
             public testing::WithParamInterface<const char *> {
protected:
  /// Runs an echo model in its own process until its sessions end. The exit
  /// status is 0 if the number of sessions was \p Sessions.
  std::unique_ptr<Child> serve(std::uint64_t Sessions) {
    return std::make_unique<Child>([this, Sessions] {
      auto Server = ModelServer::listen(Name);
      if (!Server)
        return 5;
      for (;;) {
        if (auto Request = (*Server)->next(Deadline::in(100ms))) {
          if ((*Server)->reply(Request->Features))
            return 6;
          continue;
        }
        const ModelServer::Statistics Now = (*Server)->statistics();
        if (Now.Sessions != 0 && Now.Open == 0)
          return Now.Sessions == Sessions ? 0 : 7;
      }
    });
  }

  void connect() {
    auto Made = createModelRunner(GetParam() + Name);
    ASSERT_TRUE(Made) << Made.message();
    Runner = std::move(*Made);
  }

  /// True if the model echoes \p Size elements with the value \p X.
  static bool isAnswered(MLModelRunner &Runner, double X, std::size_t Size) {
    const std::vector<double> Values(Size, X);
    Runner.populateFeatures(std::pair{"x", Span<const double>(Values)});
    auto Reply = Runner.tryEvaluate<std::vector<double>>();
    if (!Reply)
      std::fprintf(stderr, "%d: %s\n", ::getpid(),
                   Reply.takeError().str().c_str());
    return Reply && *Reply == Values;
  }
  static bool areAnswered(MLModelRunner &Runner, double First) {
    for (int I = 0; I < 200; ++I)
      if (!isAnswered(Runner, First + I, I % 10 == 0 ? 50'000 : 1))
        return false;
    return true;
  }
};

TEST_P(Fork, EachProcessGetsItsOwnReplies) {
  std::unique_ptr<Child> Model = serve(/*Sessions=*/3);
  connect();
  ASSERT_TRUE(isAnswered(*Runner, 1, 1));
  Child First([&] { return areAnswered(*Runner, 1000) ? 0 : 1; });
  Child Second([&] { return areAnswered(*Runner, 2000) ? 0 : 1; });
  EXPECT_TRUE(areAnswered(*Runner, 3000));
  EXPECT_EQ(First.wait(), 0);
  EXPECT_EQ(Second.wait(), 0);
  EXPECT_TRUE(areAnswered(*Runner, 4000));
  Runner.reset();
  EXPECT_EQ(Model->wait(), 0) << "each process must have its own session";
}

TEST_P(Fork, AnIdleChildLeavesTheSessionAlone) {
  std::unique_ptr<Child> Model = serve(/*Sessions=*/1);
  connect();
  ASSERT_TRUE(isAnswered(*Runner, 1, 50'000));
  Child Idle([&] {
    Runner.reset();
    return 0;
  });
  EXPECT_TRUE(areAnswered(*Runner, 3000));
  EXPECT_EQ(Idle.wait(), 0);
  EXPECT_TRUE(areAnswered(*Runner, 4000));
  Runner.reset();
  EXPECT_EQ(Model->wait(), 0);
}

TEST_P(Fork, AGrandchildHasASessionOfItsOwn) {
  std::unique_ptr<Child> Model = serve(/*Sessions=*/3);
  connect();
  ASSERT_TRUE(isAnswered(*Runner, 1, 1));
  Child First([&] {
    if (!isAnswered(*Runner, 2, 1))
      return 1;
    Child Grandchild([&] { return areAnswered(*Runner, 1000) ? 0 : 1; });
    return areAnswered(*Runner, 2000) ? Grandchild.wait() : 2;
  });
  EXPECT_TRUE(areAnswered(*Runner, 3000));
  EXPECT_EQ(First.wait(), 0);
  Runner.reset();
  EXPECT_EQ(Model->wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Fork, testing::Values("pipe:", "shm:"),
                         [](const auto &Info) {
                           std::string Scheme = Info.param;
                           Scheme.pop_back();
                           return Scheme;
                         });

/// A bare model serves one compiler. In this test, the parent is that compiler.
TEST(BareFork, AChildIsKeptOut) {
  TemporaryDirectory Directory;
  const std::string Name = Directory.path("model");
  RawBareModel::makeFifos(Name);
  Child Model([&] {
    RawBareModel M(Name);
    for (;;) {
      M.readRequest();
      M.writeFrame("{\"out\":1}");
    }
    return 0;
  });
  TransportOptions Options;
  Options.ConnectTimeout = ShortWait;
  PipeModelRunner Runner(Name, SerDes::Kind::JSON, Options);
  auto Ask = [&] {
    Runner.populateFeatures(std::pair{"x", 1});
    return Runner.tryEvaluate<int>();
  };
  ASSERT_TRUE(Ask());
  Child Forked([&] { return Ask().code() == ErrorCode::Timeout ? 0 : 1; });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_TRUE(Ask());
}

/// The children of a killed server still hold its sockets.
TEST(ServerFork, AChildOfADeadServerBlocksNoCompiler) {
  TemporaryDirectory Directory;
  const std::string Name = Directory.path("model");
  int Alive[2];
  ASSERT_EQ(::pipe(Alive), 0);
  Child Dead([&] {
    auto Server = ModelServer::listen(Name);
    if (!Server)
      return 5;
    if (::fork() == 0) {
      // The child ends when the test closes the other end of the pipe.
      ::close(Alive[1]);
      pollfd P{Alive[0], POLLIN, 0};
      ::poll(&P, 1, 60'000);
      ::_exit(0);
    }
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(Dead.wait(), 128 + SIGKILL);
  for (const char *Scheme : {"pipe:", "shm:"}) {
    auto Runner = createModelRunner(Scheme + Name + "?connect=300ms");
    ASSERT_TRUE(Runner) << Runner.message();
    (**Runner).populateFeatures(std::pair{"x", 1});
    Expected<int> Reply = (**Runner).tryEvaluate<int>();
    EXPECT_EQ(Reply.code(), ErrorCode::Timeout);
    EXPECT_NE(Reply.message().find("a child that it forked"),
              std::string_view::npos)
        << Reply.message();
  }
  EchoModel Next(Name);
  auto Runner = createModelRunner("pipe:" + Name);
  (**Runner).populateFeatures(std::pair{"x", 7});
  Expected<int> Reply = (**Runner).tryEvaluate<int>();
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 7);
  ::close(Alive[0]);
  ::close(Alive[1]);
}

} // namespace
