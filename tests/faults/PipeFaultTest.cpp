//===- PipeFaultTest.cpp - Faults of pipes ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests every known way in which the other side of a pipe fails. Each failure
/// must end in a typed error within the deadline and leave nothing behind. The
/// peers are real processes, which are really killed and stopped.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "MLCompilerBridge/Transport/ModelServer.h"
#include "MLCompilerBridge/Transport/PipeTransport.h"
#include "RawModel.h"
#include "support/Sanitizers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <thread>
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
// No model
//===----------------------------------------------------------------------===//

TEST_F(PipeFault, NoModelIsATimeoutThatSaysWhatToStart) {
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "mlbridge.serve", ShortWait + Slack);
}

TEST_F(PipeFault, FifosWithoutAModelAreATimeout) {
  RawBareModel::makeFifos(Name);
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "no server has opened it",
                ShortWait + Slack);
}

TEST_F(PipeFault, SocketOfADeadModelIsATimeout) {
  Child Dead([&] {
    RawModel Model(Name);
    ::_exit(0); // The socket file stays.
    return 0;
  });
  Dead.wait();
  ASSERT_TRUE(exists(".sock"));
  connect(SerDes::Kind::Bitstream, ShortWait);
  expectFailure(ErrorCode::Timeout, "no process listens", ShortWait + Slack);
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
    Model.acceptAndReadRequest();
    Model.writeFrame("{\"out\":2.5}");
    return 0;
  });
  connect(SerDes::Kind::JSON);
  Expected<float> Reply = ask();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_EQ(*Reply, 2.5f);
}

//===----------------------------------------------------------------------===//
// The model dies, stops or hangs, at every step
//===----------------------------------------------------------------------===//

/// The last step that a model side takes before its fault.
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

/// Runs a model side until it has done the step \p Last.
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
  // A model that dies during the handshake looks like a model that has not
  // started yet. It may be restarted, so the error is then a timeout.
  connect(SerDes::Kind::JSON, ShortWait);
  if (GetParam() == Step::AfterAReply) {
    Expected<float> Reply = ask();
    ASSERT_TRUE(Reply) << Reply.takeError().str();
    ASSERT_EQ(*Reply, 2.5f);
    Model.wait();
  }
  if (GetParam() == Step::Connected)
    expectFailure(ErrorCode::Timeout, "no process listens", ShortWait + Slack);
  else
    expectFailure(ErrorCode::PeerClosed, "pipe:" + Name);
  // The dead session must not block the next request either.
  expectFailure(ErrorCode::Timeout, "no process listens", ShortWait + Slack);
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

TEST_F(PipeFault, ReplyToARequestThatWasGivenUpIsNeverRead) {
  Child Model([&] {
    RawModel M(Name);
    M.acceptAndReadRequest();
    ::poll(nullptr, 0, 600);
    if (M.hasReader()) // A late reply would then be read.
      return 9;
    M.acceptAndReadRequest();
    M.writeFrame("{\"out\":2}");
    return 0;
  });
  connect(SerDes::Kind::JSON);
  Runner->setTimeout(ShortWait);
  expectFailure(ErrorCode::Timeout, "did not answer", ShortWait + Slack);
  Runner->setTimeout(20s);
  Expected<int> Reply = ask<int>();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_EQ(*Reply, 2);
  EXPECT_EQ(Model.wait(), 0) << "the late reply must have no reader";
}

