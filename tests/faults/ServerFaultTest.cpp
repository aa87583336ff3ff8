//===- ServerFaultTest.cpp - Faults of a server's compilers ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests faults of compilers, as the model side sees them. Also tests that each
/// of many concurrent compilers gets its own replies, whatever the other
/// compilers do.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "MLCompilerBridge/Transport/ModelServer.h"
#include "MLCompilerBridge/Transport/PipeTransport.h"
#include "Support/Posix.h"
#include "Transport/Handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <poll.h>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

class ServerFault : public FaultTest {
protected:
  void SetUp() override {
    FaultTest::SetUp();
    listen(ShortWait);
  }
  void listen(Duration PeerTimeout) {
    Server.reset();
    ModelServerOptions Options;
    Options.PeerTimeout = PeerTimeout;
    Expected<std::unique_ptr<ModelServer>> Listening =
        ModelServer::listen(Name, Options);
    ASSERT_TRUE(Listening) << Listening.takeError().str();
    Server = std::move(*Listening);
  }
  void TearDown() override {
    Server.reset();
    for (const char *Suffix : {".sock", ".in", ".out"})
      EXPECT_FALSE(std::filesystem::exists(Name + Suffix))
          << Suffix << " was left behind";
    FaultTest::TearDown();
  }

  Expected<ModelServer::Request> next(Duration Within = 20s) {
    return Server->next(Deadline::in(Within));
  }

  /// Starts a compiler that sends \p Number and exits with 0 if the reply is
  /// the same number.
  std::unique_ptr<Child> compiler(int Number) {
    return std::make_unique<Child>([this, Number] {
      PipeModelRunner R(Name);
      R.populateFeatures(std::pair{"x", Number});
      Expected<int> Reply = R.tryEvaluate<int>();
      return Reply && *Reply == Number ? 0 : 1;
    });
  }

  std::unique_ptr<ModelServer> Server;
};

