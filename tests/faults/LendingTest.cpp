//===- LendingTest.cpp - Lending pages to a pipe ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Large features are sent by lending their pages to the pipe. The model must
/// never see changes that a compiler makes to its memory after a request. If a
/// system forbids lending, the replies must be the same.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "RawModel.h"
#include "Transport/PipeWriter.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

class Lending : public testing::Test {
protected:
  void SetUp() override {
    Expected<posix::Pipe> Made = posix::makeLargePipe();
    ASSERT_TRUE(Made) << Made.message();
    Read = std::move(Made->Read);
    Writer.emplace(std::move(Made->Write));
  }

  ssize_t lend(std::size_t NumBytes) {
    iovec Piece{Memory.data(), NumBytes};
    return Writer->splice({&Piece, 1});
  }
  std::string read(std::size_t NumBytes) {
    std::string Bytes(NumBytes, '\0');
    ssize_t Count = ::read(Read.get(), Bytes.data(), Bytes.size());
    Bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(Count, 0)));
    return Bytes;
  }

  posix::UniqueFD Read;
  std::optional<PipeWriter> Writer;
  std::string Memory = std::string(100'000, 'a');
};

TEST_F(Lending, TheReaderGetsTheBytes) {
  ASSERT_EQ(lend(Memory.size()), ssize_t(Memory.size()));
  EXPECT_EQ(read(Memory.size()), Memory);
}

// If bytes were copied, the tests below would prove nothing.
TEST_F(Lending, NothingIsCopied) {
  ASSERT_EQ(lend(Memory.size()), ssize_t(Memory.size()));
  std::ranges::fill(Memory, 'b');
  EXPECT_EQ(read(Memory.size()), Memory);
}

TEST_F(Lending, UnreadBytesAreTakenBack) {
  ASSERT_EQ(lend(Memory.size()), ssize_t(Memory.size()));
  EXPECT_EQ(read(50'000), std::string(50'000, 'a'));
  Writer->takeBack();
  EXPECT_EQ(read(1), "");
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Lending, AWritersEndTakesBack) {
  ASSERT_EQ(lend(Memory.size()), ssize_t(Memory.size()));
  Writer.reset();
  EXPECT_EQ(read(1), "");
}

TEST_F(Lending, ReturnedBytesAreNotTakenBack) {
  ASSERT_EQ(lend(50'000), 50'000);
  read(50'000);
  Writer->noteAllRead();
  iovec Piece{Memory.data(), 3};
  ASSERT_EQ(Writer->write({&Piece, 1}), 3);
  Writer->takeBack();
  EXPECT_EQ(read(10), "aaa");
}

TEST_F(Lending, AFullPipeTakesAPart) {
  Memory.resize(4 << 20, 'a');
  ssize_t First = lend(Memory.size());
  ASSERT_GT(First, 0);
  ASSERT_LT(First, ssize_t(Memory.size()));
  EXPECT_EQ(lend(Memory.size()), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Lending, AMissingReaderIsAnErrorNotASignal) {
  Read.reset();
  // If SIGPIPE were raised, it would end this process.
  EXPECT_EQ(lend(Memory.size()), -1);
  EXPECT_EQ(errno, EPIPE);
  sigset_t Pending;
  sigpending(&Pending);
  EXPECT_EQ(sigismember(&Pending, SIGPIPE), 0);
}

TEST_F(Lending, TheHostsPendingSignalStays) {
  sigset_t Sigpipe, Before, Pending;
  sigemptyset(&Sigpipe);
  sigaddset(&Sigpipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &Sigpipe, &Before);
  std::raise(SIGPIPE);
  Read.reset();
  EXPECT_EQ(lend(Memory.size()), -1);
  sigpending(&Pending);
  EXPECT_EQ(sigismember(&Pending, SIGPIPE), 1);
  timespec Now{0, 0};
  EXPECT_EQ(sigtimedwait(&Sigpipe, nullptr, &Now), SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &Before, nullptr);
}

/// Forbids vmsplice to this process.
bool forbidVmsplice() {
  sock_filter Program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vmsplice, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog Filter{std::size(Program), Program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &Filter) == 0;
}

TEST_F(Lending, ASandboxMayForbidIt) {
  Child Sandboxed([&] {
    if (!forbidVmsplice())
      return 1;
    if (lend(Memory.size()) != ssize_t(Memory.size()))
      return 2;
    // The pipe holds a copy of the bytes. Changing the original must not change
    // this copy.
    std::ranges::fill(Memory, 'b');
    return read(Memory.size()) == std::string(Memory.size(), 'a') ? 0 : 3;
  });
  EXPECT_EQ(Sandboxed.wait(), 0);
}

TEST(LendingRunner, AnAbandonedRequestIsTakenBack) {
  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  Child Slow([&] {
    RawModel Model(Name);
    Model.awaitConnection();
    Model.awaitHello();
    Model.sendTerms();
    ::poll(nullptr, 0, 800);
    // If the pipe is empty, this exits with the status 4.
    Model.readRequest();
    return 0;
  });
  std::vector<float> Features(50'000, 1.0F);
  PipeModelRunner Runner(Name);
  Runner.setTimeout(300ms);
  Runner.populateFeatures(std::pair{"x", Span<const float>(Features)});
  EXPECT_EQ(Runner.tryEvaluate<float>().code(), ErrorCode::Timeout);
  std::ranges::fill(Features, 2.0F);
  EXPECT_EQ(Slow.wait(), 4);
}

TEST_F(Lending, IsTakenBackWithoutAFreeDescriptor) {
  ASSERT_EQ(lend(64 << 10), 64 << 10);
  rlimit Before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &Before), 0);
  // Leave no free descriptor.
  posix::UniqueFD Next(::dup(Read.get()));
  rlimit Full{static_cast<rlim_t>(Next.get()), Before.rlim_max};
  Next.reset();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &Full), 0);
  EXPECT_EQ(::dup(Read.get()), -1);
  Writer->takeBack();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &Before), 0);
  EXPECT_EQ(read(1), "");
}

TEST(LendingRunner, RequestsMayBeLargerThanThePipe) {
  TemporaryDirectory Directory;
  EchoModel Model(Directory.path("model"));
  PipeModelRunner Runner(Directory.path("model"));
  std::vector<std::int32_t> Features(1'000'000);
  for (int Round = 0; Round < 3; ++Round) {
    for (std::size_t I = 0; I < Features.size(); ++I)
      Features[I] = static_cast<std::int32_t>(I) * (Round + 1);
    Runner.populateFeatures(std::pair{"x", Span<const std::int32_t>(Features)});
    auto Reply = Runner.tryEvaluate<std::vector<std::int32_t>>();
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_TRUE(*Reply == Features);
  }
}

} // namespace
