//===- GRPCServiceTest.cpp - A user's own gRPC service --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests runners and servers that use a method of a user's own service. They
/// talk to each other, and to peers that do not use this library.
///
//===----------------------------------------------------------------------===//

#include "GRPCPeers.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

static constexpr char Own[] = "&service=my.Advisor&method=Decide";

/// Returns the float that the model at \p Spec replies to one request.
static Expected<float> askOnce(const std::string &Spec,
                               std::string_view Control = {}) {
  RunnerFactory Factory;
  addGRPC(Factory);
  auto Runner = Factory.create(Spec + "serdes=bitstream" + Own);
  if (!Runner)
    return Runner.takeError();
  if (Control.empty())
    (*Runner)->populateFeatures(std::pair{"x", 1.5f});
  else
    (*Runner)->populateFeatures(std::pair{EchoModel::Control, Control});
  return (*Runner)->tryEvaluate<float>();
}

namespace {

class GRPCService : public testing::Test {
protected:
  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    awaitEndOfGRPC();
  }
};

TEST_F(GRPCService, CarriesRequestsAndFailures) {
  TemporaryDirectory Directory;
  const std::string Spec = "grpc+unix:" + Directory.path("model") + "?";
  auto Opened = openGRPCListener(Spec + "serdes=bitstream" + Own);
  ASSERT_TRUE(Opened) << Opened.takeError().str();
  EchoModel Model(serverOf(std::move(*Opened)));
  Expected<float> Reply = askOnce(Spec);
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 1.5f);
  EXPECT_EQ(askOnce(Spec, "fail").code(), ErrorCode::Model);
  EXPECT_EQ(askOnce(Spec, "defer").code(), ErrorCode::Deferred);
}

TEST_F(GRPCService, AServerHasOneMethod) {
  auto Opened =
      openGRPCListener(std::string("grpc://:0?serdes=bitstream") + Own);
  ASSERT_TRUE(Opened) << Opened.takeError().str();
  const std::string Name((*Opened)->name());
  const int Port = std::stoi(Name.substr(Name.rfind(':') + 1));
  EchoModel Model(serverOf(std::move(*Opened)));
  RawCall Call(Port, "/mlcompilerbridge.MLCompilerBridge/session", {});
  Call.write("x");
  const grpc::Status End = Call.end();
  EXPECT_EQ(End.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(End.error_message(), HasSubstr("expected /my.Advisor/Decide, "
                                             "found"));
}

TEST_F(GRPCService, StatusesOfOtherServersAreErrors) {
  for (auto [Status, Code] :
       {std::pair(grpc::StatusCode::ABORTED, ErrorCode::Deferred),
        std::pair(grpc::StatusCode::UNKNOWN, ErrorCode::Model),
        std::pair(grpc::StatusCode::UNIMPLEMENTED, ErrorCode::Unsupported)}) {
    StatusServer Server({Status, "not today"});
    Expected<float> Reply = askOnce(Server.spec() + "?");
    EXPECT_EQ(Reply.code(), Code);
    EXPECT_THAT(std::string(Reply.message()), HasSubstr("not today"));
  }
}

TEST_F(GRPCService, MistakesInSpecsAreNamed) {
  auto Says = [](const std::string &Options) {
    auto Opened = openGRPCListener("grpc://:0?" + Options);
    EXPECT_EQ(Opened.code(), ErrorCode::InvalidArgument);
    return std::string(Opened.message());
  };
  EXPECT_THAT(Says("service=my.Advisor"), HasSubstr("together"));
  EXPECT_THAT(Says("method=Decide"), HasSubstr("together"));
  EXPECT_THAT(Says("service=.my&method=Decide"), HasSubstr("together"));
  EXPECT_THAT(Says("serdes=bitstream"), HasSubstr("unknown option 'serdes'"));
  EXPECT_THAT(Says(std::string("serdes=mine") + Own),
              HasSubstr("unknown SerDes 'mine'"));
}

} // namespace
