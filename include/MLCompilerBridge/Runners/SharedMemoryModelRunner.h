//===- SharedMemoryModelRunner.h - A model via shared memory ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines SharedMemoryModelRunner, which sends requests to a model in another
/// process of this machine through shared memory. The spec is
/// `shm:NAME?serdes=bitstream&timeout=30s`. The compiler writes tensors
/// directly to the memory from which the model reads them. The model writes its
/// advice in the same way.
///
/// The model side is the same as for pipes: `mlbridge.serve` in Python or a
/// ModelServer in C++. It may start before or after the compiler.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H

#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"

namespace MLBridge {

class SharedMemoryModelRunner final : public InterProcessModelRunner {
public:
  /// Creates a runner. \p Name is a path. The model side listens at NAME.sock.
  explicit SharedMemoryModelRunner(
      std::string Name, SerDes::Kind Format = SerDes::Kind::Bitstream,
      TransportOptions Options = {});
  SharedMemoryModelRunner(std::string Name, std::unique_ptr<BaseSerDes> Codec,
                          TransportOptions Options = {});
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H
