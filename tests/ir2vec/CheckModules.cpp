//===- CheckModules.cpp - Embeddings of real modules ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The program ir2vec-check VOCABULARY.json MODULE.bc... For each module, it
/// compares the embeddings of instructions, functions and the module with
/// LLVM's. It then runs -Oz and, after each pass, compares the cached counts
/// with new counts. tests/python/test_ir2vec.py runs it on real modules.
///
//===----------------------------------------------------------------------===//

#include "LLVMEmbedder.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LazyCallGraph.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <vector>

using namespace MLBridge;
using llvm::StringRef;

namespace {

[[noreturn]] void fail(const llvm::Twine &What) {
  llvm::errs() << "ir2vec-check: " << What << "\n";
  std::exit(1);
}

/// Returns the number of compared embeddings.
std::size_t compareWithLLVM(llvm::Module &M,
                            const EmbeddingVocabulary &Vocabulary,
                            const llvm::ir2vec::Vocabulary &LLVMs,
                            EmbeddingKind Kind, llvm::IR2VecKind LLVMKind) {
  std::vector<float> Into(Vocabulary.dimension());
  llvm::ir2vec::Embedding Sum(Vocabulary.dimension());
  std::size_t Compared = 0;
  auto Compare = [&](const llvm::ir2vec::Embedding &Expected,
                     const llvm::Twine &Where) {
    if (!test::isSame(Into, Expected))
      fail(Where + ": not LLVM's " + embeddingKindName(Kind) + " embedding");
    ++Compared;
  };
  for (const llvm::Function &F : M) {
    if (F.isDeclaration())
      continue;
    auto Embedder = llvm::ir2vec::Embedder::create(LLVMKind, F, LLVMs);
    const llvm::ir2vec::Embedding Expected = Embedder->getFunctionVector();
    Vocabulary.embed(EntityHistogram::of(F, Kind), Normalization::None, Into);
    Compare(Expected, M.getModuleIdentifier() + ": " + F.getName());
    Sum += Expected;
    if (Kind != EmbeddingKind::Symbolic)
      continue;
    for (const llvm::BasicBlock &Block : F)
      for (const llvm::Instruction &I : Block.instructionsWithoutDebug()) {
        Vocabulary.embed(EntityHistogram::of(I), Normalization::None, Into);
        Compare(Embedder->getInstVector(I),
                M.getModuleIdentifier() + ": an instruction of " + F.getName());
      }
  }
  Vocabulary.embed(EntityHistogram::of(M, Kind), Normalization::None, Into);
  Compare(Sum, M.getModuleIdentifier());
  return Compared;
}

/// Observes passes and checks the cached counts after each pass.
class Watch {
public:
  Watch(llvm::Module &M, const EmbeddingVocabulary &Vocabulary,
        EmbeddingOptions Options)
      : M(M), Managers(&Instrumentation), Embedder(Vocabulary, Options) {
    // Passes run more often in a large module, mostly on one or a few
    // functions. Therefore, check only the functions on which the pass ran.
    constexpr std::uint64_t Large = 20000;
    IsLarge = EntityHistogram::of(M).instructions() > Large;
    // Register this before the check. Otherwise the check would see the
    // outdated counts that InstCombine leaves.
    ModuleEmbedder::distrustInstCombine(Instrumentation, Managers.Functions);
    Instrumentation.registerAfterPassCallback(
        [this](StringRef Pass, llvm::Any IR, const llvm::PreservedAnalyses &) {
          check(Pass, IR);
        });
    Embedder.registerAnalyses(Managers.Functions, Instrumentation);
    Managers.registerLLVMs();
  }

  void runOz() {
    static_cast<void>(Embedder.histogram(M, Managers.Functions));
    llvm::ModulePassManager Oz = Managers.Builder.buildPerModuleDefaultPipeline(
        llvm::OptimizationLevel::Oz);
    Oz.run(M, Managers.Modules);
  }

