//===- IR2VecPrinter.h - Embeddings as text ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Passes that print the embeddings of a module to stderr:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so
///       -mlbridge-ir2vec-vocabulary=ir2vec-300d.json
///       -passes='print<mlbridge-ir2vec>' -disable-output a.ll
/// \endcode
/// `print<mlbridge-ir2vec>` prints the vocabulary's name and hash, an embedding
/// for each function, and an embedding for the module.
/// `print<mlbridge-ir2vec;instructions>` also prints an embedding for each
/// instruction. Numbers have enough digits to reproduce each float.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H
#define MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the passes, and the analysis that they use, with \p PB. The passes
/// run only if -passes names them.
void registerIR2Vec(llvm::PassBuilder &PB);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H
