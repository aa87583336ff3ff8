//===- IR2VecPrinter.h - Embeddings as text ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The passes that print what a model would be given of a module:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so
///       -mlbridge-ir2vec-vocabulary=ir2vec-300d.json
///       -passes='print<mlbridge-ir2vec>' -disable-output a.ll
/// \endcode
/// `print<mlbridge-ir2vec>` prints to stderr the vocabulary, then an embedding
/// for each function and one for the module;
/// `print<mlbridge-ir2vec;instructions>` also one for each instruction. Numbers
/// have as many digits as a float needs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H
#define MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the passes with \p PB, and the analysis by which they count. It
/// does nothing unless it is asked for.
void registerIR2Vec(llvm::PassBuilder &PB);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IR2VECPRINTER_H