  std::size_t checks() const { return Checks; }
  std::size_t passes() const { return Passes.size(); }
  /// The number of functions that were counted, and the number that would be
  /// counted without a cache.
  std::size_t counted() const { return Embedder.functionsCounted(); }
  std::size_t asked() const { return Asked; }

private:
  void check(StringRef Pass, const llvm::Any &IR) {
    // The loop adaptor invalidates function analyses only after the last loop.
    if (llvm::any_cast<const llvm::Loop *>(&IR))
      return;
    Passes.insert(Pass);
    ++Checks;
    if (IsLarge) {
      if (const auto *Of = llvm::any_cast<const llvm::Function *>(&IR)) {
        check(Pass, const_cast<llvm::Function &>(**Of));
        return;
      }
      if (const auto *Of =
              llvm::any_cast<const llvm::LazyCallGraph::SCC *>(&IR)) {
        for (llvm::LazyCallGraph::Node &Node :
             const_cast<llvm::LazyCallGraph::SCC &>(**Of))
          check(Pass, Node.getFunction());
        return;
      }
    }
    if (MLBridge::Error E = Embedder.verify(M, Managers.Functions))
      fail(M.getModuleIdentifier() + ": after " + Pass + ": " + E.str());
    for (const llvm::Function &F : M)
      Asked += !F.isDeclaration();
    // The histogram of the module must be up to date.
    if (Embedder.histogram(M, Managers.Functions) !=
        EntityHistogram::of(M, Embedder.options().Kind))
      fail(M.getModuleIdentifier() + ": after " + Pass + ": outdated");
  }

  void check(StringRef Pass, llvm::Function &F) {
    ++Asked;
    if (!F.isDeclaration() &&
        Embedder.histogram(F, Managers.Functions) !=
            EntityHistogram::of(F, Embedder.options().Kind))
      fail(M.getModuleIdentifier() + ": after " + Pass +
           ": outdated: " + F.getName());
  }

  llvm::Module &M;
  llvm::PassInstrumentationCallbacks Instrumentation;
  test::AnalysisManagers Managers;
  ModuleEmbedder Embedder;
  llvm::StringSet<> Passes;
  std::size_t Checks = 0, Asked = 0;
  bool IsLarge = false;
};

std::unique_ptr<llvm::Module> read(const std::string &Path,
                                   llvm::LLVMContext &Context) {
  llvm::SMDiagnostic Problem;
  std::unique_ptr<llvm::Module> M = llvm::parseIRFile(Path, Problem, Context);
  if (!M)
    fail(Path + ": " + Problem.getMessage());
  return M;
}

void check(const std::string &Path, const std::string &VocabularyPath,
           const EmbeddingVocabulary &Vocabulary) {
  llvm::LLVMContext Context;
  std::unique_ptr<llvm::Module> M = read(Path, Context);
  const llvm::ir2vec::Vocabulary LLVMs = test::readByLLVM(VocabularyPath, *M);
  if (!LLVMs.isValid())
    fail("LLVM cannot read " + VocabularyPath);
  std::size_t Compared = 0;
  auto CompareBoth = [&] {
    Compared += compareWithLLVM(*M, Vocabulary, LLVMs, EmbeddingKind::Symbolic,
                                llvm::IR2VecKind::Symbolic);
    Compared +=
        compareWithLLVM(*M, Vocabulary, LLVMs, EmbeddingKind::LLVMFlowAware,
                        llvm::IR2VecKind::FlowAware);
  };
  CompareBoth();
  Watch Symbolic(*M, Vocabulary, {});
  Symbolic.runOz();
  CompareBoth();
  std::unique_ptr<llvm::Module> Again = read(Path, Context);
  Watch Flow(*Again, Vocabulary,
             {EmbeddingKind::FlowAware, Normalization::PerInstruction});
  Flow.runOz();
  llvm::outs() << Path << ": compared=" << Compared
               << " checks=" << Symbolic.checks() + Flow.checks()
               << " passes=" << Symbolic.passes()
               << " counted=" << Symbolic.counted()
               << " asked=" << Symbolic.asked() << "\n";
}

} // namespace

int main(int Argc, char **Argv) {
  if (Argc < 3)
    fail("usage: ir2vec-check VOCABULARY.json MODULE.bc...");
  MLBridge::Expected<EmbeddingVocabulary> Vocabulary =
      EmbeddingVocabulary::load(Argv[1]);
  if (!Vocabulary)
    fail(Vocabulary.takeError().str());
  for (int I = 2; I != Argc; ++I)
    check(Argv[I], Argv[1], *Vocabulary);
  return 0;
}
