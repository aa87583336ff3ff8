//===- SharedMemoryTransport.h - Shared memory, compiler's end --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the compiler's end of a session through shared memory, for use
/// without a SharedMemoryModelRunner.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_SHAREDMEMORYTRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_SHAREDMEMORYTRANSPORT_H

#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>

namespace MLBridge {

/// Creates the transport that SharedMemoryModelRunner uses. To use it with
/// another SerDes, pass it to an InterProcessModelRunner. \p Name is a path.
/// The model side listens at NAME.sock. The memory has no name in the file
/// system.
std::unique_ptr<Transport>
createSharedMemoryTransport(std::string Name, TransportOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_SHAREDMEMORYTRANSPORT_H
