//===- SharedMemoryModelRunner.cpp - A model via shared memory ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/SharedMemoryModelRunner.h"

#include "MLCompilerBridge/Transport/SharedMemoryTransport.h"

using namespace MLBridge;

SharedMemoryModelRunner::SharedMemoryModelRunner(std::string Name,
                                                 SerDes::Kind Format,
                                                 TransportOptions Options)
    : SharedMemoryModelRunner(std::move(Name), SerDes::create(Format),
                              Options) {}

SharedMemoryModelRunner::SharedMemoryModelRunner(
    std::string Name, std::unique_ptr<BaseSerDes> Codec,
    TransportOptions Options)
    : InterProcessModelRunner(
          createSharedMemoryTransport(std::move(Name), Options),
          std::move(Codec), Options.ConnectTimeout) {}
