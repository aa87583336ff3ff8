//===- SharedMemoryFaultTest.cpp - Faults of shared memory ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests dead, stopped and lying peers at both ends of shared-memory sessions.
/// Each fault must end in a typed error in time and leave nothing behind.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/SharedMemoryModelRunner.h"
#include "RawModel.h"
#include "Transport/Handshake.h"
#include "Transport/SharedMemoryChannel.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

/// A model side whose steps the test calls one by one. It must run in a Child,
/// because a failed step ends the process.
class RawSharedModel {
public:
  explicit RawSharedModel(const std::string &Name)
      : Listener(must(UnixListener::listen(Name + ".sock"))) {}

  void accept() {
    awaitReadable(Listener.socket());
    posix::UniqueFD Accepted = Listener.accept();
    awaitReadable(Accepted.get());
    Packet Hello;
    must(receivePacket(Accepted.get(), Hello));
    Ends.emplace(must(SharedMemoryEnds::create()));
    Ends->Socket = std::move(Accepted);
  }
  void sendTerms() const {
    sendTerms({Ends->Requests.descriptor(), Ends->Replies.descriptor(),
               Ends->Doorbell.Write.get()});
  }
  void sendTerms(std::vector<int> Descriptors) const {
    if (sendPacket(Ends->Socket.get(), Terms().encode(), Descriptors))
      ::_exit(3);
  }
  void awaitRequest(std::uint32_t Number) const {
    while (Ends->Requests.sequence() != Number)
      ::poll(nullptr, 0, 1);
  }
  /// Replies with \p Length bytes that begin with \p Message.
  void answer(std::uint32_t Number, std::string_view Message,
              std::uint64_t Length) {
    std::memcpy(Ends->Replies.message(), Message.data(), Message.size());
    Ends->Replies.post(Length, Number);
    Ends->Replies.wake();
  }
  void answer(std::uint32_t Number, std::string_view Message) {
    answer(Number, Message, Message.size());
  }

  /// Does all steps above, for the first request.
  void acceptAndAnswer(std::string_view Message) {
    accept();
    sendTerms();
    awaitRequest(1);
    answer(1, Message);
  }

  std::optional<SharedMemoryEnds> Ends;

private:
  UnixListener Listener;
};

class SharedMemoryFault : public FaultTest {
protected:
  SharedMemoryFault() { Peer = "shm:" + Name; }

  void connect(Duration Connect = 20s) {
    TransportOptions Options;
    Options.ConnectTimeout = Connect;
    Options.MaxMessage = 16 << 20;
    Runner = std::make_unique<SharedMemoryModelRunner>(Name, SerDes::Kind::JSON,
                                                       Options);
    Runner->setTimeout(20s);
  }
  Expected<int> ask() { return FaultTest::ask<int>(7); }
  void expectFailure(ErrorCode Code, std::string_view Mentions,
                     Duration Within = Slack) {
    FaultTest::expectFailure<int>(Code, Mentions, Within);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// The model's faults
//===----------------------------------------------------------------------===//

TEST_F(SharedMemoryFault, NoModelIsATimeoutThatSaysWhatToStart) {
  connect(ShortWait);
  expectFailure(ErrorCode::Timeout, "mlbridge.serve", ShortWait + Slack);
}

TEST_F(SharedMemoryFault, AModelThatDiesBeforeTheTermsMayComeBack) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.accept();
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  connect(ShortWait);
  expectFailure(ErrorCode::Timeout, "no process listens", ShortWait + Slack);
}

TEST_F(SharedMemoryFault, AModelThatDiesWhileItIsAskedIsNoticedAtOnce) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.acceptAndAnswer("{\"out\":1}");
    M.awaitRequest(2);
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  connect(2s);
  Expected<int> First = ask();
  ASSERT_TRUE(First) << First.message();
  expectFailure(ErrorCode::PeerClosed, "before it answered", 100ms);
}

TEST_F(SharedMemoryFault, AModelThatDiedBetweenTwoRequestsIsNoticedAtOnce) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.acceptAndAnswer("{\"out\":1}");
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect(2s);
  ASSERT_TRUE(ask());
  Model.kill();
  expectFailure(ErrorCode::PeerClosed, "ended or closed", 100ms);
}

