//===- ParseJSON.h - Parses untrusted JSON ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// parseJSON() parses JSON from files, models and trainers. LLVM's parser is
/// recursive, so deeply nested brackets would overflow the stack. This function
/// rejects them first.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_PARSEJSON_H
#define MLBRIDGE_LLVM_SUPPORT_PARSEJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace MLBridge {

/// Parses \p Text with llvm::json::parse(). Returns an error if brackets are
/// nested more than 16 deep.
llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef Text);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_PARSEJSON_H
