//===- ParseJSON.h - JSON that nobody vouches for ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LLVM's parser goes down by recursion, so that a text of brackets would end
/// the process. Vocabularies, action spaces, models' metadata and the options
/// of a reset are read by way of this.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PARSEJSON_H
#define MLBRIDGE_LLVM_PARSEJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace MLBridge {

/// llvm::json::parse(), with an error where \p Text is nested more than 16
/// deep.
llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef Text);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PARSEJSON_H
