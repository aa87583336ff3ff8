//===- PipeFaultTest.cpp - What goes wrong with pipes -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every way in which the other side of a pipe has been seen to fail, and what
/// must come of it: a typed error within the deadline, nothing left behind.
/// The peers are real processes that are really killed and stopped.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/ModelServer.h"
#include "MLCompilerBridge/PipeModelRunner.h"
#include "MLCompilerBridge/PipeTransport.h"
#include "RawModel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {

class PipeFault : public FaultTest {
protected:
  MLModelRunner &connect(SerDes::Kind Format = SerDes::Kind::Bitstream,
                         Duration Connect = 20s) {
    TransportOptions Options;
    Options.ConnectTimeout = Connect;
    Runner = std::make_unique<PipeModelRunner>(Name, Format, Options);
    return *Runner;
  }

  bool exists(const char *Suffix) const {
    return std::filesystem::exists(Name + Suffix);
  }
};

//===----------------------------------------------------------------------===//
// Nobody there
//===----------------------------------------------------------------------===//

TEST_F(PipeFault, NoModelIsATimeoutThatSaysWhatToStart) {
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "mlbridge.serve", ShortWait + Slack);
}

TEST_F(PipeFault, FifosWithoutAModelAreATimeout) {
  RawBareModel::makeFifos(Name);
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "nobody serves it", ShortWait + Slack);
}

TEST_F(PipeFault, SocketOfADeadModelIsATimeout) {
  Child Dead([&] {
    RawModel Model(Name);
    ::_exit(0); // Leaves the socket.
    return 0;
  });
  Dead.wait();
  ASSERT_TRUE(exists(".sock"));
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "nobody listens", ShortWait + Slack);
}

TEST_F(PipeFault, RegularFilesInPlaceOfTheNames) {
  connect();
  for (const char *Suffix : {".sock", ".in"}) {
    SCOPED_TRACE(Suffix);
    std::ofstream(Name + ".out") << "";
    std::ofstream(Name + Suffix) << "not what you think";
    expectFailure(ErrorCode::System, "found a regular file");
    Expected<std::unique_ptr<ModelServer>> Server = ModelServer::listen(Name);
    EXPECT_EQ(Server.code(), ErrorCode::System) << Server.message();
    std::filesystem::remove(Name + Suffix);
    std::filesystem::remove(Name + ".out");
  }
}

TEST_F(PipeFault, TheModelMayStartLater) {
  Child Late([&] {
    ::poll(nullptr, 0, 300);
    RawModel Model(Name);
    Model.meetAndReadRequest();
    Model.writeFrame("{\"out\":2.5}");
    return 0;
  });
  connect(SerDes::Kind::JSON);
  Expected<float> Answer = ask();
  ASSERT_TRUE(Answer) << Answer.takeError().str();
  EXPECT_EQ(*Answer, 2.5f);
}

//===----------------------------------------------------------------------===//
// The model dies, stops or hangs, at every step
//===----------------------------------------------------------------------===//

/// Where a model side is when something happens to it.
enum class Step {
  Connected,
  SaidHello,
  HalfARequest,
  Request,
  HalfALength,
  HalfAReply,
  AfterAReply,
};
constexpr Step AllSteps[] = {
    Step::Connected,   Step::SaidHello,  Step::HalfARequest, Step::Request,
    Step::HalfALength, Step::HalfAReply, Step::AfterAReply};

/// Plays a model side up to and including \p Last.
void playUntil(RawModel &Model, Step Last) {
  Model.awaitConnection();
  if (Last == Step::Connected)
    return;
  Model.awaitHello();
  Model.sendTerms();
  if (Last == Step::SaidHello)
    return;
  if (Last == Step::HalfARequest) {
    Model.readRequest(20);
    return;
  }
  Model.readRequest();
  if (Last == Step::Request)
    return;
  if (Last == Step::HalfALength) {
    Model.write(std::string_view("\5\0\0", 3));
    return;
  }
  if (Last == Step::HalfAReply) {
    Model.writeFrame("{\"out\":", 11);
    return;
  }
  Model.writeFrame("{\"out\":2.5}");
}

