//===- gRPCModelRunner.h - A model behind gRPC ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// gRPCModelRunner: asks a model on this machine or another through gRPC. The
/// specs are `grpc://HOST:PORT` and `grpc+unix:PATH`; docs/grpc.md has their
/// options. In the component MLCompilerBridge::gRPC, which a compiler that
/// wants it links and then says so:
/// \code
///   RunnerFactory Factory;
///   addGRPC(Factory);
///   auto Runner = Factory.create("grpc://advisor.example:50051");
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_GRPCMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_GRPCMODELRUNNER_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

namespace MLBridge {

class gRPCModelRunner final : public InterProcessModelRunner {
public:
  /// \p Address is `host:port`, or `unix:PATH`. \p Codec says how the messages
  /// are written; stock gRPC servers understand Protobuf.
  gRPCModelRunner(std::string Address, std::unique_ptr<BaseSerDes> Codec,
                  const gRPCOptions &Options = {});
};

/// What a client's spec says.
struct gRPCParts {
  std::string Address;
  std::unique_ptr<BaseSerDes> Codec;
  gRPCOptions Options;
};
Expected<gRPCParts> parseGRPC(std::string_view Spec,
                              const SerDesFactory &Formats = {});

/// Adds the schemes `grpc` and `grpc+unix` to \p Factory.
void addGRPC(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_GRPCMODELRUNNER_H
