//===- PipeTransport.h - The compiler's end of pipes ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the compiler's end of a session through pipes, for use without a
/// PipeModelRunner.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// Creates the transport that PipeModelRunner uses. To use it with another
/// SerDes, pass it to an InterProcessModelRunner. \p Name is a path. The model
/// side listens at NAME.sock. A foreign peer uses two FIFOs instead: the
/// compiler reads NAME.in and writes NAME.out.
std::unique_ptr<Transport> createPipeTransport(std::string Name,
                                               TransportOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
