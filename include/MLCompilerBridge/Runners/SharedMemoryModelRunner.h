//===- SharedMemoryModelRunner.h - A model in shared memory -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SharedMemoryModelRunner: asks a model in another process of this machine
/// through shared memory. The spec is `shm:NAME?serdes=bitstream&timeout=30s`.
/// Tensors are written once, where the model reads them; advice returns the
/// same way.
///
/// The model side is the same as for pipes (Python: `mlbridge.serve`; C++:
/// ModelServer), and may start before or after the compiler.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H

#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"

namespace MLBridge {

class SharedMemoryModelRunner final : public InterProcessModelRunner {
public:
  /// \p Name is a path: the model side listens at NAME.sock.
  explicit SharedMemoryModelRunner(
      std::string Name, SerDes::Kind Format = SerDes::Kind::Bitstream,
      TransportOptions Options = {});
  SharedMemoryModelRunner(std::string Name, std::unique_ptr<BaseSerDes> Codec,
                          TransportOptions Options = {});
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_SHAREDMEMORYMODELRUNNER_H
