//===- PipeModelRunner.cpp - A model through pipes ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/PipeModelRunner.h"

#include "MLCompilerBridge/Transport/PipeTransport.h"

using namespace MLBridge;

PipeModelRunner::PipeModelRunner(std::string Name, SerDes::Kind Format,
                                 TransportOptions Options)
    : PipeModelRunner(std::move(Name), SerDes::create(Format), Options) {}

PipeModelRunner::PipeModelRunner(std::string Name,
                                 std::unique_ptr<BaseSerDes> Codec,
                                 TransportOptions Options)
    : InterProcessModelRunner(createPipeTransport(std::move(Name), Options),
                              std::move(Codec), Options.ConnectTimeout) {}