TEST_F(SharedMemoryFault, SignalsHideNeitherDeathNorDeadline) {
  for (const char *Scheme : {"shm:", "pipe:"})
    for (bool Dies : {true, false}) {
      SCOPED_TRACE(Scheme);
      Child Model([&] {
        auto Server = ModelServer::listen(Name);
        if (!Server || !(*Server)->next(Deadline::in(20s)))
          return 5;
        ::raise(Dies ? SIGKILL : SIGSTOP);
        return 0;
      });
      auto Made = createModelRunner(Scheme + Name);
      ASSERT_TRUE(Made) << Made.message();
      Runner = std::move(*Made);
      Runner->setTimeout(Dies ? Duration::max() : Duration(ShortWait));
      SignalStorm Storm;
      Clock::time_point Start = Clock::now();
      EXPECT_EQ(ask().code(),
                Dies ? ErrorCode::PeerClosed : ErrorCode::Timeout);
      EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
    }
}

TEST_F(SharedMemoryFault, AStoppedModelIsATimeout) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.accept();
    M.sendTerms();
    ::raise(SIGSTOP);
    return 0;
  });
  connect();
  Runner->setTimeout(ShortWait);
  expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
}

TEST_F(SharedMemoryFault, AReplyToAnAbandonedRequestIsNeverRead) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.accept();
    M.sendTerms();
    M.awaitRequest(1);
    ::poll(nullptr, 0, 500);
    M.answer(1, "{\"out\":1}");
    M.acceptAndAnswer("{\"out\":2}");
    return 0;
  });
  connect();
  Runner->setTimeout(ShortWait);
  expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
  Runner->setTimeout(20s);
  Expected<int> Reply = ask();
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 2);
}

namespace {

/// A false reply that a model gives to a request.
struct Lie {
  const char *What;
  ErrorCode Code;
  const char *Mentions;
  std::function<void(RawSharedModel &)> Tell;
};
void PrintTo(const Lie &L, std::ostream *OS) { *OS << L.What; }

const Lie Lies[] = {
    {"ALengthBeyondTheMemory", ErrorCode::Malformed, "announced",
     [](RawSharedModel &M) { M.answer(1, "", std::uint64_t(1) << 63); }},
    {"ALengthBeyondTheLimit", ErrorCode::Malformed, "max-message",
     [](RawSharedModel &M) { M.answer(1, "", (16 << 20) + 1); }},
    {"AMoveToNowhere", ErrorCode::Malformed, "expected 1 descriptor, found 0",
     [](RawSharedModel &M) { M.answer(1, "", SharedRegion::Moved); }},
    {"AMoveToSomethingElse", ErrorCode::Malformed, "sealed",
     [](RawSharedModel &M) {
       const int Doorbell = M.Ends->Doorbell.Write.get();
       (void)bool(sendPacket(M.Ends->Socket.get(), "{\"mlbridge\":1}",
                             {&Doorbell, 1}));
       M.answer(1, "", SharedRegion::Moved);
     }},
    {"AMoveWithoutANumber", ErrorCode::Malformed, "moved message 1",
     [](RawSharedModel &M) {
       auto Larger = SharedRegion::create(1 << 21);
       const int Memory = Larger->descriptor();
       (void)bool(
           sendPacket(M.Ends->Socket.get(), "{\"mlbridge\":2}", {&Memory, 1}));
       M.answer(1, "", SharedRegion::Moved);
     }},
    {"AnotherNumber", ErrorCode::Malformed, "answered request 5",
     [](RawSharedModel &M) { M.answer(5, "{\"out\":1}"); }},
    {"OneByteShort", ErrorCode::Malformed, "JSON",
     [](RawSharedModel &M) { M.answer(1, "{\"out\":1}", 8); }},
    {"NoBytes", ErrorCode::Malformed, "JSON",
     [](RawSharedModel &M) { M.answer(1, "", 0); }},
};

class SharedMemoryLie : public SharedMemoryFault,
                        public testing::WithParamInterface<Lie> {};

} // namespace

TEST_P(SharedMemoryLie, IsATypedError) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.accept();
    M.sendTerms();
    M.awaitRequest(1);
    GetParam().Tell(M);
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect();
  expectFailure(GetParam().Code, GetParam().Mentions);
}

INSTANTIATE_TEST_SUITE_P(Model, SharedMemoryLie, testing::ValuesIn(Lies),
                         [](const auto &Info) { return Info.param.What; });

