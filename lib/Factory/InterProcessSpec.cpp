//===- InterProcessSpec.cpp - Specs of models in other processes ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Factory/InterProcessSpec.h"

#include "Core/InvalidSpec.h"
#include "MLCompilerBridge/Transport/PipeTransport.h"
#include "MLCompilerBridge/Transport/SharedMemoryTransport.h"

using namespace MLBridge;

static constexpr InterProcessScheme Schemes[] = {
    {"pipe",
     "pipe:NAME?serdes=bitstream&connect=30s&max-message=1GiB: "
     "a model in another process of this machine",
     createPipeTransport},
    {"shm",
     "shm:NAME?serdes=bitstream&connect=30s&max-message=1GiB: "
     "a model in another process, through shared memory",
     createSharedMemoryTransport},
};

Span<const InterProcessScheme> MLBridge::interProcessSchemes() {
  return Schemes;
}

Error MLBridge::checkInterProcess(const ModelSpec &Spec) {
  static constexpr std::string_view Known[] = {"serdes", "connect",
                                               "max-message"};
  if (Spec.Path.empty())
    return invalidSpec(Spec, "expected the name at which the model listens "
                             "after '" +
                                 Spec.Scheme + ":'");
  if (Error E = Spec.checkOptions(Known))
    return E;
  return transportOptions(Spec).takeError();
}

Expected<InterProcessParts>
MLBridge::makeInterProcess(const ModelSpec &Spec, const SerDesFactory &Formats,
                           Duration ConnectTimeout) {
  Expected<TransportOptions> Options = transportOptions(Spec);
  if (!Options)
    return Options.takeError();
  if (!Spec.option("connect", {}).data())
    Options->ConnectTimeout = ConnectTimeout;
  Expected<std::unique_ptr<BaseSerDes>> Codec = Formats.create(
      Spec.option("serdes", "bitstream"), SerDes::Side::Compiler);
  if (!Codec)
    return Codec.takeError();
  for (const InterProcessScheme &Scheme : Schemes)
    if (Scheme.Name == Spec.Scheme)
      return InterProcessParts{Scheme.Make(Spec.Path, *Options),
                               std::move(*Codec), *Options};
  return Error(ErrorCode::InvalidArgument,
               "unknown transport '" + Spec.Scheme + "'");
}