TEST_F(ServerFault, CompilerKilledWhileIdleIsForgotten) {
  for (auto Format : {SerDes::Kind::Bitstream, SerDes::Kind::JSON}) {
    Child Idle([&] {
      PipeModelRunner R(Name, Format);
      R.populateFeatures(std::pair{"x", 1});
      (void)bool(R.tryEvaluate<int>());
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    EXPECT_EQ(Request->Pid, Idle.pid());
    ASSERT_FALSE(Server->reply(Request->Features));
    Idle.kill();
    auto Next = compiler(2);
    Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    EXPECT_EQ(Request->Pid, Next->pid());
    ASSERT_FALSE(Server->reply(Request->Features));
    EXPECT_EQ(Next->wait(), 0);
    EXPECT_FALSE(Server->lastSessionError())
        << Server->lastSessionError().str();
  }
  EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(Server->statistics().Open, 0u);
}

TEST_F(ServerFault, ReplyForADeadCompilerNeverReachesTheNext) {
  auto First = compiler(1);
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  First->kill();
  // This is the reply that the model computed for the first compiler.
  FeatureSet Stale;
  Stale.set("out", 1);
  EXPECT_EQ(Server->reply(Stale.tensors()).code(), ErrorCode::PeerClosed);
  // The features of the request stay valid, so that an error message can use
  // them.
  ASSERT_EQ(Request->Features.size(), 1u);
  EXPECT_EQ(Request->Features.front().Name, "x");
  EXPECT_EQ(*Request->Features.front().as<int>()->begin(), 1);
  auto Second = compiler(2);
  Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  ASSERT_FALSE(Server->reply(Request->Features));
  EXPECT_EQ(Second->wait(), 0);
}

TEST_F(ServerFault, RequestWithoutAReplyGetsAnError) {
  Child Compiler([&] {
    PipeModelRunner R(Name);
    R.populateFeatures(std::pair{"x", 1});
    return R.tryEvaluate<int>().code() == ErrorCode::Model ? 0 : 1;
  });
  ASSERT_TRUE(next());
  EXPECT_EQ(next(500ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(Compiler.wait(), 0);
}

TEST_F(ServerFault, AdviceThatCannotBeSentIsReplacedByTheReason) {
  const std::uint8_t Two = 2;
  TensorView NoBool;
  NoBool.Name = "out";
  NoBool.Type = ElementType::Bool;
  NoBool.Data = &Two;
  NoBool.NumBytes = 1;
  for (auto Format : {SerDes::Kind::Bitstream, SerDes::Kind::JSON}) {
    Child Compiler([&] {
      PipeModelRunner R(Name, Format);
      R.populateFeatures(std::pair{"x", 1});
      Expected<bool> First = R.tryEvaluate<bool>();
      if (First.code() != ErrorCode::Model ||
          First.message().find("could not be sent") == std::string_view::npos)
        return 1;
      R.populateFeatures(std::pair{"x", 2});
      Expected<int> Second = R.tryEvaluate<int>();
      return Second && *Second == 2 ? 0 : 2;
    });
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    const std::uint64_t Session = Request->Session;
    EXPECT_TRUE(Server->reply(Span<const TensorView>(&NoBool, 1)));
    EXPECT_TRUE(Server->isOpen(Session));
    Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    EXPECT_EQ(Request->Session, Session);
    ASSERT_FALSE(Server->reply(Request->Features));
    EXPECT_EQ(Compiler.wait(), 0);
    EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
    EXPECT_FALSE(Server->isOpen(Session));
    EXPECT_FALSE(Server->lastSessionError())
        << Server->lastSessionError().str();
  }
}

TEST_F(ServerFault, ALongErrorIsCutBetweenTwoCharacters) {
  Child Compiler([&] {
    PipeModelRunner R(Name);
    for (int Offset = 0; Offset < 3; ++Offset) {
      R.populateFeatures(std::pair{"x", Offset});
      Expected<int> Reply = R.tryEvaluate<int>();
      if (Reply.code() != ErrorCode::Model ||
          Reply.message().find("\u20ac\u20ac") == std::string_view::npos)
        return 1;
    }
    return 0;
  });
  for (int Offset = 0; Offset < 3; ++Offset) {
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    std::string Long(static_cast<std::size_t>(Offset), 'a');
    while (Long.size() < 100'000)
      Long += "\u20ac";
    EXPECT_FALSE(Server->replyError(Long));
  }
  EXPECT_EQ(Compiler.wait(), 0);
}

TEST_F(ServerFault, TwoCompilersAtOnceAreNotMixedUp) {
  std::vector<std::unique_ptr<Child>> Compilers;
  for (int I = 0; I < 8; ++I)
    Compilers.push_back(std::make_unique<Child>([this, I] {
      PipeModelRunner R(Name,
                        I % 2 ? SerDes::Kind::JSON : SerDes::Kind::Bitstream);
      for (int K = 0; K < 50; ++K) {
        R.populateFeatures(std::pair{"x", 1000 * I + K});
        Expected<int> Reply = R.tryEvaluate<int>();
        if (!Reply || *Reply != 1000 * I + K)
          return 1;
      }
      return 0;
    }));
  for (int Served = 0; Served < 8 * 50; ++Served) {
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    ASSERT_FALSE(Server->reply(Request->Features));
  }
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
}

TEST_F(ServerFault, FiftyCompilersOneAfterAnother) {
  std::size_t Descriptors = countOpenDescriptors();
  for (int I = 0; I < 50; ++I) {
    auto C = compiler(I);
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    EXPECT_EQ(Request->Session, std::uint64_t(I + 1));
    ASSERT_FALSE(Server->reply(Request->Features));
    EXPECT_EQ(C->wait(), 0);
  }
  EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(countOpenDescriptors(), Descriptors);
}

TEST_F(ServerFault, StoppedCompilerDoesNotHoldUpOthers) {
  // The compiler is stopped before it reads its reply. The reply does not fit
  // into its pipe.
  auto Stopped = compiler(1);
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  Stopped->signal(SIGSTOP);
  std::vector<float> Huge(1 << 22);
  FeatureSet Reply;
  Reply.set("out", Span<const float>(Huge));
  Clock::time_point Start = Clock::now();
  ASSERT_FALSE(Server->reply(Reply.tensors()));
  auto Other = compiler(2);
  Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  ASSERT_FALSE(Server->reply(Request->Features));
  EXPECT_EQ(Other->wait(), 0);
  EXPECT_LT(Clock::now() - Start, ShortWait) << "it held up the other";

  EXPECT_EQ(next(ShortWait + Slack).code(), ErrorCode::Timeout);
  EXPECT_EQ(Server->lastSessionError().code(), ErrorCode::Timeout);
  EXPECT_NE(Server->lastSessionError().message().find("did not read its reply"),
            std::string_view::npos)
      << Server->lastSessionError().str();
  EXPECT_EQ(Server->statistics().Open, 0u);
}

TEST_F(ServerFault, SlowCompilerGetsItsWholeLongReply) {
  constexpr std::size_t Length = 1 << 22;
  // On a busy machine, a compiler may be idle for longer than ShortWait.
  listen(20s);
  Child Slow([&] {
    PipeModelRunner R(Name);
    R.populateFeatures(std::pair{"x", 1});
    Expected<std::vector<float>> Reply = R.tryEvaluate<std::vector<float>>();
    if (!Reply || Reply->size() != Length)
      return 1;
    for (std::size_t I = 0; I < Length; ++I)
      if ((*Reply)[I] != float(I))
        return 2;
    // The session must still work.
    R.populateFeatures(std::pair{"x", 7});
    Expected<int> Next = R.tryEvaluate<int>();
    return Next && *Next == 7 ? 0 : 3;
  });
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  Slow.signal(SIGSTOP);
  std::vector<float> Values(Length);
  std::iota(Values.begin(), Values.end(), 0.0f);
  FeatureSet Reply;
  Reply.set("out", Span<const float>(Values));
  ASSERT_FALSE(Server->reply(Reply.tensors()));
  // Bytes that are not sent yet must not depend on the model's memory.
  std::ranges::fill(Values, -1.0f);
  EXPECT_EQ(next(ShortWait / 3).code(), ErrorCode::Timeout);
  Slow.signal(SIGCONT);
  Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  ASSERT_FALSE(Server->reply(Request->Features));
  EXPECT_EQ(Slow.wait(), 0);
}

TEST_F(ServerFault, SlowReaderIsNotTakenForDead) {
  // The compiler reads a long reply in small parts. This takes twice as long as
  // a peer may be idle. The compiler then exits.
  constexpr auto Pause = 30ms;
  constexpr int NumParts = 2 * ShortWait / Pause;
  Child Slow([&] {
    auto Connected =
        tryHandshake(Name, "the model", {"pipe", 1, /*NumDescriptors=*/2},
                     {"bitstream", ""}, Deadline::in(10s));
    if (!Connected || !*Connected)
      return 1;
    std::vector<posix::UniqueFD> &Ends = (**Connected).Descriptors;
    const std::string_view Request = "{\"features\":[]}\n\n";
    const std::uint64_t Length = Request.size();
    const std::uint64_t Prefix[] = {1, Length};
    if (::write(Ends[1].get(), Prefix, 16) != 16 ||
        ::write(Ends[1].get(), Request.data(), Length) != ssize_t(Length))
      return 2;
    pollfd Answered{Ends[0].get(), POLLIN, 0};
    if (::poll(&Answered, 1, 20'000) != 1)
      return 3;
    std::vector<char> Part(64 << 10);
    for (int I = 0; I < NumParts; ++I) {
      if (::read(Ends[0].get(), Part.data(), Part.size()) <= 0)
        return 4;
      std::this_thread::sleep_for(Pause);
    }
    return 0;
  });
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  std::vector<float> Huge(1 << 23);
  FeatureSet Reply;
  Reply.set("out", Span<const float>(Huge));
  ASSERT_FALSE(Server->reply(Reply.tensors()));
  while (Server->statistics().Open == 1)
    EXPECT_EQ(next(20ms).code(), ErrorCode::Timeout);
  EXPECT_NE(Server->lastSessionError().code(), ErrorCode::Timeout)
      << Server->lastSessionError().str();
  EXPECT_EQ(Slow.wait(), 0);
}

TEST_F(ServerFault, ConnectionWithoutAHelloIsDropped) {
  Child Silent([&] {
    Expected<posix::UniqueFD> Socket = tryConnect(Name + ".sock");
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  auto Talking = compiler(2);
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  ASSERT_FALSE(Server->reply(Request->Features));
  EXPECT_EQ(Talking->wait(), 0);
  EXPECT_EQ(next(2 * ShortWait).code(), ErrorCode::Timeout);
}

TEST_F(ServerFault, ARelativeNameIsRemovedFromItsFolder) {
  Child Elsewhere([&] {
    const auto Folder = std::filesystem::path(Name).parent_path();
    std::filesystem::current_path(Folder);
    auto Relative = ModelServer::listen("relative");
    if (!Relative || !std::filesystem::exists("relative.sock"))
      return 5;
    // The process may change its working directory, for example in a policy.
    std::filesystem::current_path("/");
    Relative->reset();
    for (const char *Suffix : {".sock", ".in", ".out"})
      if (std::filesystem::exists(Folder / (std::string("relative") + Suffix)))
        return 6;
    return 0;
  });
  EXPECT_EQ(Elsewhere.wait(), 0);
}

/// Returns the message with which the server refuses a hello.
std::string refusalFor(const std::string &Name, const std::string &HelloText) {
  Expected<posix::UniqueFD> Socket = tryConnect(Name + ".sock");
  if (!Socket || !*Socket || sendPacket(Socket->get(), HelloText, {}))
    return "no connection";
  pollfd P{Socket->get(), POLLIN, 0};
  ::poll(&P, 1, 10'000);
  Packet Reply;
  Expected<PacketState> State = receivePacket(Socket->get(), Reply);
  if (!State || *State != PacketState::Arrived)
    return "no answer";
  Expected<Terms> T = Terms::decode(Reply.Text);
  return T ? T->Refusal : T.takeError().str();
}

TEST_F(ServerFault, WrongHellosAreRefusedInWords) {
  const std::string TooLong(5000, ' ');
  const struct {
    const char *Hello;
    const char *Mentions;
  } Cases[] = {
      {TooLong.c_str(), "4096"},
      {R"({"mlbridge":3,"transport":"pipe","serdes":"json"})", "version 3"},
      {R"({"mlbridge":1,"transport":"shm","serdes":"json"})", "version 1"},
      {R"({"mlbridge":0,"transport":"pipe","serdes":"json"})", "version 0"},
      {R"({"mlbridge":1,"newest":2,"newest":1,"transport":"pipe"})", "twice"},
      {R"({"mlbridge":1,"mlbridge":1,"transport":"pipe"})", "twice"},
      {R"({"mlbridge":null,"transport":"pipe"})", "mlbridge"},
      {"null", "null"},
      {"[1]", "[1]"},
      {"\x1b[31m{}", "\\x1b[31m"},
      {R"({"mlbridge":1,"transport":"smoke","serdes":"json"})", "smoke"},
      {R"({"mlbridge":1,"transport":"pipe","serdes":"morse"})", "morse"},
      {R"({"transport":"pipe"})", "version"},
      {R"({"mlbridge":"one"})", "mlbridge"},
      {"GET / HTTP/1.1", "GET / HTTP/1.1"},
  };
  for (const auto &Case : Cases) {
    SCOPED_TRACE(Case.Hello);
    Child Compiler([&] {
      std::string Refusal = refusalFor(Name, Case.Hello);
      return Refusal.find(Case.Mentions) != std::string::npos ? 0 : 1;
    });
    // Serve until the compiler has exited.
    siginfo_t Gone{};
    do
      EXPECT_EQ(next(10ms).code(), ErrorCode::Timeout);
    while (::waitid(P_PID, static_cast<id_t>(Compiler.pid()), &Gone,
                    WEXITED | WNOHANG | WNOWAIT) == 0 &&
           Gone.si_pid == 0);
    EXPECT_EQ(Compiler.wait(), 0);
  }
}

TEST_F(ServerFault, NonsenseEndsThatSessionOnly) {
  const std::string Nonsense[] = {
      std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8),
      std::string("\4\0\0\0\0\0\0\0junk", 12),
      std::string("\4\0\0\0\0\0\0\0ju", 10),
  };
  for (const std::string &Bytes : Nonsense) {
    Child Liar([&] {
      auto T = createPipeTransport(Name);
      if (!T->connect({"bitstream", ""}, Deadline::in(10s)))
        return 1;
      auto Region = T->acquire(Bytes.size());
      std::memcpy(Region->data(), Bytes.data(), Bytes.size());
      if (T->commit(Bytes.size(), Deadline::in(10s)))
        return 1;
      auto Reply = T->receive(Deadline::in(10s));
      return Reply ? 0 : 1;
    });
    auto Honest = compiler(7);
    for (int I = 0; I < 2; ++I) {
      auto Request = next(500ms);
      if (!Request)
        continue;
      EXPECT_EQ(Request->Pid, Honest->pid());
      EXPECT_FALSE(Server->reply(Request->Features));
    }
    EXPECT_EQ(Honest->wait(), 0);
    EXPECT_EQ(Liar.wait(), 0) << "the liar got no error";
    EXPECT_EQ(Server->lastSessionError().code(), ErrorCode::Malformed);
  }
}

TEST_F(ServerFault, ShortOfDescriptorsItRefusesInWordsAndGoesOn) {
  Server.reset();
  Expected<posix::Pipe> UntilClosed = posix::makePipe();
  ASSERT_TRUE(UntilClosed) << UntilClosed.message();
  Child Model([&] {
    UntilClosed->Write.reset();
    rlimit Limit{};
    ::getrlimit(RLIMIT_NOFILE, &Limit);
    Limit.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &Limit);
    EchoModel Echo(Name);
    pollfd End{UntilClosed->Read.get(), 0, 0};
    ::poll(&End, 1, 60'000);
    return 0;
  });
  for (const char *Scheme : {"pipe:", "shm:"}) {
    std::vector<std::unique_ptr<MLModelRunner>> Runners;
    int NumServed = 0, NumRefused = 0;
    for (int I = 0; I < 40; ++I) {
      Runners.push_back(
          std::move(*createModelRunner(Scheme + Name + "?connect=10s")));
      Runners.back()->populateFeatures(std::pair{"x", I});
      const Clock::time_point Start = Clock::now();
      Expected<int> Reply = Runners.back()->tryEvaluate<int>();
      EXPECT_LT(Clock::now() - Start, 5s);
      if (Reply) {
        EXPECT_EQ(*Reply, I);
        ++NumServed;
        continue;
      }
      ++NumRefused;
      EXPECT_EQ(Reply.code(), ErrorCode::Unsupported);
      EXPECT_NE(Reply.message().find("ulimit -n"), std::string_view::npos)
          << Reply.message();
    }
    EXPECT_GT(NumServed, 5);
    EXPECT_GT(NumRefused, 5);
  }
  // When those compilers have ended, the server must have room again.
  auto R = std::move(*createModelRunner("pipe:" + Name));
  Expected<int> Reply = Error();
  for (Deadline Until = Deadline::in(2s); !Reply && !Until.expired();) {
    R->populateFeatures(std::pair{"x", 7});
    Reply = R->tryEvaluate<int>();
  }
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 7);
  UntilClosed->Write.reset();
  EXPECT_EQ(Model.wait(), 0);
}

TEST_F(ServerFault, AnotherServerOfThatNameIsRefused) {
  auto Other = ModelServer::listen(Name);
  EXPECT_EQ(Other.code(), ErrorCode::InvalidArgument);
  EXPECT_NE(Other.message().find("another model already serves"),
            std::string_view::npos)
      << Other.message();
  auto C = compiler(3);
  auto Request = next();
  ASSERT_TRUE(Request) << Request.takeError().str();
  EXPECT_FALSE(Server->reply(Request->Features));
  EXPECT_EQ(C->wait(), 0);
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

class ServerBatch : public ServerFault {
protected:
  void SetUp() override {
    ServerFault::SetUp();
    Expected<posix::Pipe> Made = posix::makePipe();
    ASSERT_TRUE(Made) << Made.takeError().str();
    Gate = std::move(*Made);
  }
  void TearDown() override {
    Gate = {};
    ServerFault::TearDown();
  }

  /// Starts \p Count compilers over both transports and lets them connect. Then
  /// runs \p Body in all compilers at once, passing each its runner.
  template <typename F>
  std::vector<std::unique_ptr<Child>> compilers(int Count, F Body) {
    std::vector<std::unique_ptr<Child>> Started;
    for (int I = 0; I < Count; ++I)
      Started.push_back(std::make_unique<Child>([this, I, Body] {
        auto R = createModelRunner((I % 2 ? "shm:" : "pipe:") + Name +
                                   (I % 3 ? "" : "?serdes=json"));
        if (!R || !asks(**R, I))
          return 1;
        pollfd Opened{Gate.Read.get(), POLLIN, 0};
        if (::poll(&Opened, 1, 20'000) != 1)
          return 1;
        return Body(**R, I);
      }));
    for (int Connected = 0; Connected < Count; ++Connected) {
      auto Request = next();
      if (!Request || Server->reply(Request->Features))
        ADD_FAILURE() << "a compiler did not connect";
    }
    EXPECT_EQ(::write(Gate.Write.get(), "!", 1), 1);
    return Started;
  }
  /// Starts compilers in the same way. Each sends \p Rounds requests.
  std::vector<std::unique_ptr<Child>> compilersThatAsk(int Count, int Rounds) {
    return compilers(Count, [Rounds](MLModelRunner &R, int I) {
      for (int K = 0; K < Rounds; ++K)
        if (!asks(R, 1000 * I + K))
          return 2;
      return 0;
    });
  }
  /// Sends \p Number. True if the reply is the same number.
  static bool asks(MLModelRunner &R, int Number) {
    R.populateFeatures(std::pair{"x", Number});
    Expected<int> Reply = R.tryEvaluate<int>();
    return Reply && *Reply == Number;
  }

  posix::Pipe Gate;
};

TEST_F(ServerBatch, HoldsOneRequestOfEachWaitingCompiler) {
  auto Compilers = compilersThatAsk(8, 5);
  std::size_t Served = 0, Largest = 0;
  while (Served < 40) {
    auto Batch = Server->nextBatch({8, 2s}, 20s);
    ASSERT_TRUE(Batch) << Batch.takeError().str();
    std::set<std::uint64_t> Sessions;
    for (const ModelServer::Request &Request : *Batch)
      EXPECT_TRUE(Sessions.insert(Request.Session).second)
          << "twice in one batch";
    // Replies may be sent in any order, for example from the last to the first.
    for (std::size_t I = Batch->size(); I-- > 0;)
      ASSERT_FALSE(Server->reply(I, (*Batch)[I].Features));
    Largest = std::max(Largest, Batch->size());
    Served += Batch->size();
  }
  EXPECT_EQ(Largest, 8u);
  EXPECT_EQ(Server->statistics().Requests, 48u);
  EXPECT_LT(Server->statistics().Batches, 48u);
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
}

TEST_F(ServerBatch, IsBoundedAndSkipsNoCompiler) {
  auto Compilers = compilersThatAsk(7, 20);
  std::map<std::uint64_t, int> Requests;
  for (std::size_t Served = 0; Served < 140;) {
    auto Batch = Server->nextBatch({3, 10ms}, 20s);
    ASSERT_TRUE(Batch) << Batch.takeError().str();
    ASSERT_LE(Batch->size(), 3u);
    for (std::size_t I = 0; I < Batch->size(); ++I) {
      ++Requests[(*Batch)[I].Session];
      ASSERT_FALSE(Server->reply(I, (*Batch)[I].Features));
    }
    Served += Batch->size();
  }
  EXPECT_EQ(Requests.size(), 7u);
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
}

TEST_F(ServerBatch, CompilerThatDiesInABatchDoesNotAffectTheOthers) {
  auto Compilers = compilersThatAsk(4, 1);
  auto Batch = Server->nextBatch({4, 10s}, 20s);
  ASSERT_TRUE(Batch) << Batch.takeError().str();
  ASSERT_EQ(Batch->size(), 4u);
  for (auto &C : Compilers)
    if (C->pid() == (*Batch)[1].Pid)
      C->kill();
  for (std::size_t I = 0; I < 4; ++I) {
    Error E = Server->reply(I, (*Batch)[I].Features);
    EXPECT_TRUE(I == 1 || !E) << E.str();
  }
  EXPECT_EQ(Server->reply(0, (*Batch)[0].Features).code(),
            ErrorCode::InvalidArgument)
      << "answered twice";
  EXPECT_EQ(Server->reply(4, {}).code(), ErrorCode::InvalidArgument);
  int Survivors = 0;
  for (auto &C : Compilers)
    Survivors += C->wait() == 0;
  EXPECT_EQ(Survivors, 3);
}

TEST_F(ServerBatch, UnansweredRequestsGetAnError) {
  auto Compilers = compilers(3, [](MLModelRunner &R, int) {
    R.populateFeatures(std::pair{"x", 1});
    return R.tryEvaluate<int>().code() == ErrorCode::Model ? 0 : 1;
  });
  auto Batch = Server->nextBatch({3, 10s}, 20s);
  ASSERT_TRUE(Batch) << Batch.takeError().str();
  EXPECT_EQ(Batch->size(), 3u);
  EXPECT_EQ(next(500ms).code(), ErrorCode::Timeout);
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
}

TEST_F(ServerBatch, SixtyFourCompilersAtOnce) {
  std::size_t Descriptors = countOpenDescriptors();
  Server->measureLatencies();
  auto Compilers = compilersThatAsk(64, 20);
  for (std::size_t Served = 0; Served < 1280;) {
    auto Batch = Server->nextBatch({32, 1ms}, 20s);
    ASSERT_TRUE(Batch) << Batch.takeError().str();
    for (std::size_t I = 0; I < Batch->size(); ++I)
      ASSERT_FALSE(Server->reply(I, (*Batch)[I].Features));
    Served += Batch->size();
  }
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
  EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(Server->statistics().Open, 0u);
  EXPECT_EQ(countOpenDescriptors(), Descriptors);
  const double Quantiles[] = {0.5, 0.99, 1.0};
  std::vector<Duration> Took = Server->latencies(Quantiles);
  EXPECT_GT(Took[0], 0ns);
  EXPECT_LE(Took[0], Took[1]);
  EXPECT_LE(Took[1], Took[2]);
  EXPECT_LT(Took[2], 20s);
}

TEST_F(ServerFault, RestartedBetweenTwoRequestsItIsReachedAgain) {
  for (const char *Scheme : {"pipe:", "shm:"}) {
    Child Compiler([&, Scheme] {
      auto R = createModelRunner(Scheme + Name);
      bool Failed = false;
      for (int Replies = 0, Tries = 0; Replies < 2; ++Tries) {
        if (Tries == 3)
          return 1;
        (*R)->populateFeatures(std::pair{"x", 5});
        Expected<int> Reply = (*R)->tryEvaluate<int>();
        if (Reply && *Reply == 5)
          ++Replies;
        else if (!Reply && Reply.code() == ErrorCode::PeerClosed)
          Failed = true;
        else
          return 2;
        ::poll(nullptr, 0, 300);
      }
      // If the server is gone when a request is made, that request fails. The
      // runner does not silently repeat it.
      return Failed ? 0 : 3;
    });
    auto Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    ASSERT_FALSE(Server->reply(Request->Features));
    Server.reset();
    auto Again = ModelServer::listen(Name);
    ASSERT_TRUE(Again) << Again.takeError().str();
    Server = std::move(*Again);
    Request = next();
    ASSERT_TRUE(Request) << Request.takeError().str();
    ASSERT_FALSE(Server->reply(Request->Features));
    EXPECT_EQ(Compiler.wait(), 0) << Scheme;
  }
}

} // namespace
