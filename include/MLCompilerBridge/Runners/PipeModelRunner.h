//===- PipeModelRunner.h - A model through pipes ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines PipeModelRunner, which sends requests to a model in another process
/// of this machine through a pair of pipes. The spec is
/// `pipe:NAME?serdes=bitstream&timeout=30s`.
///
/// The model side is `PipeCompilerInterface(NAME)` in Python or a ModelServer
/// in C++. It may start before or after the compiler.
/// docs/reference/wire-format.md describes the handshake.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H

#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"

namespace MLBridge {

class PipeModelRunner final : public InterProcessModelRunner {
public:
  /// Creates a runner. \p Name is a path. The model side listens at NAME.sock.
  /// A foreign peer uses two FIFOs instead: the compiler reads NAME.in and
  /// writes NAME.out.
  explicit PipeModelRunner(std::string Name,
                           SerDes::Kind Format = SerDes::Kind::Bitstream,
                           TransportOptions Options = {});
  PipeModelRunner(std::string Name, std::unique_ptr<BaseSerDes> Codec,
                  TransportOptions Options = {});
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H
