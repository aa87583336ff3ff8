//===- RecordingTest.h - A test that records a log --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A fixture with a file for a log, and a runner that records to it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_UNIT_RECORDINGTEST_H
#define MLBRIDGE_TESTS_UNIT_RECORDINGTEST_H

#include "MLCompilerBridge/Runners/NoneModelRunner.h"
#include "MLCompilerBridge/Runners/RecordModelRunner.h"
#include "support/EchoModel.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace MLBridge::test {

class RecordingTest : public testing::Test {
protected:
  /// Returns a runner that records \p Inner to Path. Without \p Inner, the
  /// recorded runner always defers.
  std::unique_ptr<RecordModelRunner>
  record(std::unique_ptr<MLModelRunner> Inner = nullptr) {
    if (!Inner)
      Inner = std::make_unique<NoneModelRunner>();
    Expected<std::unique_ptr<RecordModelRunner>> Made =
        RecordModelRunner::create(Path, std::move(Inner));
    EXPECT_TRUE(Made) << Made.message();
    return Made ? std::move(*Made) : nullptr;
  }
  std::string log() const {
    std::ifstream In(Path, std::ios::binary);
    return {std::istreambuf_iterator<char>(In), {}};
  }

  TemporaryDirectory Directory;
  std::string Path = Directory.path("log");
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_UNIT_RECORDINGTEST_H
