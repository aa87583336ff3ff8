//===- PipeModelRunner.h - A model behind a pipe ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeModelRunner: asks a model in another process of this machine, through a
/// pair of FIFOs. The spec is `pipe:NAME?serdes=bitstream&timeout=30s`.
///
/// The model side (Python: `PipeCompilerInterface(NAME)`; C++: ModelServer) may
/// start before or after the compiler. docs/reference/wire-format.md describes
/// the handshake.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H

#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"

namespace MLBridge {

class PipeModelRunner final : public InterProcessModelRunner {
public:
  /// \p Name is a path: the model side listens at NAME.sock; foreign peers use
  /// the FIFOs NAME.in, which the compiler reads, and NAME.out, which it
  /// writes.
  explicit PipeModelRunner(std::string Name,
                           SerDes::Kind Format = SerDes::Kind::Bitstream,
                           TransportOptions Options = {});
  PipeModelRunner(std::string Name, std::unique_ptr<BaseSerDes> Codec,
                  TransportOptions Options = {});
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_PIPEMODELRUNNER_H
