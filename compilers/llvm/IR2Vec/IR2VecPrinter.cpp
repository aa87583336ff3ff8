//===- IR2VecPrinter.cpp - Embeddings as text -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the printer passes and registers them with their analysis.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/IR2VecPrinter.h"

#include "IR2Vec/IR2VecOptions.h"
#include "IR2Vec/ModuleEmbedder.h"
#include "Support/Options.h"
#include "Support/RegisterModulePass.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace MLBridge {
static void print(raw_ostream &OS, ArrayRef<float> Embedding) {
  OS << " [";
  for (float Element : Embedding)
    // Print nine digits, which distinguish any two floats.
    OS << ' ' << format("%.9g", Element);
  OS << " ]\n";
}

namespace {

class IR2VecPrinterPass : public PassInfoMixin<IR2VecPrinterPass> {
public:
  explicit IR2VecPrinterPass(bool Instructions) : Instructions(Instructions) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (ir2vecVocabulary().empty()) {
      emitError(M, "no vocabulary; use -mlbridge-ir2vec-vocabulary=FILE");
      return PreservedAnalyses::all();
    }
    Expected<EmbeddingVocabulary> Vocabulary =
        EmbeddingVocabulary::load(ir2vecVocabulary());
    if (!Vocabulary) {
      emitError(M, Vocabulary.takeError().str());
      return PreservedAnalyses::all();
    }
    FunctionAnalysisManager &FAM =
        MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    // Print everything in one write, because other ThinLTO back ends may print
    // at the same time.
    SmallString<0> Text;
    raw_svector_ostream OS(Text);
    print(OS, M, FAM, *Vocabulary);
    errs() << Text;
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  static void emitError(Module &M, const Twine &Message) {
    M.getContext().emitError("mlbridge-ir2vec: " + Message);
  }

  void print(raw_ostream &OS, Module &M, FunctionAnalysisManager &FAM,
             const EmbeddingVocabulary &Vocabulary) const {
    ModuleEmbedder Embedder(Vocabulary, ir2vecOptions());
    SmallVector<float, 0> Into(Vocabulary.dimension());
    OS << "IR2Vec of " << M.getModuleIdentifier() << ": "
       << embeddingKindName(Embedder.options().Kind) << ", "
       << normalizationName(Embedder.options().Normalize) << ", dimension "
       << Vocabulary.dimension() << ", vocabulary " << Vocabulary.metadata()
       << '\n';
    for (Function &F : M) {
      if (F.isDeclaration())
        continue;
      OS << "function " << F.getName() << ", "
         << Embedder.histogram(F, FAM).instructions() << " instructions:";
      Embedder.embed(F, FAM, Into);
      MLBridge::print(OS, Into);
      if (!Instructions)
        continue;
      for (const BasicBlock &Block : F)
        for (const Instruction &I : Block) {
          if (isWithoutEntities(I))
            continue;
          OS << I << ':';
          Embedder.embed(I, Into);
          MLBridge::print(OS, Into);
        }
    }
    OS << "module, " << Embedder.histogram(M, FAM).instructions()
       << " instructions:";
    Embedder.embed(M, FAM, Into);
    MLBridge::print(OS, Into);
  }

  bool Instructions;
};

} // namespace

void registerIR2Vec(PassBuilder &PB) {
  PB.registerAnalysisRegistrationCallback([](FunctionAnalysisManager &FAM) {
    FAM.registerPass(
        [] { return EntityHistogramAnalysis(ir2vecOptions().Kind); });
  });
  registerModulePass(PB, "print<mlbridge-ir2vec>",
                     IR2VecPrinterPass(/*Instructions=*/false));
  registerModulePass(PB, "print<mlbridge-ir2vec;instructions>",
                     IR2VecPrinterPass(/*Instructions=*/true));
}

} // namespace MLBridge
