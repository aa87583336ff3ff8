//===- ResetOptions.h - A trainer's options for an episode ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the options that a trainer sends with a reset, as JSON.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_RESETOPTIONS_H
#define MLBRIDGE_LLVM_SUPPORT_RESETOPTIONS_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace MLBridge {

/// Returns InvalidArgument with a message about the options of a reset.
Error invalidResetOptions(const llvm::Twine &Why);

/// Calls \p Read for each key of \p JSON, which is an object or an empty text.
/// Returns InvalidArgument for anything else, or the first error of \p Read.
Error parseResetOptions(
    llvm::StringRef JSON,
    llvm::function_ref<Error(llvm::StringRef Key, const llvm::json::Value &)>
        Read);

/// Reads the name of a file. Returns InvalidArgument if \p Value is not a
/// non-empty string.
Error readFileName(llvm::StringRef Key, const llvm::json::Value &Value,
                   std::string &Into);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_RESETOPTIONS_H