TEST_F(PipeFault, ADuplicateReplyAnswersNoOtherRequest) {
  for (int Version : {ProtocolVersions::First, ProtocolVersions::Newest})
    for (auto Pause : {0ms, 50ms}) {
      SCOPED_TRACE("version " + std::to_string(Version));
      Child Model([&] {
        RawModel M(Name, Version);
        M.acceptAndReadRequest();
        M.writeFrame("{\"out\":1}");
        ::poll(nullptr, 0, static_cast<int>(Pause.count()));
        M.writeFrame("{\"out\":1}");
        M.readRequest();
        M.writeFrame("{\"out\":2}");
        ::poll(nullptr, 0, 60'000);
        return 0;
      });
      connect(SerDes::Kind::JSON);
      Runner->setTimeout(2s);
      if (Expected<int> First = ask<int>()) {
        EXPECT_EQ(*First, 1);
        // In frames without numbers, only a duplicate that arrives before the
        // next request is noticed.
        std::this_thread::sleep_for(2 * Pause + 100ms);
        expectFailure<int>(ErrorCode::Malformed, "pipe:" + Name);
      } else {
        EXPECT_EQ(First.code(), ErrorCode::Malformed) << First.message();
      }
      Model.kill();
      std::filesystem::remove(Name + ".sock");
    }
}

TEST_F(PipeFault, AReplyMustHaveTheRequestsNumber) {
  for (std::uint64_t Number : {0, 1, 3, -1}) {
    Child Model([&] {
      RawModel M(Name);
      M.acceptAndReadRequest();
      M.writeFrame("{\"out\":1}");
      M.readRequest();
      if (M.request() != 2)
        return 9;
      M.writeFrameAs(Number, "{\"out\":2}");
      ::poll(nullptr, 0, 60'000);
      return 0;
    });
    connect(SerDes::Kind::JSON);
    Expected<int> First = ask<int>();
    ASSERT_TRUE(First) << First.message();
    expectFailure<int>(ErrorCode::Malformed, "expected 2");
    Model.kill();
    std::filesystem::remove(Name + ".sock");
  }
}

TEST_F(PipeFault, AModelOfTheLastReleaseWorks) {
  Child Model([&] {
    RawModel M(Name, ProtocolVersions::First);
    M.acceptAndReadRequest();
    for (int I = 1;; ++I) {
      M.writeFrame("{\"out\":" + std::to_string(I) + "}");
      if (I == 10)
        return 0;
      M.readRequest();
    }
  });
  connect(SerDes::Kind::JSON);
  for (int I = 1; I <= 10; ++I) {
    Expected<int> Reply = ask<int>();
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, I);
  }
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
  SignalStorm Storm;
  Runner->populateFeatures(std::pair{"x", Span<const float>(Huge)});
  Clock::time_point Start = Clock::now();
  Expected<float> Reply = Runner->tryEvaluate<float>();
  EXPECT_EQ(Reply.code(), ErrorCode::Timeout) << Reply.message();
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

//===----------------------------------------------------------------------===//
// Malformed replies
//===----------------------------------------------------------------------===//

struct BadReply {
  const char *What;
  SerDes::Kind Format;
  std::string Message;
  ErrorCode Code;
  std::string Mentions;
  /// The announced length, if it differs from the message's length.
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
    {"TruncatedJSON", SerDes::Kind::JSON, "{\"out\":[1.0,", // Nothing follows.
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
    M.acceptAndReadRequest();
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
    M.acceptAndReadRequest();
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
  Expected<float> Reply = ask();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_EQ(*Reply, 1.0f);
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

TEST_F(PipeFault, AnUnrequestedReplyOfABareModelIsMalformed) {
  RawBareModel::makeFifos(Name);
  Child Model([&] {
    RawBareModel M(Name);
    M.readRequest();
    M.writeFrame("{\"out\":1}");
    ::poll(nullptr, 0, 50);
    M.writeFrame("{\"out\":1}");
    M.readRequest();
    M.writeFrame("{\"out\":2}");
    ::poll(nullptr, 0, 60'000);
    return 0;
  });
  connect(SerDes::Kind::JSON);
  Runner->setTimeout(2s);
  Expected<int> First = ask<int>();
  ASSERT_TRUE(First) << First.message();
  std::this_thread::sleep_for(100ms);
  expectFailure<int>(ErrorCode::Malformed, "without a request");
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
// The server's files
//===----------------------------------------------------------------------===//

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

TEST_F(PipeFault, MemoryDoesNotGrowOver100000Requests) {
  Child Model([&]() -> int {
    auto Server = ModelServer::listen(Name);
    for (;;)
      if (auto Request = (*Server)->next(Deadline::in(20s)))
        (void)bool((*Server)->reply(Request->Features));
  });
  connect();
  std::size_t Before = 0;
  constexpr int Count = MLBRIDGE_UNDER_ASAN ? 11'000 : 101'000;
  for (int I = 0; I < Count; ++I) {
    if (I == 1000)
      Before = residentBytes();
    Expected<double> Reply = ask<double>(I);
    ASSERT_TRUE(Reply) << Reply.takeError().str();
    ASSERT_EQ(*Reply, I);
  }
  EXPECT_LT(residentBytes(), Before + (1 << 20));
}

} // namespace
