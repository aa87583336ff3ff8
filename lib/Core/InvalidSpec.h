//===- InvalidSpec.h - Errors about model specs -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines invalidSpec(), which creates the errors about model specs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_CORE_INVALIDSPEC_H
#define MLBRIDGE_LIB_CORE_INVALIDSPEC_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "Support/PrintableText.h"

#include <string>

namespace MLBridge {

/// Returns an InvalidArgument with the message "model spec '<Spec>': <Why>".
inline Error invalidSpec(std::string_view Spec, const std::string &Why) {
  return {ErrorCode::InvalidArgument,
          "model spec '" + printable(Spec) + "': " + Why};
}
inline Error invalidSpec(const ModelSpec &Spec, const std::string &Why) {
  return invalidSpec(
      Spec.Path.empty() ? Spec.Scheme : Spec.Scheme + ":" + Spec.Path, Why);
}

} // namespace MLBridge

#endif // MLBRIDGE_LIB_CORE_INVALIDSPEC_H
