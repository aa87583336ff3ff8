//===- GRPCFaultTest.cpp - gRPC faults ------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests models behind gRPC that are absent, die, restart, refuse or speak
/// another protocol, and compilers with the same faults. Each fault must end in
/// the right error, at most one second after the deadline.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "GRPCPeers.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"
#include "support/GRPCSanitizers.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;
using testing::HasSubstr;

static std::unique_ptr<ModelServer> serverAt(const std::string &Spec,
                                             ListenerOptions Options = {}) {
  Expected<std::unique_ptr<Listener>> Opened =
      openGRPCListener(Spec, std::move(Options));
  if (!Opened) {
    ADD_FAILURE() << Opened.takeError().str();
    std::abort();
  }
  return serverOf(std::move(*Opened));
}

namespace {

/// A model's reaction to the request that follows its last reply: the model
/// exits or never replies.
enum class Then { Die, Hang };

class GRPCFault : public FaultTest {
protected:
  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    awaitEndOfGRPC();
  }
  /// gRPC keeps descriptors open, so this does not count them. The test
  /// DescriptorsAreNotLeftBehind does.
  void TearDown() override { Runner.reset(); }

  void connectTo(const std::string &Spec) {
    RunnerFactory Factory;
    addGRPC(Factory);
    auto Made = Factory.create(Spec);
    ASSERT_TRUE(Made) << Made.takeError().str();
    Runner = std::move(*Made);
    Peer = Spec.substr(0, Spec.find('?'));
  }

  /// Starts a model in its own process. The process must be forked before this
  /// process uses gRPC. To start later, the model can wait for a byte from \p
  /// StartFD.
  std::unique_ptr<Child> model(const std::string &Spec, int Replies, Then Last,
                               int StartFD = -1) {
    return std::make_unique<Child>([=] {
      char Start;
      if (StartFD >= 0 && ::read(StartFD, &Start, 1) != 1)
        return 1;
      auto Server = serverAt(Spec);
      for (int I = 0;; ++I) {
        auto Request = Server->next(Deadline::in(60s));
        if (!Request)
          return 1;
        if (I >= Replies) {
          if (Last == Then::Die)
            ::_exit(0);
          ::pause();
        }
        (void)bool(Server->reply(Request->Features));
      }
    });
  }

  /// Returns the spec of a model at this test's port.
  std::string local(const std::string &Options) const {
    return "grpc://127.0.0.1:" + std::to_string(Port) + "?serdes=bitstream&" +
           Options;
  }
  std::string listening() const {
    return "grpc://127.0.0.1:" + std::to_string(Port);
  }

  const int Port = freePort();
};

} // namespace

//===----------------------------------------------------------------------===//
// No model, or something else
//===----------------------------------------------------------------------===//

TEST_F(GRPCFault, NobodyListens) {
  connectTo(local("connect=300ms"));
  expectFailure(ErrorCode::Timeout, "refused", ShortWait + Slack);
  connectTo("grpc+unix:" + Name + "?serdes=bitstream&connect=300ms");
  expectFailure(ErrorCode::Timeout, "start the model side", ShortWait + Slack);
  connectTo("grpc://no-such-host.invalid:1?serdes=bitstream&connect=300ms");
  expectFailure(ErrorCode::Timeout, "no model at", ShortWait + Slack);
}

TEST_F(GRPCFault, TheModelMayStartLater) {
  int Ends[2];
  ASSERT_EQ(::pipe(Ends), 0);
  auto Model = model(listening(), 1, Then::Die, Ends[0]);
  std::thread Starter([&] {
    std::this_thread::sleep_for(400ms);
    ASSERT_EQ(::write(Ends[1], "s", 1), 1);
  });
  connectTo(local("connect=30s"));
  expectEcho(2.5);
  Starter.join();
  ::close(Ends[0]);
  ::close(Ends[1]);
}

