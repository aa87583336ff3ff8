//===- InterProcessSpec.h - Specs of models in other processes --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates the transport and the SerDes for specs such as
/// `pipe:NAME?serdes=json`. Runners and environments both use these functions.
/// To add a transport, add a line to the table in InterProcessSpec.cpp.
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
  /// The line for --help, as in RunnerFactory::Scheme.
  std::string_view Help;
  std::unique_ptr<Transport> (*Make)(std::string Path, TransportOptions);
};
Span<const InterProcessScheme> interProcessSchemes();

/// Checks a spec of one of these schemes. Opens no file or connection.
Error checkInterProcess(const ModelSpec &Spec);

/// The transport and the SerDes for a spec.
struct InterProcessParts {
  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  TransportOptions Options;
};
/// Creates the parts for \p Spec, but does not connect. The option `serdes`
/// names one of \p Formats. If the spec lacks the option `connect`,
/// \p ConnectTimeout applies.
Expected<InterProcessParts>
makeInterProcess(const ModelSpec &Spec, const SerDesFactory &Formats,
                 Duration ConnectTimeout = TransportOptions().ConnectTimeout);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_INTERPROCESSSPEC_H
