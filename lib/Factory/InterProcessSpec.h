//===- InterProcessSpec.h - Specs of models in other processes --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From `pipe:NAME?serdes=json` to a transport and a SerDes, for all that talk
/// through them: runners, and environments. A new transport is one line of the
/// table in InterProcessSpec.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_INTERPROCESSSPEC_H
#define MLBRIDGE_LIB_FACTORY_INTERPROCESSSPEC_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>
#include <string_view>

namespace MLBridge {

struct InterProcessScheme {
  std::string_view Name;
  /// For RunnerFactory::Scheme.
  std::string_view Help;
  std::unique_ptr<Transport> (*Make)(std::string Path, TransportOptions);
};
Span<const InterProcessScheme> interProcessSchemes();

/// What is wrong with a spec of one of these schemes, found without opening
/// anything.
Error checkInterProcess(const ModelSpec &Spec);

/// What such a spec names.
struct InterProcessParts {
  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  TransportOptions Options;
};
/// Connects nothing yet. The spec's `serdes` is one of \p Formats; \p
/// ConnectTimeout holds where the spec has none.
Expected<InterProcessParts>
makeInterProcess(const ModelSpec &Spec, const SerDesFactory &Formats,
                 Duration ConnectTimeout = TransportOptions().ConnectTimeout);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_INTERPROCESSSPEC_H