class PipeFaultAtStep : public PipeFault,
                        public testing::WithParamInterface<Step> {};

TEST_P(PipeFaultAtStep, KilledModelIsPeerClosed) {
  Child Model([&] {
    RawModel M(Name);
    playUntil(M, GetParam());
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  // A death while meeting is indistinguishable from a model that has not
  // started yet: somebody may restart it.
  connect(SerDes::Kind::JSON, ShortWait);
  if (GetParam() == Step::AfterAReply) {
    Expected<float> Answer = ask();
    ASSERT_TRUE(Answer) << Answer.takeError().str();
    ASSERT_EQ(*Answer, 2.5f);
    Model.wait();
  }
  if (GetParam() == Step::Connected)
    expectFailure(ErrorCode::Timeout, "nobody listens", ShortWait + Slack);
  else
    expectFailure(ErrorCode::PeerClosed, "pipe:" + Name);
  // And the next question does not hang on the dead session either.
  expectFailure(ErrorCode::Timeout, "nobody listens", ShortWait + Slack);
}

TEST_P(PipeFaultAtStep, StoppedModelIsATimeout) {
  Child Model([&] {
    RawModel M(Name);
    playUntil(M, GetParam());
    ::raise(SIGSTOP);
    return 0;
  });
  connect(SerDes::Kind::JSON, ShortWait);
  Runner->setTimeout(ShortWait);
  if (GetParam() == Step::AfterAReply) {
    ASSERT_TRUE(ask());
  }
  expectFailure(ErrorCode::Timeout, "pipe:" + Name, ShortWait + Slack);
}

INSTANTIATE_TEST_SUITE_P(Steps, PipeFaultAtStep, testing::ValuesIn(AllSteps));

TEST_F(PipeFault, ReplyToAQuestionThatWasGivenUpIsNeverRead) {
  Child Model([&] {
    RawModel M(Name);
    M.meetAndReadRequest();
    ::poll(nullptr, 0, 600);
    if (M.hasReader()) // Of what comes too late.
      return 9;
    M.meetAndReadRequest();
    M.writeFrame("{\"out\":2}");
    return 0;
  });
  connect(SerDes::Kind::JSON);
  Runner->setTimeout(ShortWait);
  expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
  Runner->setTimeout(20s);
  Expected<int> Answer = ask<int>();
  ASSERT_TRUE(Answer) << Answer.takeError().str();
  EXPECT_EQ(*Answer, 2);
  EXPECT_EQ(Model.wait(), 0) << "the late reply would have had a reader";
}

TEST_F(PipeFault, ModelThatStopsReadingIsATimeout) {
  Child Model([&] {
    RawModel M(Name);
    playUntil(M, Step::SaidHello);
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect();
  Runner->setTimeout(ShortWait);
  std::vector<float> Huge(1 << 22);
  Runner->populateFeatures(std::pair{"x", Span<const float>(Huge)});
  Clock::time_point Start = Clock::now();
  Expected<float> Answer = Runner->tryEvaluate<float>();
  EXPECT_EQ(Answer.code(), ErrorCode::Timeout) << Answer.message();
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

//===----------------------------------------------------------------------===//
// Replies that lie
//===----------------------------------------------------------------------===//

struct BadReply {
  const char *What;
  SerDes::Kind Format;
  std::string Message;
  ErrorCode Code;
  std::string Mentions;
  /// The length in front of it, where it is not the message's.
  std::optional<std::uint64_t> Announced = std::nullopt;
};

void PrintTo(const BadReply &Bad, std::ostream *OS) { *OS << Bad.What; }

const BadReply BadReplies[] = {
    {"Announced2To63", SerDes::Kind::Bitstream, "", ErrorCode::Malformed,
     "9223372036854775808", std::uint64_t(1) << 63},
    {"Announced2To42", SerDes::Kind::JSON, "{}", ErrorCode::Malformed,
     "4398046511104", std::uint64_t(1) << 42},
    {"MoreThanAnnounced", SerDes::Kind::JSON, "{\"out\":1} ",
     ErrorCode::Malformed, "1 bytes more", 9},
    {"OneByteShort", SerDes::Kind::JSON, "{\"out\":1", ErrorCode::Timeout,
     "did not answer", 9},
    {"Empty", SerDes::Kind::Bitstream, "", ErrorCode::Malformed, ""},
    {"EmptyJSON", SerDes::Kind::JSON, "", ErrorCode::Malformed, ""},
    {"NoNewline", SerDes::Kind::Bitstream, "{\"features\":[]}",
     ErrorCode::Malformed, ""},
    {"RawBytesInASession", SerDes::Kind::Bitstream,
     std::string("\0\0\x80\x3f", 4), ErrorCode::Malformed, ""},
    {"TensorOneByteShort", SerDes::Kind::Bitstream,
     "{\"features\":[{\"name\":\"out\",\"port\":0,\"type\":\"float\","
     "\"shape\":[]}]}\nabc\n",
     ErrorCode::Malformed, "4 bytes"},
    {"TensorOneByteLong", SerDes::Kind::Bitstream,
     "{\"features\":[{\"name\":\"out\",\"port\":0,\"type\":\"float\","
     "\"shape\":[]}]}\nabcde\n",
     ErrorCode::Malformed, ""},
    {"TensorOf2To63", SerDes::Kind::Bitstream,
     "{\"features\":[{\"name\":\"out\",\"port\":0,\"type\":\"float\","
     "\"shape\":[9223372036854775807,9]}]}\nabcd\n",
     ErrorCode::Malformed, "out"},
    {"UnknownType", SerDes::Kind::Bitstream,
     "{\"features\":[{\"name\":\"out\",\"port\":0,\"type\":\"complex\","
     "\"shape\":[]}]}\nabcdefgh\n",
     ErrorCode::Malformed, "complex"},
    {"NotJSON", SerDes::Kind::JSON, "out = 1", ErrorCode::Malformed, ""},
    {"TruncatedJSON", SerDes::Kind::JSON, "{\"out\":[1.0,", // No more comes.
     ErrorCode::Malformed, ""},
    {"JSONArray", SerDes::Kind::JSON, "[]", ErrorCode::Malformed, ""},
    {"JSONNull", SerDes::Kind::JSON, "null", ErrorCode::Malformed, ""},
    {"NullAdvice", SerDes::Kind::JSON, "{\"out\":null}", ErrorCode::Malformed,
     "out"},
    {"NoAdvice", SerDes::Kind::JSON, "{}", ErrorCode::SchemaMismatch, "out"},
    {"TwoAdvicesNoneCalledOut", SerDes::Kind::JSON, "{\"a\":1,\"b\":2}",
     ErrorCode::SchemaMismatch, "out"},
    {"ListForAScalar", SerDes::Kind::JSON, "{\"out\":[1.5,2.5]}",
     ErrorCode::SchemaMismatch, "out"},
    {"TextForANumber", SerDes::Kind::JSON, "{\"out\":\"inline\"}",
     ErrorCode::SchemaMismatch, "out"},
};

class PipeBadReply : public PipeFault,
                     public testing::WithParamInterface<BadReply> {};

TEST_P(PipeBadReply, IsATypedError) {
  const BadReply &Bad = GetParam();
  Child Model([&] {
    RawModel M(Name);
    M.meetAndReadRequest();
    M.writeFrame(Bad.Message, Bad.Announced);
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect(Bad.Format);
  Runner->setTimeout(ShortWait);
  expectFailure(Bad.Code, Bad.Mentions, ShortWait + Slack);
}

INSTANTIATE_TEST_SUITE_P(Replies, PipeBadReply, testing::ValuesIn(BadReplies),
                         [](const auto &Info) { return Info.param.What; });

TEST_F(PipeFault, ValidRepliesThatTheReferenceMisreads) {
  Child Model([&] {
    RawModel M(Name);
    M.meetAndReadRequest();
    M.writeFrame("{\"out\": 1.0}");
    M.readRequest();
    M.writeFrame("{\"out\": [1.0, 2.5]}");
    M.readRequest();
    M.writeFrame("{\"out\": 1}");
    return 0;
  });
  connect(SerDes::Kind::JSON);
  EXPECT_EQ(*ask<float>(), 1.0f);
  EXPECT_EQ(*ask<std::vector<float>>(), (std::vector<float>{1.0f, 2.5f}));
  EXPECT_EQ(*ask<float>(), 1.0f);
}

//===----------------------------------------------------------------------===//
// Bare mode
//===----------------------------------------------------------------------===//

TEST_F(PipeFault, BareModelIsServedInItsOwnDialect) {
  RawBareModel::makeFifos(Name);
  Child Model([&] {
    RawBareModel M(Name);
    std::string Request = M.readRequest();
    if (Request.find("\"shape\":[1]") == std::string::npos)
      return 5;
    M.writeFrame(std::string_view("\0\0\x80\x3f", 4));
    return 0;
  });
  connect();
  Expected<float> Answer = ask();
  ASSERT_TRUE(Answer) << Answer.takeError().str();
  EXPECT_EQ(*Answer, 1.0f);
  EXPECT_EQ(Model.wait(), 0);
}

TEST_F(PipeFault, BareReplyMustHaveTheAdvicesSize) {
  for (std::string_view Reply : {"abc", "abcde", "", "abcdefgh"}) {
    SCOPED_TRACE(std::string(Reply));
    RawBareModel::makeFifos(Name);
    Child Model([&] {
      RawBareModel M(Name);
      M.readRequest();
      M.writeFrame(Reply);
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    connect();
    Runner->setTimeout(2s);
    expectFailure(ErrorCode::Malformed, "4 bytes");
    Model.kill();
    std::filesystem::remove(Name + ".in");
    std::filesystem::remove(Name + ".out");
  }
}

TEST_F(PipeFault, BareModelThatDiesIsPeerClosed) {
  RawBareModel::makeFifos(Name);
  Child Model([&] {
    RawBareModel M(Name);
    M.readRequest();
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  connect(SerDes::Kind::JSON, ShortWait);
  expectFailure(ErrorCode::PeerClosed, "pipe:" + Name);
}

//===----------------------------------------------------------------------===//
// The compiler's faults, as a model sees them
//===----------------------------------------------------------------------===//

class ServerFault : public PipeFault {
protected:
  void SetUp() override {
    PipeFault::SetUp();
    ModelServerOptions Options;
    Options.PeerTimeout = ShortWait;
    Expected<std::unique_ptr<ModelServer>> Listening =
        ModelServer::listen(Name, Options);
    ASSERT_TRUE(Listening) << Listening.takeError().str();
    Server = std::move(*Listening);
  }
  void TearDown() override {
    Server.reset();
    for (const char *Suffix : {".sock", ".in", ".out"})
      EXPECT_FALSE(exists(Suffix)) << Suffix << " was left behind";
    PipeFault::TearDown();
  }

  Expected<ModelServer::Question> next(Duration Within = 20s) {
    return Server->next(Deadline::in(Within));
  }

  /// A compiler that asks with its own number and exits 0 if that comes back.
  std::unique_ptr<Child> compiler(int Number) {
    return std::make_unique<Child>([this, Number] {
      PipeModelRunner R(Name);
      R.populateFeatures(std::pair{"x", Number});
      Expected<int> Answer = R.tryEvaluate<int>();
      return Answer && *Answer == Number ? 0 : 1;
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
    auto Q = next();
    ASSERT_TRUE(Q) << Q.takeError().str();
    EXPECT_EQ(Q->Pid, Idle.pid());
    ASSERT_FALSE(Server->reply(Q->Features));
    Idle.kill();
    auto Next = compiler(2);
    Q = next();
    ASSERT_TRUE(Q) << Q.takeError().str();
    EXPECT_EQ(Q->Pid, Next->pid());
    ASSERT_FALSE(Server->reply(Q->Features));
    EXPECT_EQ(Next->wait(), 0);
    EXPECT_FALSE(Server->lastSessionError())
        << Server->lastSessionError().str();
  }
  EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(Server->statistics().Open, 0u);
}

TEST_F(ServerFault, ReplyForADeadCompilerNeverReachesTheNext) {
  auto First = compiler(1);
  auto Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  First->kill();
  // What the model computed for the first compiler.
  FeatureSet Stale;
  Stale.set("out", 1);
  EXPECT_EQ(Server->reply(Stale.tensors()).code(), ErrorCode::PeerClosed);
  auto Second = compiler(2);
  Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  ASSERT_FALSE(Server->reply(Q->Features));
  EXPECT_EQ(Second->wait(), 0);
}

TEST_F(ServerFault, QuestionWithoutAReplyIsAnsweredWithAnError) {
  Child Compiler([&] {
    PipeModelRunner R(Name);
    R.populateFeatures(std::pair{"x", 1});
    return R.tryEvaluate<int>().code() == ErrorCode::Model ? 0 : 1;
  });
  ASSERT_TRUE(next());
  EXPECT_EQ(next(500ms).code(), ErrorCode::Timeout);
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
        Expected<int> Answer = R.tryEvaluate<int>();
        if (!Answer || *Answer != 1000 * I + K)
          return 1;
      }
      return 0;
    }));
  for (int Served = 0; Served < 8 * 50; ++Served) {
    auto Q = next();
    ASSERT_TRUE(Q) << Q.takeError().str();
    ASSERT_FALSE(Server->reply(Q->Features));
  }
  for (auto &C : Compilers)
    EXPECT_EQ(C->wait(), 0);
}

TEST_F(ServerFault, FiftyCompilersOneAfterAnother) {
  std::size_t Descriptors = countOpenDescriptors();
  for (int I = 0; I < 50; ++I) {
    auto C = compiler(I);
    auto Q = next();
    ASSERT_TRUE(Q) << Q.takeError().str();
    EXPECT_EQ(Q->Session, std::uint64_t(I + 1));
    ASSERT_FALSE(Server->reply(Q->Features));
    EXPECT_EQ(C->wait(), 0);
  }
  EXPECT_EQ(next(50ms).code(), ErrorCode::Timeout);
  EXPECT_EQ(countOpenDescriptors(), Descriptors);
}

TEST_F(ServerFault, StoppedCompilerDoesNotHoldUpOthers) {
  // It asks, and is stopped before it can take the reply, which does not fit
  // into its pipe.
  auto Stopped = compiler(1);
  auto Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  Stopped->signal(SIGSTOP);
  std::vector<float> Huge(1 << 22);
  FeatureSet Reply;
  Reply.set("out", Span<const float>(Huge));
  Clock::time_point Start = Clock::now();
  EXPECT_EQ(Server->reply(Reply.tensors()).code(), ErrorCode::Timeout);
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
  auto Other = compiler(2);
  Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  ASSERT_FALSE(Server->reply(Q->Features));
  EXPECT_EQ(Other->wait(), 0);
}

TEST_F(ServerFault, ConnectionWithoutAHelloIsDropped) {
  Child Silent([&] {
    Expected<posix::UniqueFD> Socket = tryConnect(Name + ".sock");
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  auto Talking = compiler(2);
  auto Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  ASSERT_FALSE(Server->reply(Q->Features));
  EXPECT_EQ(Talking->wait(), 0);
  EXPECT_EQ(next(2 * ShortWait).code(), ErrorCode::Timeout);
}

/// What the server answers to a hello.
std::string refusalFor(const std::string &Name, const std::string &HelloText) {
  Expected<posix::UniqueFD> Socket = tryConnect(Name + ".sock");
  if (!Socket || !*Socket || sendPacket(Socket->get(), HelloText, {}))
    return "no connection";
  pollfd P{Socket->get(), POLLIN, 0};
  ::poll(&P, 1, 10'000);
  Packet Answer;
  Expected<PacketState> State = receivePacket(Socket->get(), Answer);
  if (!State || *State != PacketState::Arrived)
    return "no answer";
  Expected<Terms> T = Terms::decode(Answer.Text);
  return T ? T->Refusal : T.takeError().str();
}

TEST_F(ServerFault, WrongHellosAreRefusedInWords) {
  const struct {
    const char *Hello;
    const char *Mentions;
  } Cases[] = {
      {R"({"mlbridge":2,"transport":"pipe","serdes":"json"})", "version 2"},
      {R"({"mlbridge":1,"transport":"smoke","serdes":"json"})", "smoke"},
      {R"({"mlbridge":1,"transport":"pipe","serdes":"morse"})", "morse"},
      {R"({"transport":"pipe"})", "version"},
      {R"({"mlbridge":"one"})", "mlbridge"},
      {"GET / HTTP/1.1", "GET / HTTP/1.1"},
  };
  for (const auto &Case : Cases) {
    SCOPED_TRACE(Case.Hello);
    Child Guest([&] {
      std::string Refusal = refusalFor(Name, Case.Hello);
      return Refusal.find(Case.Mentions) != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(next(200ms).code(), ErrorCode::Timeout);
    EXPECT_EQ(Guest.wait(), 0);
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
      auto Q = next(500ms);
      if (!Q)
        continue;
      EXPECT_EQ(Q->Pid, Honest->pid());
      EXPECT_FALSE(Server->reply(Q->Features));
    }
    EXPECT_EQ(Honest->wait(), 0);
    EXPECT_EQ(Liar.wait(), 0) << "the liar was told nothing";
    EXPECT_EQ(Server->lastSessionError().code(), ErrorCode::Malformed);
  }
}

TEST_F(ServerFault, AnotherServerOfThatNameIsRefused) {
  auto Other = ModelServer::listen(Name);
  EXPECT_EQ(Other.code(), ErrorCode::InvalidArgument);
  EXPECT_NE(Other.message().find("another model already serves"),
            std::string_view::npos)
      << Other.message();
  auto C = compiler(3);
  auto Q = next();
  ASSERT_TRUE(Q) << Q.takeError().str();
  EXPECT_FALSE(Server->reply(Q->Features));
  EXPECT_EQ(C->wait(), 0);
}

TEST_F(PipeFault, WhatADeadServerLeftIsTakenOver) {
  Child Dead([&] {
    auto Server = ModelServer::listen(Name);
    ::kill(::getpid(), SIGKILL);
    return Server ? 0 : 1;
  });
  Dead.wait();
  ASSERT_TRUE(exists(".sock") && exists(".in") && exists(".out"));
  {
    auto Server = ModelServer::listen(Name);
    ASSERT_TRUE(Server) << Server.takeError().str();
  }
  EXPECT_FALSE(exists(".sock") || exists(".in") || exists(".out"));
}

TEST_F(PipeFault, NamesAreForThisUserOnly) {
  auto Server = ModelServer::listen(Name);
  ASSERT_TRUE(Server) << Server.takeError().str();
  using std::filesystem::perms;
  for (const char *Suffix : {".sock", ".in", ".out"})
    EXPECT_EQ(std::filesystem::status(Name + Suffix).permissions(),
              perms::owner_read | perms::owner_write)
        << Suffix;
}

TEST_F(PipeFault, MemoryDoesNotGrowOver100000Questions) {
  Child Model([&]() -> int {
    auto Server = ModelServer::listen(Name);
    for (;;)
      if (auto Q = (*Server)->next(Deadline::in(20s)))
        (void)bool((*Server)->reply(Q->Features));
  });
  connect();
  std::size_t Before = 0;
  for (int I = 0; I < 101'000; ++I) {
    if (I == 1000)
      Before = residentBytes();
    Expected<double> Answer = ask<double>(I);
    ASSERT_TRUE(Answer) << Answer.takeError().str();
    ASSERT_EQ(*Answer, I);
  }
  EXPECT_LT(residentBytes(), Before + (1 << 20));
}

} // namespace
