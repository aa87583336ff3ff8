//===- gRPCModelRunner.h - A model through gRPC -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines gRPCModelRunner, which sends requests to a model on this or another
/// machine through gRPC. The specs are `grpc://HOST:PORT` and `grpc+unix:PATH`.
/// docs/guides/grpc.md lists their options. A compiler links the component
/// MLCompilerBridge::gRPC and adds the schemes:
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
  /// Creates a runner. \p Address is `host:port` or `unix:PATH`. \p Codec
  /// encodes the messages. Stock gRPC servers require a ProtobufSerDes.
  gRPCModelRunner(std::string Address, std::unique_ptr<BaseSerDes> Codec,
                  const gRPCOptions &Options = {});
};

struct gRPCParts {
  std::string Address;
  std::unique_ptr<BaseSerDes> Codec;
  gRPCOptions Options;
};
/// Parses a client's spec. Returns InvalidArgument if \p Spec is invalid. The
/// client is the compiler's side in inference, and the model's side in
/// training.
Expected<gRPCParts> parseGRPC(std::string_view Spec,
                              const SerDesFactory &Formats = {},
                              SerDes::Side Our = SerDes::Side::Compiler);

/// Adds the schemes `grpc` and `grpc+unix` to \p Factory.
void addGRPC(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_GRPCMODELRUNNER_H