TEST_F(GRPCFault, ADuplicateReplyAnswersNoOtherRequest) {
  TwiceServer Model("{\"out\":1}");
  connectTo(Model.spec() + "?serdes=json&connect=30s&timeout=5s");
  Expected<int> First = ask<int>(1);
  ASSERT_TRUE(First) << First.message();
  EXPECT_EQ(*First, 1);
  std::this_thread::sleep_for(100ms);
  expectFailure<int>(ErrorCode::Malformed, "without a request");
}

TEST_F(GRPCFault, SomethingListensThatSpeaksNoHTTP2) {
  for (std::string_view Greeting : {"", "220 mail.example ESMTP\r\n"}) {
    RawListener Silent(Port, std::string(Greeting));
    connectTo(local("connect=300ms"));
    expectFailure(ErrorCode::Timeout, "no model at", ShortWait + Slack);
  }
}

TEST_F(GRPCFault, AGRPCServerOfAnotherServiceIsNoModel) {
  StatusServer Other({grpc::StatusCode::UNIMPLEMENTED, "never heard of it"});
  for (const char *Call : {"stream", "unary"}) {
    connectTo(Other.spec() + "?serdes=bitstream&call=" + Call);
    expectFailure(ErrorCode::Unsupported, "never heard of it");
  }
}

TEST_F(GRPCFault, StatusesOfStockServersAreTyped) {
  const std::pair<grpc::StatusCode, ErrorCode> Cases[] = {
      {grpc::StatusCode::UNKNOWN, ErrorCode::Model},
      {grpc::StatusCode::INVALID_ARGUMENT, ErrorCode::Model},
      {grpc::StatusCode::FAILED_PRECONDITION, ErrorCode::Unsupported},
      {grpc::StatusCode::UNAVAILABLE, ErrorCode::PeerClosed},
      {grpc::StatusCode::DEADLINE_EXCEEDED, ErrorCode::Timeout},
      {grpc::StatusCode::OK, ErrorCode::PeerClosed},
  };
  for (auto [Status, Code] : Cases) {
    StatusServer Server({Status, "the weights are missing"});
    connectTo(Server.spec() + "?serdes=bitstream");
    expectFailure(Code, Status == grpc::StatusCode::OK ||
                                Status == grpc::StatusCode::DEADLINE_EXCEEDED
                            ? ""
                            : "the weights are missing");
  }
}

//===----------------------------------------------------------------------===//
// Models that die, hang and come back
//===----------------------------------------------------------------------===//

TEST_F(GRPCFault, TheModelDiesDuringARequest) {
  auto Model = model(listening(), 1, Then::Die);
  connectTo(local("connect=30s"));
  expectEcho(1.5);
  expectFailure(ErrorCode::PeerClosed, "");
}

TEST_F(GRPCFault, TheModelDiesDuringAUnaryRequest) {
  auto Model = model(listening(), 1, Then::Die);
  connectTo(local("connect=30s&call=unary"));
  expectEcho(1.5);
  expectFailure(ErrorCode::PeerClosed, "");
}

TEST_F(GRPCFault, TheModelDoesNotAnswer) {
  auto Model = model(listening(), 1, Then::Hang);
  connectTo(local("connect=30s&timeout=300ms"));
  expectEcho(1.5);
  expectFailure(ErrorCode::Timeout, "timeout= sets a longer limit",
                ShortWait + Slack);
}

TEST_F(GRPCFault, TheModelDoesNotAnswerAUnaryCall) {
  auto Model = model(listening(), 0, Then::Hang);
  connectTo(local("connect=30s&timeout=300ms&call=unary"));
  expectFailure(ErrorCode::Timeout, "", ShortWait + Slack);
}

TEST_F(GRPCFault, ALargeRequestToAStoppedModelTimesOut) {
  auto Model = model(listening(), 1000, Then::Hang);
  const std::vector<double> Large(std::size_t(4) << 20);
  for (const char *Call : {"stream", "unary"}) {
    SCOPED_TRACE(Call);
    connectTo(local("connect=30s&timeout=300ms&call=" + std::string(Call)));
    expectEcho(1.5);
    Model->signal(SIGSTOP);
    // The request fills the connection, so no cancellation can be sent either.
    const Clock::time_point Start = Clock::now();
    Runner->populateFeatures(std::pair{"x", Large});
    EXPECT_EQ(Runner->tryEvaluate<float>().code(), ErrorCode::Timeout);
    EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
    Model->signal(SIGCONT);
    Runner->setTimeout(10s);
    expectEcho(2.5);
  }
}