TEST_F(SharedMemoryFault, OnlySealedMemoryOfTheRightLayoutIsUsed) {
  struct Case {
    const char *Mentions;
    std::size_t Size;
    int Seals;
    std::uint64_t Capacity;
    const char *Magic;
  };
  constexpr int Sealed = F_SEAL_SHRINK;
  for (const Case &C :
       {Case{"can still shrink", 1 << 16, 0, 4096, "MLBridge"},
        Case{"bytes, expected", 64, Sealed, 4096, "MLBridge"},
        Case{"does not begin with", 1 << 16, Sealed, 4096, "Somebody"},
        Case{"claims room", 1 << 16, Sealed, 1 << 16, "MLBridge"},
        Case{"claims room", 192 + 8 + 4000 + 63, Sealed, 4000, "MLBridge"},
        Case{"claims room", 1 << 16, Sealed, ~std::uint64_t(0), "MLBridge"}}) {
    SCOPED_TRACE(C.Mentions);
    Child Model([&] {
      RawSharedModel M(Name);
      M.accept();
      posix::UniqueFD Memory(
          ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      const std::uint32_t Versions[2] = {1, 192};
      if (::ftruncate(Memory.get(), static_cast<off_t>(C.Size)) != 0 ||
          ::pwrite(Memory.get(), C.Magic, 8, 0) != 8 ||
          ::pwrite(Memory.get(), Versions, 8, 8) != 8 ||
          ::pwrite(Memory.get(), &C.Capacity, 8, 16) != 8 ||
          ::fcntl(Memory.get(), F_ADD_SEALS, C.Seals) != 0)
        return 5;
      M.sendTerms({Memory.get(), M.Ends->Replies.descriptor(),
                   M.Ends->Doorbell.Write.get()});
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    connect();
    expectFailure(ErrorCode::Malformed, C.Mentions);
  }
}

TEST_F(SharedMemoryFault, TooFewDescriptorsAreNoSession) {
  Child Model([&] {
    RawSharedModel M(Name);
    M.accept();
    M.sendTerms({M.Ends->Requests.descriptor()});
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect();
  expectFailure(ErrorCode::Malformed, "expected 3");
}

//===----------------------------------------------------------------------===//
// The compiler's faults
//===----------------------------------------------------------------------===//

TEST_F(SharedMemoryFault, ACompilerThatDiesDoesNotAffectTheOthers) {
  EchoModel Model(Name);
  for (int Signal : {SIGKILL, SIGSTOP}) {
    Child Compiler([&] {
      SharedMemoryModelRunner Mine(Name);
      Mine.populateFeatures(std::pair{"x", 1});
      if (!Mine.tryEvaluate<int>())
        return 5;
      ::raise(Signal);
      return 0;
    });
    connect();
    for (int I = 0; I < 100; ++I) {
      Expected<int> Reply = ask();
      ASSERT_TRUE(Reply) << Reply.message();
      EXPECT_EQ(*Reply, 7);
    }
  }
}

TEST_F(SharedMemoryFault, ACompilerThatLiesEndsItsOwnSessionOnly) {
  Expected<std::unique_ptr<ModelServer>> Server = ModelServer::listen(Name);
  ASSERT_TRUE(Server) << Server.message();
  for (std::uint64_t Length :
       {std::uint64_t(1) << 63, std::uint64_t(1) << 40, SharedRegion::Moved}) {
    Child Liar([&] {
      Expected<posix::UniqueFD> Socket = tryConnect(Name + ".sock");
      Hello Ours;
      Ours.Transport = "shm";
      Ours.SerDes = "json";
      if (!Socket || sendPacket(Socket->get(), Ours.encode(), {}))
        return 5;
      Packet Theirs;
      pollfd P{Socket->get(), POLLIN, 0};
      ::poll(&P, 1, 60'000);
      if (!receivePacket(Socket->get(), Theirs) ||
          Theirs.Descriptors.size() != 3)
        return 6;
      Expected<SharedRegion> Requests =
          SharedRegion::open(std::move(Theirs.Descriptors[0]), "the server");
      if (!Requests)
        return 7;
      if (Requests->post(Length, 1))
        (void)!::write(Theirs.Descriptors[2].get(), "", 1);
      // Wait until the server closes its end of the socket.
      ::poll(&P, 1, 60'000);
      return 0;
    });
    EXPECT_EQ((*Server)->next(Deadline::in(ShortWait)).code(),
              ErrorCode::Timeout);
    EXPECT_EQ((*Server)->lastSessionError().code(), ErrorCode::Malformed)
        << (*Server)->lastSessionError().str();
    EXPECT_EQ((*Server)->statistics().Open, 0u);
    EXPECT_EQ(Liar.wait(), 0);
  }
}
