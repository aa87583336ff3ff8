//===- FaultTest.h - The fixture of fault tests -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The fixture of the fault tests of all transports: the model's name, the
/// times that faults may take, and the checks on a failed request.
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FAULTS_FAULTTEST_H
#define MLBRIDGE_TESTS_FAULTS_FAULTTEST_H

#include "MLCompilerBridge/MLModelRunner.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <sys/time.h>

namespace MLBridge::test {

using Clock = std::chrono::steady_clock;

/// ShortWait is the deadline for faults that only a timeout reveals. Slack is
/// the additional time that any fault may take.
constexpr auto ShortWait = std::chrono::milliseconds(300);
constexpr auto Slack = std::chrono::seconds(1);

/// Signals this process every 300 us, to interrupt its system calls.
class SignalStorm {
public:
  SignalStorm() {
    struct sigaction Ours{};
    Ours.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &Ours, &Before);
    setInterval(300);
  }
  ~SignalStorm() {
    setInterval(0);
    ::sigaction(SIGALRM, &Before, nullptr);
  }

private:
  static void setInterval(suseconds_t Microseconds) {
    const itimerval Every{{0, Microseconds}, {0, Microseconds}};
    ::setitimer(ITIMER_REAL, &Every, nullptr);
  }
  struct sigaction Before{};
};

/// The fixture of tests of one runner. Checks that no descriptor stays open.
class FaultTest : public testing::Test {
protected:
  void SetUp() override { DescriptorsBefore = countOpenDescriptors(); }
  void TearDown() override {
    Runner.reset();
    EXPECT_EQ(countOpenDescriptors(), DescriptorsBefore)
        << "descriptors were left behind";
  }

  template <typename T = float, typename U = double>
  Expected<T> ask(U X = U(1.5)) {
    Runner->populateFeatures(std::pair{"x", X});
    return Runner->tryEvaluate<T>();
  }

  /// Sends \p X and expects an equal reply.
  void expectEcho(float X) {
    Expected<float> Reply = ask(X);
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, X);
  }

  /// Sends a request and expects, within \p Within, an error with the code \p
  /// Code whose message contains \p Mentions.
  template <typename T = float>
  void expectFailure(ErrorCode Code, std::string_view Mentions,
                     Duration Within = Slack) {
    Clock::time_point Start = Clock::now();
    Expected<T> Reply = ask<T>();
    Duration Took = Clock::now() - Start;
    ASSERT_FALSE(Reply) << "a made-up reply: " << *Reply;
    Error E = Reply.takeError();
    EXPECT_EQ(errorCodeName(E.code()), errorCodeName(Code)) << E.str();
    for (std::string_view Part : {Mentions, std::string_view(Peer)})
      EXPECT_NE(E.message().find(Part), std::string::npos)
          << "expected \"" << Part << "\" in: " << E.str();
    EXPECT_LT(Took, Within) << E.str();
  }

  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  /// If not empty, each error's message must contain this text.
  std::string Peer;
  std::unique_ptr<MLModelRunner> Runner;
  std::size_t DescriptorsBefore = 0;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_FAULTS_FAULTTEST_H