TEST_F(GRPCFault, ARunnerEndsWhileItsModelIsStopped) {
  if (MLBRIDGE_UNDER_ASAN)
    GTEST_SKIP() << "leaks, on purpose, the memory that gRPC may still use";
  auto Model = model(listening(), 1000, Then::Hang);
  connectTo(local("connect=30s&timeout=300ms"));
  expectEcho(1.5);
  Model->signal(SIGSTOP);
  Runner->populateFeatures(
      std::pair{"x", std::vector<double>(std::size_t(4) << 20)});
  EXPECT_EQ(Runner->tryEvaluate<float>().code(), ErrorCode::Timeout);
  const Clock::time_point Start = Clock::now();
  Runner.reset();
  EXPECT_LT(Clock::now() - Start, Slack);
}

TEST_F(GRPCFault, AModelThatIsRestartedBetweenTwoRequestsIsReachedAgain) {
  for (const char *Call : {"stream", "unary"}) {
    SCOPED_TRACE(Call);
    // Use a process of its own, which forks the models before it uses gRPC.
    Child Whole([&] {
      int Ends[2];
      if (::pipe(Ends) != 0)
        return 1;
      auto First = model(listening(), 100, Then::Die);
      auto Second = model(listening(), 100, Then::Die, Ends[0]);
      connectTo(local(std::string("connect=30s&call=") + Call));
      if (ask(1.5).code() != ErrorCode::Success)
        return 2;
      First->kill();
      if (::write(Ends[1], "s", 1) != 1)
        return 3;
      auto Reply = ask(2.5);
      if (!Reply)
        std::fprintf(stderr, "%s\n", Reply.takeError().str().c_str());
      Runner.reset();
      return Reply ? 0 : 4;
    });
    EXPECT_EQ(Whole.wait(), 0);
  }
}

TEST_F(GRPCFault, AConnectionThatDiesSilently) {
  EchoModel Model(serverAt(listening()));
  Proxy Between(Port);
  connectTo("grpc://127.0.0.1:" + std::to_string(Between.port()) +
            "?serdes=bitstream&connect=30s&timeout=300ms");
  expectEcho(1.5);
  Between.stopForwarding();
  expectFailure(ErrorCode::Timeout, "", ShortWait + Slack);
}

