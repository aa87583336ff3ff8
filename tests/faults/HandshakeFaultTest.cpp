//===- HandshakeFaultTest.cpp - Handshake faults --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests faults before the first request: slow foreign compilers, models of
/// other users, servers that start and stop, and processes that fork.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "MLCompilerBridge/Transport/ModelServer.h"
#include "RawModel.h"

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

class HandshakeFault : public testing::Test {
protected:
  TransportOptions connectWithin(Duration Wait) const {
    TransportOptions Options;
    Options.ConnectTimeout = Wait;
    return Options;
  }
  template <typename T = float>
  static Expected<T> ask(MLModelRunner &Runner, T X) {
    Runner.populateFeatures(std::pair{"x", X});
    return Runner.tryEvaluate<T>();
  }

  TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
};

/// A server. The tests open its FIFOs, as a foreign compiler does.
class BareListener : public HandshakeFault {
protected:
  void SetUp() override {
    ModelServerOptions Options;
    Options.PeerTimeout = ShortWait;
    Model.emplace(Name, Options);
  }

  posix::UniqueFD open(const char *Suffix, int Mode) const {
    return posix::UniqueFD(
        ::open((Name + Suffix).c_str(), Mode | O_NONBLOCK | O_CLOEXEC));
  }
  posix::FileIdentity listener() const {
    return posix::FileIdentity::ofPath(Name + ".in");
  }
  /// True if the server makes new FIFOs for the next compiler within \p Wait.
  bool isRenewed(const posix::FileIdentity &Before, Duration Wait) const {
    for (Deadline Until = Deadline::in(Wait); !Until.expired();
         std::this_thread::sleep_for(5ms))
      if (posix::FileIdentity Now = listener();
          Now.Inode != 0 && !Now.isSameAs(Before))
        return true;
    return false;
  }

  std::optional<EchoModel> Model;
};

} // namespace

static std::chrono::microseconds cpuTime() {
  rusage Usage{};
  ::getrusage(RUSAGE_SELF, &Usage);
  auto Of = [](const timeval &T) {
    return std::chrono::seconds(T.tv_sec) +
           std::chrono::microseconds(T.tv_usec);
  };
  return Of(Usage.ru_utime) + Of(Usage.ru_stime);
}

TEST_F(BareListener, ASlowCompilerBlocksNoOther) {
  posix::FileIdentity Before = listener();
  posix::UniqueFD In = open(".in", O_RDONLY), Out = open(".out", O_WRONLY);
  ASSERT_TRUE(In && Out);
  EXPECT_TRUE(isRenewed(Before, 2s));
  // The session has no request for longer than PeerTimeout.
  std::this_thread::sleep_for(2 * ShortWait);
  pollfd FD{Out.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&FD, 1, 0), 1);
  EXPECT_FALSE(FD.revents & POLLERR) << "its session is over";
}

TEST_F(BareListener, ACompilerThatOpensOneFifoIsDropped) {
  posix::FileIdentity Before = listener();
  posix::UniqueFD In = open(".in", O_RDONLY);
  ASSERT_TRUE(In);
  EXPECT_FALSE(isRenewed(Before, ShortWait / 2))
      << "it may still open the other";
  EXPECT_TRUE(isRenewed(Before, ShortWait + Slack));
  EXPECT_NE(Model->stop().lastSessionError().message().find("did not open"),
            std::string::npos);
}

TEST_F(BareListener, ASilentCompilerCostsNoTime) {
  posix::UniqueFD In = open(".in", O_RDONLY), Out = open(".out", O_WRONLY);
  ASSERT_TRUE(In && Out);
  std::this_thread::sleep_for(100ms);
  auto Before = cpuTime();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(cpuTime() - Before, 250ms) << "the server does not sleep";
}

