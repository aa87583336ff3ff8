//===- GRPCTrainingTest.cpp - The compiler as a gRPC server ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the gRPC transports of a compiler and of a trainer against each other.
/// The compiler listens, one trainer at a time connects, and either side may
/// vanish.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/gRPCTraining.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

static Deadline soon() { return Deadline::in(10s); }

static Error send(Transport &Channel, std::string_view Text) {
  Expected<Span<std::byte>> Region = Channel.acquire(Text.size());
  if (!Region)
    return Region.takeError();
  std::ranges::copy(Text, reinterpret_cast<char *>(Region->data()));
  return Channel.commit(Text.size(), soon());
}

static std::string receive(Transport &Channel, Deadline Until = soon()) {
  Expected<Span<const std::byte>> Message = Channel.receive(Until);
  if (!Message)
    return Message.takeError().str();
  return {reinterpret_cast<const char *>(Message->data()), Message->size()};
}

namespace {

class GRPCTraining : public testing::Test {
protected:
  void SetUp() override { MLBRIDGE_SKIP_GRPC_UNDER_TSAN(); }

  void listen(const std::string &Spec) {
    auto Made = listenForTrainer(Spec);
    ASSERT_TRUE(Made) << Made.takeError().str();
    Compiler = std::move(*Made);
  }
  std::unique_ptr<Transport>
  trainer(gRPCOptions::Call Style = gRPCOptions::Call::Stream) const {
    gRPCOptions Options;
    Options.Style = Style;
    std::string Address = Compiler->describe();
    Address.erase(0, Address.starts_with("grpc+") ? 5 : 7);
    return createGRPCTrainerTransport(Address, Options);
  }
  /// Connects the compiler and the trainer.
  void connectBoth(Transport &Trainer) {
    std::thread Other([&] {
      auto Terms = Trainer.connect(Request, soon());
      EXPECT_TRUE(Terms) << Terms.takeError().str();
      // A unary trainer must send a command, because only then does the
      // compiler notice it.
      if (auto E = IsUnary ? send(Trainer, "act 0") : Error::success())
        ADD_FAILURE() << E.str();
    });
    auto Terms = Compiler->connect(Request, soon());
    EXPECT_TRUE(Terms) << Terms.takeError().str();
    Other.join();
  }

  SessionRequest Request{"bitstream", {}};
  bool IsUnary = false;
  TemporaryDirectory Directory;
  std::unique_ptr<Transport> Compiler;
};

} // namespace

TEST_F(GRPCTraining, AStreamBeginsWithTheCompiler) {
  for (const std::string &Spec :
       {std::string("grpc://:0"), "grpc+unix:" + Directory.path("env")}) {
    listen(Spec);
    // Three trainers connect one after another.
    for (int Round = 0; Round < 3; ++Round) {
      auto Trainer = trainer();
      connectBoth(*Trainer);
      EXPECT_FALSE(send(*Compiler, "ready"));
      EXPECT_EQ(receive(*Trainer), "ready");
      for (int I = 0; I < 20; ++I) {
        const std::string Action = "act " + std::to_string(I);
        EXPECT_FALSE(send(*Trainer, Action));
        EXPECT_EQ(receive(*Compiler), Action);
        EXPECT_FALSE(send(*Compiler, "saw " + Action));
        EXPECT_EQ(receive(*Trainer), "saw " + Action);
      }
      Trainer->close();
      EXPECT_EQ(Compiler->receive(soon()).code(), ErrorCode::PeerClosed);
    }
  }
}

TEST_F(GRPCTraining, AMissingCompilerIsToBeStarted) {
  gRPCOptions Options;
  Options.ConnectTimeout = std::chrono::milliseconds(50);
  auto Trainer =
      createGRPCTrainerTransport("unix:" + Directory.path("nobody"), Options);
  Request.Peer = PeerRole::Compiler;
  Error E = Trainer->connect(Request, Deadline::in(Options.ConnectTimeout))
                .takeError();
  EXPECT_EQ(E.code(), ErrorCode::Timeout) << E.str();
  EXPECT_NE(E.message().find("no compiler at "), std::string_view::npos)
      << E.str();
  EXPECT_NE(E.message().find("serveEnvironment"), std::string_view::npos)
      << E.str();
}

TEST_F(GRPCTraining, AUnaryTrainerSpeaksFirst) {
  IsUnary = true;
  listen("grpc://:0");
  auto Trainer = trainer(gRPCOptions::Call::Unary);
  connectBoth(*Trainer);
  EXPECT_FALSE(send(*Compiler, "ready"));
  EXPECT_EQ(receive(*Compiler), "act 0");
  EXPECT_FALSE(send(*Compiler, "saw 0"));
  EXPECT_EQ(receive(*Trainer), "saw 0");
  EXPECT_FALSE(send(*Trainer, "act 1"));
  EXPECT_EQ(receive(*Compiler), "act 1");
}

TEST_F(GRPCTraining, AnotherTrainerIsRefusedInWords) {
  listen("grpc://:0");
  auto First = trainer(), Second = trainer();
  connectBoth(*First);
  std::thread Impatient([&] {
    ASSERT_TRUE(Second->connect(Request, soon()));
    Error E = Second->receive(soon()).takeError();
    EXPECT_EQ(E.code(), ErrorCode::Unsupported);
    EXPECT_NE(E.message().find("already has a trainer"), std::string::npos)
        << E.str();
  });
  EXPECT_EQ(Compiler->receive(Deadline::in(1s)).code(), ErrorCode::Timeout);
  Impatient.join();
}

TEST_F(GRPCTraining, WaitsHaveDeadlines) {
  listen("grpc://:0");
  EXPECT_EQ(Compiler->connect(Request, Deadline::in(100ms)).code(),
            ErrorCode::Timeout);
  auto Trainer = trainer();
  connectBoth(*Trainer);
  EXPECT_EQ(Compiler->receive(Deadline::in(100ms)).code(), ErrorCode::Timeout);
  EXPECT_EQ(Trainer->receive(Deadline::in(100ms)).code(), ErrorCode::Timeout);
  Trainer->close();
  // This time the compiler closes first.
  Trainer = trainer();
  connectBoth(*Trainer);
  Compiler.reset();
  EXPECT_EQ(Trainer->receive(soon()).code(), ErrorCode::PeerClosed);
}

TEST_F(GRPCTraining, ThePortIsAnnounced) {
  const std::string File = Directory.path("port");
  listen("grpc://:0?announce=" + File);
  std::ifstream In(File);
  std::string Announced;
  std::getline(In, Announced);
  EXPECT_EQ(Announced, Compiler->describe());
  EXPECT_FALSE(listenForTrainer("grpc://:0?announce=/no/such/folder/file"));
  // A device or a FIFO is not replaced.
  const std::string FIFO = Directory.path("fifo");
  ASSERT_EQ(::mkfifo(FIFO.c_str(), 0600), 0);
  EXPECT_FALSE(listenForTrainer("grpc://:0?announce=" + FIFO));
  EXPECT_TRUE(std::filesystem::is_fifo(FIFO));
}
