//===- DescriptorFaultTest.cpp - Descriptors from a peer ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests faults of the descriptors that the other side creates for a session.
/// The other side may send wrong descriptors. It keeps copies, so it may change
/// their flags at any time. The compiler's process may lack room for them.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Transport/ModelServer.h"
#include "RawModel.h"
#include "Transport/SharedMemoryChannel.h"
#include "support/Sanitizers.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

void makeBlocking(int FD) {
  ::fcntl(FD, F_SETFL, ::fcntl(FD, F_GETFL) & ~O_NONBLOCK);
}

class DescriptorFault : public FaultTest {
protected:
  void connect(const std::string &Spec) {
    auto Made = createModelRunner(Spec);
    ASSERT_TRUE(Made) << Made.message();
    Runner = std::move(*Made);
    Runner->setTimeout(ShortWait);
  }
};

//===----------------------------------------------------------------------===//
// Pipes
//===----------------------------------------------------------------------===//

TEST_F(DescriptorFault, AReplyThatDoesNotComeThroughABlockingPipeIsATimeout) {
  Child Model([&] {
    RawModel M(Name);
    M.keepCompilersEnds();
    M.awaitConnection();
    M.awaitHello();
    M.sendTerms();
    M.readRequest();
    makeBlocking(M.compilersReadEnd());
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect("pipe:" + Name);
  expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
}

TEST_F(DescriptorFault, ARequestThatNobodyTakesFromABlockingPipeIsATimeout) {
  Child Model([&] {
    RawModel M(Name);
    M.keepCompilersEnds();
    M.awaitConnection();
    M.awaitHello();
    M.sendTerms();
    for (;;) {
      makeBlocking(M.compilersWriteEnd());
      ::poll(nullptr, 0, 1);
    }
    return 0;
  });
  connect("pipe:" + Name);
  std::vector<double> Large(1 << 20);
  Clock::time_point Start = Clock::now();
  Runner->populateFeatures(std::pair{"x", Span<const double>(Large)});
  EXPECT_EQ(Runner->tryEvaluate<float>().code(), ErrorCode::Timeout);
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

/// A wrong descriptor in place of a session's end.
struct Wrong {
  const char *What;
  int (*Make)();
};
void PrintTo(const Wrong &W, std::ostream *OS) { *OS << W.What; }

int fullEventFD() {
  const int FD = ::eventfd(0, 0);
  const std::uint64_t Full = ~std::uint64_t(1);
  (void)!::write(FD, &Full, sizeof(Full));
  return FD;
}

int pipeEnd(int Which) {
  int Ends[2];
  if (::pipe(Ends) != 0)
    ::_exit(5);
  // The other end is closed, so writing raises SIGPIPE.
  ::close(Ends[1 - Which]);
  return Ends[Which];
}

int socketEnd() {
  int Ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, Ends) != 0)
    ::_exit(5);
  ::close(Ends[0]);
  return Ends[1];
}

const Wrong WrongOnes[] = {
    {"AFullEventFD", fullEventFD},
    {"AnEndToReadFrom", [] { return pipeEnd(0); }},
    {"ASocket", socketEnd},
    {"AFile", [] { return ::open("/dev/null", O_RDWR); }},
    {"AFolder", [] { return ::open("/tmp", O_RDONLY); }},
    {"AnEndlessDevice", [] { return ::open("/dev/zero", O_RDWR); }},
};

class WrongDescriptor : public DescriptorFault,
                        public testing::WithParamInterface<Wrong> {};

/// Accepts a compiler and sends it \p Descriptors, with the newest protocol
/// version.
void acceptAndSend(UnixListener &Server, const std::vector<int> &Descriptors) {
  pollfd P{Server.socket(), POLLIN, 0};
  ::poll(&P, 1, 60'000);
  posix::UniqueFD Socket = Server.accept();
  Packet Hello;
  P.fd = Socket.get();
  ::poll(&P, 1, 60'000);
  if (!receivePacket(Socket.get(), Hello) ||
      sendPacket(Socket.get(), Terms().encode(), Descriptors))
    ::_exit(6);
  ::poll(nullptr, 0, 60'000);
}

TEST_P(WrongDescriptor, IsNoPipe) {
  for (bool IsFirst : {true, false}) {
    Child Model([&] {
      auto Server = UnixListener::listen(Name + ".sock");
      int Ends[2];
      if (!Server || ::pipe2(Ends, O_NONBLOCK) != 0)
        return 5;
      // Replace one end of the pipe.
      Ends[IsFirst ? 0 : 1] = GetParam().Make();
      if (!IsFirst)
        Ends[0] = pipeEnd(0);
      acceptAndSend(*Server, {Ends[0], Ends[1]});
      return 0;
    });
    // The first descriptor is the end from which the compiler reads, so this
    // one is valid.
    if (IsFirst && GetParam().What == std::string("AnEndToReadFrom"))
      continue;
    connect("pipe:" + Name);
    expectFailure(ErrorCode::Malformed, "the end of a pipe");
  }
}

TEST_P(WrongDescriptor, IsNoDoorbell) {
  Child Model([&] {
    auto Server = UnixListener::listen(Name + ".sock");
    auto Ends = SharedMemoryEnds::create();
    if (!Server || !Ends)
      return 5;
    acceptAndSend(*Server, {Ends->Requests.descriptor(),
                            Ends->Replies.descriptor(), GetParam().Make()});
    return 0;
  });
  connect("shm:" + Name);
  expectFailure(ErrorCode::Malformed, "the end of a pipe");
}

INSTANTIATE_TEST_SUITE_P(All, WrongDescriptor, testing::ValuesIn(WrongOnes),
                         [](const auto &Info) { return Info.param.What; });

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// When a request arrives, the model sleeps. Its doorbell is full or has no
/// reader.
TEST_F(DescriptorFault, ABadDoorbellNeitherBlocksNorEndsACompiler) {
  for (bool HasReader : {true, false}) {
    SCOPED_TRACE(HasReader ? "full" : "no reader");
    Child Model([&] {
      auto Server = UnixListener::listen(Name + ".sock");
      auto Ends = SharedMemoryEnds::create();
      if (!Server || !Ends)
        return 5;
      Ends->Requests.setSleeping(true);
      const int Bell = Ends->Doorbell.Write.get();
      std::byte Filling[4096] = {};
      while (HasReader && ::write(Bell, Filling, sizeof(Filling)) > 0)
        ;
      if (!HasReader)
        Ends->Doorbell.Read.reset();
      makeBlocking(Bell);
      acceptAndSend(*Server, {Ends->Requests.descriptor(),
                              Ends->Replies.descriptor(), Bell});
      return 0;
    });
    connect("shm:" + Name);
    expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
  }
}

TEST_F(DescriptorFault, ACompilerThatClosesItsDoorbellCostsNoTime) {
  auto Server = ModelServer::listen(Name);
  ASSERT_TRUE(Server) << Server.message();
  Child Compiler([&] {
    auto Found =
        tryHandshake(Name, "the model", {"shm", 2, /*NumDescriptors=*/3},
                     {"bitstream", ""}, Deadline::in(10s));
    if (!Found || !*Found)
      return 1;
    (**Found).Descriptors[2].reset();
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  EXPECT_EQ((*Server)->next(Deadline::in(ShortWait)).code(),
            ErrorCode::Timeout);
  EXPECT_EQ((*Server)->statistics().Sessions, 1u);
  EXPECT_EQ((*Server)->statistics().Open, 0u)
      << "the server must not poll in a busy loop";
}

/// Sends terms with \p Count descriptors. sendPacket() would refuse that many.
void sendTermsWith(int Socket, std::size_t Count) {
  std::string Text = Terms().encode();
  const std::vector<int> Attached(Count, STDERR_FILENO);
  std::vector<std::byte> Control(CMSG_SPACE(Count * sizeof(int)));
  iovec Vector{Text.data(), Text.size()};
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  Message.msg_control = Control.data();
  Message.msg_controllen = Control.size();
  cmsghdr *Header = CMSG_FIRSTHDR(&Message);
  Header->cmsg_level = SOL_SOCKET;
  Header->cmsg_type = SCM_RIGHTS;
  Header->cmsg_len = CMSG_LEN(Count * sizeof(int));
  std::memcpy(CMSG_DATA(Header), Attached.data(), Count * sizeof(int));
  if (::sendmsg(Socket, &Message, MSG_NOSIGNAL) < 0)
    ::_exit(6);
}

/// The kernel reports surplus descriptors and a lack of room in the same way.
TEST_F(DescriptorFault, TooManyDescriptorsAreThePeersFault) {
  for (std::size_t Count : {3, 4, 5, 6}) {
    SCOPED_TRACE(Count);
    Child Model([&] {
      auto Server = UnixListener::listen(Name + ".sock");
      if (!Server)
        return 5;
      pollfd P{Server->socket(), POLLIN, 0};
      ::poll(&P, 1, 60'000);
      posix::UniqueFD Socket = Server->accept();
      sendTermsWith(Socket.get(), Count);
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    connect("pipe:" + Name);
    expectFailure(ErrorCode::Malformed, "descriptors");
  }
}

//===----------------------------------------------------------------------===//
// Limits of the process
//===----------------------------------------------------------------------===//

void setLimit(int Which, rlim_t Value) {
  rlimit Limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(Which), &Limit) != 0)
    ::_exit(7);
  Limit.rlim_cur = Value;
  if (::setrlimit(static_cast<__rlimit_resource>(Which), &Limit) != 0)
    ::_exit(7);
}

/// Returns 0 (an exit status for a Child) if a request to \p Runner fails with
/// \p Code and a message that contains \p Mentions.
int failsWith(MLModelRunner &Runner, const std::vector<double> &X,
              ErrorCode Code, std::string_view Mentions) {
  Runner.populateFeatures(std::pair{"x", Span<const double>(X)});
  auto Reply = Runner.tryEvaluate<std::vector<double>>();
  if (Reply)
    return 1;
  if (Reply.code() == Code &&
      Reply.message().find(Mentions) != std::string_view::npos)
    return 0;
  std::fprintf(stderr, "found: %s\n", Reply.takeError().str().c_str());
  return 2;
}

TEST_F(DescriptorFault, NoRoomForASessionsDescriptorsIsReported) {
  EchoModel Model(Name);
  for (const char *Scheme : {"pipe:", "shm:"})
    for (int Free = 1;; ++Free) {
      SCOPED_TRACE(Scheme + (" with " + std::to_string(Free)));
      Child Compiler([&] {
        auto Made = createModelRunner(Scheme + Name + "?connect=5s");
        // The socket gets the first free descriptor.
        const int Next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        setLimit(RLIMIT_NOFILE, rlim_t(Next) + rlim_t(Free));
        ::close(Next);
        (**Made).populateFeatures(std::pair{"x", 1.0});
        if ((**Made).tryEvaluate<double>())
          return 100;
        return failsWith(**Made, {1.0}, ErrorCode::System, "ulimit -n");
      });
      const int Status = Compiler.wait();
      if (Status == 100) {
        EXPECT_GT(Free, 3);
        break;
      }
      ASSERT_EQ(Status, 0);
    }
}

TEST_F(DescriptorFault, AThreadThatOutlivesTheFirstOneIsServed) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  EchoModel Model(Name);
  for (const char *Scheme : {"pipe:", "shm:"}) {
    SCOPED_TRACE(Scheme);
    Child Compiler([&] {
      const std::string Own =
          "/proc/self/fd/" +
          std::to_string(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      std::thread([&, Own] {
        // When the first thread ends, its descriptors close.
        while (::access(Own.c_str(), F_OK) == 0)
          std::this_thread::yield();
        auto Made = createModelRunner(Scheme + Name + "?connect=5s");
        (**Made).populateFeatures(std::pair{"x", 1.0});
        Expected<double> Reply = (**Made).tryEvaluate<double>();
        if (!Reply)
          std::fprintf(stderr, "%s\n", Reply.takeError().str().c_str());
        ::_exit(Reply ? 0 : 4);
      }).detach();
      // pthread_exit() would throw an exception, so use the system call.
      ::syscall(SYS_exit, 0);
      return 5;
    });
    EXPECT_EQ(Compiler.wait(), 0);
  }
}

TEST_F(DescriptorFault, NothingIsOpenedInPlaceOfTheStandardStreams) {
  EchoModel Model(Name);
  for (const std::string &Spec : {"pipe:" + Name, "shm:" + Name,
                                  "record:" + Name + ".log|pipe:" + Name}) {
    SCOPED_TRACE(Spec);
    Child Compiler([&] {
      for (int FD : {0, 1, 2})
        ::close(FD);
      auto Made = createModelRunner(Spec + "?connect=5s");
      if (!Made)
        return 3;
      (**Made).populateFeatures(std::pair{"x", 1.0});
      if (!(**Made).tryEvaluate<double>())
        return 4;
      for (int FD : {0, 1, 2})
        if (::fcntl(FD, F_GETFD) >= 0)
          return 10 + FD;
      return 0;
    });
    EXPECT_EQ(Compiler.wait(), 0);
  }
}

TEST_F(DescriptorFault, ALogBeyondTheFileSizeLimitIsAnErrorNotASignal) {
  EchoModel Model(Name);
  Child Compiler([&] {
    auto Made = createModelRunner("record:" + Name + ".log|pipe:" + Name);
    setLimit(RLIMIT_FSIZE, 1000);
    for (int I = 0; I < 100; ++I) {
      (**Made).populateFeatures(std::pair{"x", 1.0});
      if (!(**Made).tryEvaluate<double>())
        return 3;
    }
    const Error E = (**Made).flush();
    std::fprintf(stderr, "found: %s\n", E.str().c_str());
    return E.code() == ErrorCode::System ? 0 : 4;
  });
  EXPECT_EQ(Compiler.wait(), 0);
  EXPECT_LE(std::filesystem::file_size(Name + ".log"), 1000U);
}

TEST_F(DescriptorFault, ARootModelServesCompilersOfOtherUsers) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become another user";
  EchoModel Model(Name);
  for (const char *Scheme : {"pipe:", "shm:"}) {
    SCOPED_TRACE(Scheme);
    auto Made = createModelRunner(Scheme + Name);
    // Another user can reach the model only if its owner permits access to the
    // folder and the socket.
    (**Made).populateFeatures(std::pair{"x", 1.0});
    ASSERT_TRUE((**Made).tryEvaluate<double>());
    ::chmod(std::filesystem::path(Name).parent_path().c_str(), 0755);
    ::chmod((Name + ".sock").c_str(), 0666);
    Child Compiler([&] {
      constexpr uid_t Nobody = 65534;
      if (::setresuid(Nobody, Nobody, Nobody) != 0)
        return 3;
      auto Own = createModelRunner(Scheme + Name + "?connect=5s");
      (**Own).populateFeatures(std::pair{"x", 2.0});
      Expected<double> Reply = (**Own).tryEvaluate<double>();
      if (!Reply)
        ADD_FAILURE() << Reply.message();
      return Reply ? 0 : 4;
    });
    EXPECT_EQ(Compiler.wait(), 0);
  }
}

TEST_F(DescriptorFault, AMessageBeyondTheFileSizeLimitIsAnErrorNotASignal) {
  EchoModel Model(Name);
  Child Compiler([&] {
    auto Made = createModelRunner("shm:" + Name);
    (**Made).populateFeatures(std::pair{"x", 1.0});
    if (!(**Made).tryEvaluate<double>())
      return 3;
    setLimit(RLIMIT_FSIZE, 1 << 20);
    const std::vector<double> Large(1 << 18);
    if (int Status = failsWith(**Made, Large, ErrorCode::System, "ulimit -f"))
      return Status;
    // The session continues after the failure.
    (**Made).populateFeatures(std::pair{"x", 1.0});
    return (**Made).tryEvaluate<double>() ? 0 : 4;
  });
  EXPECT_EQ(Compiler.wait(), 0);
}

} // namespace
