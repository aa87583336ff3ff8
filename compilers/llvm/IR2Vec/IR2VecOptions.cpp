//===- IR2VecOptions.cpp - Options of embeddings --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/IR2VecOptions.h"

#include "Support/Options.h"

#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<std::string> IR2VecVocabularyOpt(
    "mlbridge-ir2vec-vocabulary", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("The IR2Vec vocabulary for embeddings of modules and functions, "
             "in LLVM's JSON format"));

cl::opt<EmbeddingKind> IR2VecKindOpt(
    "mlbridge-ir2vec-kind", cl::cat(optionCategory()),
    cl::init(EmbeddingKind::Symbolic), cl::desc("Kind of IR2Vec embeddings:"),
    cl::values(clEnumValN(EmbeddingKind::Symbolic, "symbolic",
                          "each instruction by itself (default)"),
               clEnumValN(EmbeddingKind::FlowAware, "flow-aware",
                          "each instruction with the definitions of its "
                          "operands, whose weight decreases with distance"),
               clEnumValN(EmbeddingKind::LLVMFlowAware, "llvm-flow-aware",
                          "LLVM's variant, whose numbers grow without limit")));

cl::opt<Normalization> IR2VecNormalizationOpt(
    "mlbridge-ir2vec-normalization", cl::cat(optionCategory()),
    cl::init(Normalization::PerInstruction),
    cl::desc("Normalization of embeddings, which are sums over instructions:"),
    cl::values(clEnumValN(Normalization::None, "none", "none"),
               clEnumValN(Normalization::PerInstruction, "per-instruction",
                          "divide by the number of instructions (default)"),
               clEnumValN(Normalization::Logarithmic, "logarithmic",
                          "take the logarithm of each element's magnitude")));

} // namespace

StringRef ir2vecVocabulary() { return IR2VecVocabularyOpt; }
EmbeddingOptions ir2vecOptions() {
  return {IR2VecKindOpt, IR2VecNormalizationOpt};
}
IR2VecOptionsGiven ir2vecOptionsGiven() {
  return {IR2VecKindOpt.getNumOccurrences() != 0,
          IR2VecNormalizationOpt.getNumOccurrences() != 0};
}

} // namespace MLBridge
