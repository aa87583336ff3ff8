//===- ParseJSON.h - Parses untrusted JSON ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LLVM's JSON parser is recursive, so deeply nested brackets would overflow
/// the stack. Vocabularies, action spaces, model metadata and reset options are
/// parsed with this instead.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PARSEJSON_H
#define MLBRIDGE_LLVM_PARSEJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace MLBridge {

/// llvm::json::parse(), but fails if \p Text is nested more than 16 deep.
llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef Text);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PARSEJSON_H
