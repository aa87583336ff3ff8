//===- PipeTransport.h - The compiler's end of a pipe -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's end of a session over pipes, without a runner.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// Creates the transport of PipeModelRunner, for your own
/// InterProcessModelRunner. \p Name is a path: the model side listens at
/// NAME.sock; foreign peers use the FIFOs NAME.in, which the compiler reads,
/// and NAME.out, which it writes.
std::unique_ptr<Transport> createPipeTransport(std::string Name,
                                               TransportOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