TEST_F(HandshakeFault, TheCallersTimeoutHoldsForTheFirstRequest) {
  Child Silent([&] {
    RawModel Model(Name);
    Model.acceptAndReadRequest();
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  auto Runner = createModelRunner(
      "record:/dev/null?timeout=300ms|pipe:" + Name + "?timeout=20s");
  ASSERT_TRUE(Runner) << Runner.message();
  Clock::time_point Start = Clock::now();
  EXPECT_EQ(ask(**Runner, 1.0F).code(), ErrorCode::Timeout);
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

TEST_F(HandshakeFault, AnAbsentModelIsAwaitedOnce) {
  for (const char *Scheme : {"pipe:", "shm:"}) {
    auto Runner = createModelRunner(Scheme + Name + "?connect=300ms");
    ASSERT_TRUE(Runner) << Runner.message();
    Clock::time_point Start = Clock::now();
    for (int I = 0; I < 300; ++I)
      EXPECT_EQ(ask(**Runner, 1.0F).code(), ErrorCode::Timeout);
    EXPECT_GE(Clock::now() - Start, ShortWait);
    EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
    EXPECT_NE(ask(**Runner, 1.0F).message().find("next attempt in"),
              std::string_view::npos);
    // The runner waits longer and longer between attempts, but must connect to
    // a model that starts later within a second.
    EchoModel Late(Name);
    Expected<float> Reply = ask(**Runner, 2.0F);
    while (!Reply && Clock::now() - Start < 5s) {
      std::this_thread::sleep_for(20ms);
      Reply = ask(**Runner, 2.0F);
    }
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, 2.0F);
    EXPECT_LT(Clock::now() - Start, ShortWait + 1s + Slack);
  }
}

TEST_F(HandshakeFault, AModelThatGoesIsAwaitedOnce) {
  std::optional<EchoModel> Model(std::in_place, Name);
  auto Runner = createModelRunner("pipe:" + Name + "?connect=300ms");
  ASSERT_TRUE(Runner) << Runner.message();
  ASSERT_TRUE(ask(**Runner, 1.0F));
  Model.reset();
  EXPECT_EQ(ask(**Runner, 1.0F).code(), ErrorCode::PeerClosed);
  Clock::time_point Start = Clock::now();
  for (int I = 0; I < 10; ++I)
    EXPECT_EQ(ask(**Runner, 1.0F).code(), ErrorCode::Timeout);
  EXPECT_GE(Clock::now() - Start, ShortWait) << "it may be restarted";
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

TEST_F(HandshakeFault, ABusyModelHasOnlyTheTimeout) {
  for (const char *Scheme : {"pipe:", "shm:"}) {
    // The model is busy with the first request when the next ones arrive.
    Child Busy([&] {
      auto Opened = openLocalListener(Name);
      if (!Opened)
        return 5;
      auto Model = serverOf(std::move(*Opened));
      auto Request = Model->next(Deadline::in(10s));
      std::this_thread::sleep_for(2s);
      while (Request) {
        (void)Model->reply(Request->Features);
        Request = Model->next(Deadline::in(10s));
      }
      return 0;
    });
    auto Runner = createModelRunner(Scheme + Name + "?timeout=300ms");
    ASSERT_TRUE(Runner) << Runner.message();
    Clock::time_point Start = Clock::now();
    for (int I = 0; I < 2; ++I)
      EXPECT_EQ(ask(**Runner, 1.0F).code(), ErrorCode::Timeout);
    EXPECT_LT(Clock::now() - Start, 2 * ShortWait + 1s);
    // The runner reaches the model when the model is no longer busy.
    Expected<float> Reply = ask(**Runner, 2.0F);
    while (!Reply && Clock::now() - Start < 20s) {
      std::this_thread::sleep_for(20ms);
      Reply = ask(**Runner, 2.0F);
    }
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, 2.0F);
  }
}

namespace {

/// A server's reply to a hello, instead of terms.
struct BadTerms {
  const char *What;
  std::string Packet;
  ErrorCode Code;
  std::string Mentions;
};
void PrintTo(const BadTerms &Bad, std::ostream *OS) { *OS << Bad.What; }

const BadTerms AllBadTerms[] = {
    {"AnUnknownVersion", R"({"mlbridge":7})", ErrorCode::Unsupported,
     "version 7"},
    {"AnOldVersion", R"({"mlbridge":0})", ErrorCode::Unsupported, "version 0"},
    {"Null", "null", ErrorCode::Malformed, "null"},
    {"ANullVersion", R"({"mlbridge":null})", ErrorCode::Malformed, "mlbridge"},
    {"NoVersion", "{}", ErrorCode::Malformed, "version"},
    {"ADoubledKey", R"({"mlbridge":2,"mlbridge":2})", ErrorCode::Malformed,
     "twice"},
    {"ADoubledUnknownKey", R"({"mlbridge":2,"a":1,"a":1})",
     ErrorCode::Malformed, "twice"},
    {"Nothing", " ", ErrorCode::Malformed, "JSON"},
    {"TooLong", std::string(5000, ' '), ErrorCode::Malformed, "4096"},
    {"EscapeSequences", "{\"mlbridge\":2,\"refused\":\"\\u001b[2Jno\"}",
     ErrorCode::Unsupported, "\\x1b[2Jno"},
    {"ALongRefusal",
     "{\"mlbridge\":2,\"refused\":\"" + std::string(3900, 'n') + "\"}",
     ErrorCode::Unsupported, "..."},
};

class BadTermsFault : public FaultTest,
                      public testing::WithParamInterface<BadTerms> {};

} // namespace

TEST_P(BadTermsFault, AreATypedError) {
  for (const char *Scheme : {"pipe:", "shm:"}) {
    Child Model([&] {
      auto Server = UnixListener::listen(Name + ".sock");
      pollfd P{Server->socket(), POLLIN, 0};
      ::poll(&P, 1, 60'000);
      posix::UniqueFD Socket = Server->accept();
      (void)bool(sendPacket(Socket.get(), GetParam().Packet, {}));
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    auto Made = createModelRunner(Scheme + Name + "?connect=20s");
    ASSERT_TRUE(Made) << Made.message();
    Runner = std::move(*Made);
    Peer = Scheme + Name;
    Expected<float> Reply = ask();
    EXPECT_LT(Reply.message().size(), 1500u);
    Runner->setTimeout(20s);
    Model.kill();
    std::filesystem::remove(Name + ".sock");
    EXPECT_EQ(Reply.code(), GetParam().Code) << Reply.message();
    for (const std::string &Part : {GetParam().Mentions, Peer})
      EXPECT_NE(Reply.message().find(Part), std::string_view::npos)
          << Reply.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadTermsFault, testing::ValuesIn(AllBadTerms),
                         [](const auto &Info) { return Info.param.What; });

TEST_F(HandshakeFault, ImpossibleNamesAreErrorsAtOnce) {
  for (const std::string &Bad :
       {Directory.path(std::string(252, 'n')), std::string(100'000, 'n'),
        Directory.path("a\x1b[2J") + std::string(5000, '/') + "b"})
    for (const char *Scheme : {"pipe:", "shm:"}) {
      auto Runner = createModelRunner(Scheme + Bad + "?connect=20s");
      ASSERT_TRUE(Runner) << Runner.message();
      Clock::time_point Start = Clock::now();
      Expected<float> Reply = ask(**Runner, 1.0F);
      EXPECT_EQ(Reply.code(), ErrorCode::System) << Reply.message();
      EXPECT_LT(Clock::now() - Start, Slack);
      EXPECT_LT(Reply.message().size(), 1000u);
      EXPECT_EQ(Reply.message().find('\x1b'), std::string_view::npos);
      EXPECT_LT((**Runner).describe().size(), 300u);
      auto Server = ModelServer::listen(Bad);
      ASSERT_FALSE(Server);
      EXPECT_LT(Server.message().size(), 1000u);
    }
}

TEST_F(HandshakeFault, AModelsErrorIsBoundedAndPrintable) {
  Child Model([&] {
    auto Server = ModelServer::listen(Name);
    for (;;)
      if ((*Server)->next(Deadline::in(20s)))
        (void)bool((*Server)->replyError("\x1b[2Jbroken " +
                                         std::string(20 << 20, 'x')));
    return 0;
  });
  for (const char *Format : {"bitstream", "json"}) {
    auto Runner =
        createModelRunner("pipe:" + Name + "?connect=20s&serdes=" + Format);
    ASSERT_TRUE(Runner) << Runner.message();
    Expected<float> Reply = ask(**Runner, 1.0F);
    EXPECT_EQ(Reply.code(), ErrorCode::Model);
    EXPECT_LT(Reply.message().size(), 5000u);
    EXPECT_NE(Reply.message().find("\\x1b[2Jbroken"), std::string_view::npos);
  }
}

TEST_F(HandshakeFault, ABareModelMayBeFollowedByOneOfOurs) {
  for (SerDes::Kind Format : {SerDes::Kind::Bitstream, SerDes::Kind::JSON}) {
    RawBareModel::makeFifos(Name);
    Child Foreign([&] {
      RawBareModel Model(Name);
      Model.readRequest();
      Model.writeFrame(Format == SerDes::Kind::JSON
                           ? std::string_view("{\"out\":1.0}")
                           : std::string_view("\0\0\x80\x3f", 4));
      return 0;
    });
    PipeModelRunner Runner(Name, Format, connectWithin(20s));
    Expected<float> First = ask(Runner, 3.0F);
    ASSERT_TRUE(First) << First.message();
    EXPECT_EQ(*First, 1.0F);
    EXPECT_EQ(Foreign.wait(), 0);
    EchoModel Ours(Name);
    EXPECT_EQ(ask(Runner, 3.0F).code(), ErrorCode::PeerClosed);
    Expected<float> Second = ask(Runner, 3.0F);
    ASSERT_TRUE(Second) << Second.message();
    EXPECT_EQ(*Second, 3.0F);
  }
}

TEST_F(HandshakeFault, OurServerIsNotTakenForABareOne) {
  // A killed server has left its FIFOs, and a new server starts while the
  // compiler connects.
  for (int Round = 0; Round < 40; ++Round) {
    RawBareModel::makeFifos(Name);
    std::optional<EchoModel> Model;
    std::thread Later([&] {
      std::this_thread::sleep_for(Round * 250us);
      Model.emplace(Name);
    });
    PipeModelRunner Runner(Name, SerDes::Kind::JSON, connectWithin(5s));
    Runner.setTimeout(5s);
    Expected<float> Reply = ask(Runner, 2.0F);
    Later.join();
    ASSERT_TRUE(Reply) << "round " << Round << ": " << Reply.message();
    EXPECT_EQ(*Reply, 2.0F);
  }
}

TEST_F(HandshakeFault, AnotherUsersModelIsNotAsked) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "needs root, to become another user";
  ASSERT_EQ(::chmod(Directory.path().c_str(), 0777), 0);
  constexpr uid_t Nobody = 65534;
  auto Refused = [&](std::string_view Mentions) {
    PipeModelRunner Runner(Name, SerDes::Kind::Bitstream, connectWithin(10s));
    Expected<float> Reply = ask(Runner, 1.0F);
    EXPECT_EQ(Reply.code(), ErrorCode::System) << Reply.message();
    EXPECT_NE(Reply.message().find(Mentions), std::string::npos)
        << Reply.message();
  };
  {
    Child Theirs([&] {
      if (::setuid(Nobody) != 0)
        return 9;
      RawModel Model(Name);
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    Refused("another user listens");
  }
  std::filesystem::remove(Name + ".sock");
  Child Theirs([&] {
    if (::setuid(Nobody) != 0)
      return 9;
    RawBareModel::makeFifos(Name);
    RawBareModel Model(Name);
    return 0;
  });
  Refused("belongs to another user");
}

TEST_F(HandshakeFault, AForkedChildRemovesNothing) {
  Expected<std::unique_ptr<ModelServer>> Server = ModelServer::listen(Name);
  ASSERT_TRUE(Server) << Server.message();
  Child Forked([&] {
    Server->reset();
    return 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
  for (const char *Suffix : {".sock", ".in", ".out"})
    EXPECT_TRUE(std::filesystem::exists(Name + Suffix)) << Suffix;
  Server->reset();
  for (const char *Suffix : {".sock", ".in", ".out"})
    EXPECT_FALSE(std::filesystem::exists(Name + Suffix)) << Suffix;
}
