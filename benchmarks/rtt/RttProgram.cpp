//===- RttProgram.cpp - The program rtt-client ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the client of `mlbridge bench rtt` as a program.
///
//===----------------------------------------------------------------------===//

#include "RttClient.h"

int main(int NumArguments, char **Arguments) {
  MLBridge::bench::runRttClient(
      {Arguments, static_cast<std::size_t>(NumArguments)});
}
