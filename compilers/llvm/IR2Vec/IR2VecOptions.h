//===- IR2VecOptions.h - Options of embeddings ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that return the values of the options -mlbridge-ir2vec*.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IR2VECOPTIONS_H
#define MLBRIDGE_LLVM_IR2VEC_IR2VECOPTIONS_H

#include "IR2Vec/ModuleEmbedder.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Returns the value of `-mlbridge-ir2vec-vocabulary=FILE`, the vocabulary file
/// for embeddings. The value is empty if the option was not given.
llvm::StringRef ir2vecVocabulary();

/// Returns the values of `-mlbridge-ir2vec-kind` and
/// `-mlbridge-ir2vec-normalization`.
EmbeddingOptions ir2vecOptions();
/// Each field is true if the command line contains the field's option.
struct IR2VecOptionsGiven {
  bool Kind, Normalization;
};
IR2VecOptionsGiven ir2vecOptionsGiven();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IR2VECOPTIONS_H
