//===- PipeTransport.h - A pipe to a model ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's end of a session over pipes, without a runner around it.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// For an InterProcessModelRunner of your own; PipeModelRunner is one with it.
/// \p Name is a path: the model side listens at NAME.sock, and NAME.in and
/// NAME.out are the FIFOs, as the compiler sees them, for foreign peers.
std::unique_ptr<Transport> createPipeTransport(std::string Name,
                                               TransportOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_PIPETRANSPORT_H