TEST_F(GRPCFault, KeepaliveEndsAWaitThatHasNoDeadline) {
  auto Server = serverAt(listening());
  std::thread Model([&] {
    // Never reply to the second request.
    for (int I = 0; I < 2; ++I) {
      auto Request = Server->next(Deadline::in(20s));
      if (I == 0 && Request)
        (void)bool(Server->reply(Request->Features));
    }
  });
  Proxy Between(Port);
  connectTo("grpc://127.0.0.1:" + std::to_string(Between.port()) +
            "?serdes=bitstream&connect=30s&timeout=inf&keepalive=1s");
  expectEcho(1.5);
  std::thread Stopper([&] {
    std::this_thread::sleep_for(500ms);
    Between.stopForwarding();
  });
  // Add the time before the stop, the peer's time to respond, the keepalive
  // interval, and the slack.
  expectFailure(ErrorCode::PeerClosed, "", 1s + 6s + 1s + Slack);
  Stopper.join();
  Model.join();
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST_F(GRPCFault, AnotherProtocolVersionIsRefusedInWords) {
  EchoModel Model(serverAt(listening()));
  for (const char *Method : {"session", "getAdvice"}) {
    RawCall Call(Port, Method, {{"mlbridge-protocol", "2"}});
    grpc::Status Status = Call.end();
    EXPECT_EQ(Status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_NE(Status.error_message().find("version 1 of the protocol, the "
                                          "compiler version 2"),
              std::string::npos)
        << Status.error_message();
  }
  EXPECT_EQ(RawCall(Port, "noSuchMethod", {}).end().error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GRPCFault, AFormatThatTheModelDoesNotSpeakIsRefusedInWords) {
  ListenerOptions Options;
  Options.Formats.add(
      {"bitstream", "",
       [](SerDes::Side) -> Expected<std::unique_ptr<BaseSerDes>> {
         return Error(ErrorCode::Unsupported, "this model speaks no bitstream");
       }});
  EchoModel Model(serverAt(listening(), Options));
  for (const char *Call : {"stream", "unary"}) {
    connectTo(local(std::string("call=") + Call));
    expectFailure(ErrorCode::Unsupported, "this model speaks no bitstream");
  }
}

TEST_F(GRPCFault, MessagesBeyondTheLimitAreRefusedOnBothSides) {
  EchoModel Model(serverAt(listening() + "?max-message=1MiB"));
  const std::vector<float> Long(300'000);
  auto Ask = [&] {
    Runner->populateFeatures(std::pair{"x", Span<const float>(Long)});
    return Runner->tryEvaluate<Advice>();
  };
  for (const char *Call : {"stream", "unary"}) {
    connectTo(local(std::string("max-message=1MiB&call=") + Call));
    EXPECT_EQ(Ask().code(), ErrorCode::InvalidArgument);
    // The request is within the compiler's limit, but exceeds the model's
    // limit.
    connectTo(local(std::string("call=") + Call));
    EXPECT_EQ(Ask().code(), ErrorCode::Malformed);
    expectEcho(1.5);
  }
}

TEST_F(GRPCFault, AReplyBeyondTheLimitIsRefusedByTheCompiler) {
  StatusServer Server({}, std::string(1 << 20, 'x'));
  for (const char *Call : {"stream", "unary"}) {
    connectTo(Server.spec() +
              "?serdes=bitstream&max-message=64KiB&call=" + Call);
    expectFailure(ErrorCode::Malformed, "max-message");
  }
}

TEST_F(GRPCFault, AMalformedMessageEndsTheSessionWithAnError) {
  EchoModel Model(serverAt(listening()));
  RawCall Call(Port, "session",
               {{"mlbridge-protocol", "1"}, {"mlbridge-serdes", "json"}});
  ASSERT_TRUE(Call.write("no JSON"));
  EXPECT_NE(Call.read().find("_error"), std::string::npos);
  EXPECT_EQ(Call.end().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Model.stop().lastSessionError().code(), ErrorCode::Malformed);
}

TEST_F(GRPCFault, TwoServersDoNotShareAnAddress) {
  for (const std::string &Spec : {listening(), "grpc+unix:" + Name}) {
    auto First = serverAt(Spec);
    EXPECT_FALSE(openGRPCListener(Spec));
  }
  EXPECT_FALSE(std::filesystem::exists(Name));
}

TEST_F(GRPCFault, ASocketIsItsUsersOwnAndLeavesNothing) {
  {
    auto Server = serverAt("grpc+unix:" + Name);
    struct stat Status{};
    ASSERT_EQ(::stat(Name.c_str(), &Status), 0);
    EXPECT_EQ(Status.st_mode & 0777, 0600U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(Directory.path()));
}

TEST_F(GRPCFault, ADeadServersSocketIsTakenOver) {
  model("grpc+unix:" + Name, 0, Then::Die)->signal(0);
  Child Dead([&] {
    auto Server = serverAt("grpc+unix:" + Name);
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  Dead.wait();
  ASSERT_TRUE(std::filesystem::exists(Name));
  EchoModel Model(serverAt("grpc+unix:" + Name));
  connectTo("grpc+unix:" + Name + "?serdes=bitstream");
  expectEcho(1.5);
}

//===----------------------------------------------------------------------===//
// Compilers
//===----------------------------------------------------------------------===//

TEST_F(GRPCFault, ACompilerThatStopsReadingDelaysNoOther) {
  ListenerOptions Options;
  Options.PeerTimeout = ShortWait;
  EchoModel Model(serverAt(listening(), Options));
  // The request is far larger than a flow control window.
  RawCall Deaf(Port, "session",
               {{"mlbridge-protocol", "1"}, {"mlbridge-serdes", "json"}});
  const std::string Request = "{\"x\":\"" + std::string(8 << 20, 'x') + "\"}";
  ASSERT_TRUE(Deaf.write(Request));
  connectTo(local("timeout=5s"));
  // The timeout for an unread reply starts only when the server has read the
  // request and written its reply.
  for (Deadline Until = Deadline::in(ShortWait + 3 * Slack); !Until.expired();)
    expectEcho(1.5);
  Error Why = Model.stop().lastSessionError();
  EXPECT_EQ(Why.code(), ErrorCode::Timeout) << Why.str();
  EXPECT_NE(Why.message().find("did not read its reply"), std::string::npos);
}

TEST_F(GRPCFault, SixtyFourCompilersAtOnce) {
  EchoModel Model(serverAt(listening()));
  RunnerFactory Factory;
  addGRPC(Factory);
  std::atomic<int> Right = 0;
  std::vector<std::thread> Compilers;
  for (int C = 0; C < 64; ++C)
    Compilers.emplace_back([&, C] {
      auto Made = Factory.create(local(C % 2 ? "call=unary" : "call=stream"));
      for (int I = 0; Made && I < 20; ++I) {
        (*Made)->populateFeatures(std::pair{"x", 1000 * C + I});
        auto Reply = (*Made)->tryEvaluate<int>();
        Right += Reply && *Reply == 1000 * C + I;
      }
    });
  for (std::thread &T : Compilers)
    T.join();
  EXPECT_EQ(Right, 64 * 20);
  EXPECT_EQ(Model.stop().statistics().Sessions, 64U);
}

TEST_F(GRPCFault, DescriptorsAreNotLeftBehind) {
  EchoModel Model(serverAt(listening()));
  auto Round = [&] {
    for (const char *Call : {"stream", "unary"}) {
      connectTo(local(std::string("call=") + Call));
      expectEcho(1.5);
      Runner.reset();
    }
    // The server closes its end of a connection soon after the compiler closes
    // the other end. The server also keeps unary sessions for a while, each
    // with an eventfd.
    std::this_thread::sleep_for(100ms);
    return countOpenDescriptors();
  };
  const std::size_t Once = Round();
  for (int I = 0; I < 5; ++I)
    Round();
  EXPECT_LE(Round(), Once + 6);
}

//===----------------------------------------------------------------------===//
// Certificates
//===----------------------------------------------------------------------===//

namespace {

class GRPCCertificates : public GRPCFault {
protected:
  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    ASSERT_TRUE(makeAuthority("ca") && makeAuthority("other"));
    ASSERT_TRUE(makeCertificate("server", "ca") &&
                makeCertificate("client", "ca") &&
                makeCertificate("stranger", "other"));
  }

  bool openssl(const std::string &Arguments) const {
    // The test itself wrote the command.
    // NOLINTNEXTLINE(bugprone-command-processor)
    return std::system(("cd " + Directory.path() + " && openssl " + Arguments +
                        " >openssl.log 2>&1")
                           .c_str()) == 0;
  }
  bool makeAuthority(const std::string &Name) const {
    return openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                   "-nodes -days 2 -subj /CN=" +
                   Name + " -keyout " + Name + ".key -out " + Name + ".pem");
  }
  bool makeCertificate(const std::string &Name,
                       const std::string &Authority) const {
    return openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                   "-nodes -days 2 -subj /CN=" +
                   Name + " -addext subjectAltName=IP:127.0.0.1 -CA " +
                   Authority + ".pem -CAkey " + Authority + ".key -keyout " +
                   Name + ".key -out " + Name + ".pem");
  }
  std::string file(const std::string &Option, const std::string &Name) const {
    return "&" + Option + "=" + Directory.path(Name);
  }
  std::string identity(const std::string &Name) const {
    return file("cert", Name + ".pem") + file("key", Name + ".key");
  }
};

} // namespace

TEST_F(GRPCCertificates, TheRightOnesAreAccepted) {
  EchoModel Model(serverAt(listening() + "?max-message=1GiB" +
                           identity("server") + file("tls", "ca.pem")));
  connectTo(local("connect=30s" + file("tls", "ca.pem") + identity("client")));
  expectEcho(1.5);
}

TEST_F(GRPCCertificates, AServerOfAnotherAuthorityIsNotAsked) {
  EchoModel Model(
      serverAt(listening() + "?max-message=1GiB" + identity("stranger")));
  connectTo(local("connect=30s" + file("tls", "ca.pem")));
  expectFailure(ErrorCode::System, "no authority in tls=");
}

TEST_F(GRPCCertificates, AServerOfAnotherNameIsNotAsked) {
  EchoModel Model(
      serverAt(listening() + "?max-message=1GiB" + identity("server")));
  connectTo("grpc://localhost:" + std::to_string(Port) +
            "?serdes=bitstream&connect=30s" + file("tls", "ca.pem"));
  expectFailure(ErrorCode::System, "another name");
}

TEST_F(GRPCCertificates, ACompilerWithoutACertificateIsRefused) {
  EchoModel Model(serverAt(listening() + "?max-message=1GiB" +
                           identity("server") + file("tls", "ca.pem")));
  connectTo(local("connect=1s" + file("tls", "ca.pem")));
  expectFailure(ErrorCode::Unsupported, "it requires one signed", 1s + Slack);
  connectTo(local("connect=1s" + file("tls", "ca.pem") + identity("stranger")));
  expectFailure(ErrorCode::Unsupported, "it requires one signed", 1s + Slack);
  connectTo(local("connect=300ms"));
  expectFailure(ErrorCode::Timeout, "no model at", ShortWait + Slack);
}

TEST_F(GRPCCertificates, FilesThatNeverEndAreNotRead) {
  ASSERT_EQ(::mkfifo(Directory.path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/dev/zero", Directory.path("zeros").c_str()), 0);
  ASSERT_EQ(::mkdir(Directory.path("folder").c_str(), 0700), 0);
  // The file is sparse and has 1 TiB, so it must not be read into memory.
  std::ofstream(Directory.path("large")) << "-----BEGIN ";
  std::filesystem::resize_file(Directory.path("large"), std::uintmax_t(1)
                                                            << 40);
  const std::pair<const char *, const char *> Wrong[] = {
      {"fifo", "expected a regular file, found a FIFO"},
      {"zeros", "expected a regular file, found a device"},
      {"folder", "expected a regular file, found a folder"},
      {"large", "expected at most 16777216 bytes, found more"},
  };
  for (const std::string Option : {"tls", "cert", "key"})
    for (const auto &[Name, Why] : Wrong) {
      std::string Options;
      for (const std::string Other : {"tls", "cert", "key"})
        Options += file(Other, Other == Option  ? Name
                               : Other == "tls" ? "ca.pem"
                               : Other == "key" ? "server.key"
                                                : "server.pem");
      const std::string Expected =
          "cannot read " + Directory.path(Name) + " (" + Option + "=): " + Why;
      // If a read blocked, the whole test would fail by its timeout.
      connectTo(local("connect=1s" + Options));
      const auto Start = std::chrono::steady_clock::now();
      auto Reply = ask(1.5);
      EXPECT_THAT(std::string(Reply.message()), HasSubstr(Expected));
      EXPECT_NE(Reply.code(), ErrorCode::Timeout);
      auto Listener =
          openGRPCListener(listening() + "?max-message=1GiB" + Options);
      EXPECT_THAT(std::string(Listener.message()), HasSubstr(Expected));
      EXPECT_LT(std::chrono::steady_clock::now() - Start, Slack);
    }
}

TEST_F(GRPCCertificates, MissingOrWrongFilesAreErrors) {
  connectTo(local("tls=" + Directory.path("missing.pem")));
  EXPECT_EQ(ask(1.5).code(), ErrorCode::System);
  connectTo(local("tls=" + Directory.path("ca.key")));
  EXPECT_FALSE(
      openGRPCListener(listening() + "?tls=" + Directory.path("ca.pem")));
}
