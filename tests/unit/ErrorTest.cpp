//===- ErrorTest.cpp - Error and Expected ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Error and Expected, which all fallible functions return.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

using namespace MLBridge;
using testing::HasSubstr;

TEST(ErrorTest, DefaultIsSuccess) {
  Error E;
  EXPECT_FALSE(E);
  EXPECT_EQ(E.code(), ErrorCode::Success);
  EXPECT_EQ(E.str(), "Success");
  EXPECT_FALSE(Error::success());
}

TEST(ErrorTest, HasCodeAndMessage) {
  Error E(ErrorCode::Timeout, "pipe:/tmp/advisor did not answer within 30 s");
  EXPECT_TRUE(E);
  EXPECT_EQ(E.str(), "Timeout: pipe:/tmp/advisor did not answer within 30 s");
  EXPECT_FALSE(E.isDeferred());
  EXPECT_TRUE(Error::deferred("why").isDeferred());
}

TEST(ErrorTest, EachCodeHasItsName) {
  std::pair<ErrorCode, std::string_view> Names[] = {
      {ErrorCode::Success, "Success"},
      {ErrorCode::Timeout, "Timeout"},
      {ErrorCode::PeerClosed, "PeerClosed"},
      {ErrorCode::Malformed, "Malformed"},
      {ErrorCode::SchemaMismatch, "SchemaMismatch"},
      {ErrorCode::Model, "Model"},
      {ErrorCode::Unsupported, "Unsupported"},
      {ErrorCode::System, "System"},
      {ErrorCode::InvalidArgument, "InvalidArgument"},
      {ErrorCode::Deferred, "Deferred"},
  };
  for (auto [Code, Name] : Names)
    EXPECT_EQ(errorCodeName(Code), Name);
}

TEST(ErrorTest, FromErrnoEndsWithTheSystemsReason) {
  Error E = Error::fromErrno(ENOSPC, "cannot write 'x.log'");
  EXPECT_EQ(E.code(), ErrorCode::System);
  EXPECT_EQ(E.message(), "cannot write 'x.log': No space left on device");
  EXPECT_THAT(Error::fromErrno(123456, "x").message(), HasSubstr("123456"));
}

TEST(ExpectedTest, HoldsAValue) {
  Expected<int> Five = 5;
  ASSERT_TRUE(Five);
  EXPECT_EQ(*Five, 5);
  EXPECT_EQ(Five.code(), ErrorCode::Success);
  EXPECT_EQ(Five.message(), "");
  EXPECT_FALSE(Five.takeError());
}

TEST(ExpectedTest, HoldsAnError) {
  Expected<std::string> None = Error(ErrorCode::Model, "broken");
  ASSERT_FALSE(None);
  EXPECT_EQ(None.code(), ErrorCode::Model);
  EXPECT_EQ(None.message(), "broken");
  EXPECT_EQ(None.takeError().str(), "Model: broken");
}

namespace {
struct Base {
  virtual ~Base() = default;
  virtual int number() const { return 1; }
};

struct Derived final : Base {
  int number() const override { return 2; }
};
} // namespace

TEST(ExpectedTest, TakesWhatConverts) {
  Expected<std::unique_ptr<Base>> FromValue = std::make_unique<Derived>();
  ASSERT_TRUE(FromValue);
  EXPECT_EQ((*FromValue)->number(), 2);

  Expected<std::unique_ptr<Base>> FromExpected =
      Expected<std::unique_ptr<Derived>>(std::make_unique<Derived>());
  ASSERT_TRUE(FromExpected);
  EXPECT_EQ((*FromExpected)->number(), 2);

  Expected<std::unique_ptr<Base>> FromError =
      Expected<std::unique_ptr<Derived>>(Error(ErrorCode::System, "no"));
  ASSERT_FALSE(FromError);
  EXPECT_EQ(FromError.takeError().str(), "System: no");

  const Error Kept(ErrorCode::System, "kept");
  Expected<bool> FromKept = Kept;
  EXPECT_FALSE(FromKept);
  EXPECT_EQ(FromKept.message(), "kept");
}
