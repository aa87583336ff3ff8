//===- IR2VecBench.cpp - Times the embedding of a module ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times the embedding of a module:
///
///     ir2vec-bench VOCABULARY.json MODULE.bc [REPETITIONS [PIPELINE]]
///
/// `mlbridge bench ir2vec` runs this program. The output is an object of JSON.
/// The key "whole" has the times of embedding a module from scratch, by this
/// project and by LLVM. The key "passes" has the times of this project after
/// each pass of a sequence. If PIPELINE is given, such as 'default<O2>', it
/// runs first and scatters the instructions in memory.
///
/// The benchmark measures the thread's CPU time instead of the elapsed time,
/// because other load affects CPU time less. The thread never waits.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/ModuleEmbedder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/StructuralHash.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <ctime>

using namespace MLBridge;
using llvm::outs;
using llvm::StringRef;

/// The passes of -Oz, one pipeline per pass. They include function, call graph
/// and module passes.
static constexpr StringRef Passes[] = {
    "annotation2metadata",
    "forceattrs",
    "inferattrs",
    "function(lower-expect)",
    "function(simplifycfg)",
    "function(sroa)",
    "function(early-cse)",
    "ipsccp",
    "called-value-propagation",
    "globalopt",
    "function(instcombine<no-verify-fixpoint>)",
    "function(simplifycfg)",
    "inliner-wrapper",
    "rpo-function-attrs",
    "function(sroa)",
    "function(early-cse<memssa>)",
    "function(jump-threading)",
    "function(correlated-propagation)",
    "function(instcombine<no-verify-fixpoint>)",
    "function(tailcallelim)",
    "function(reassociate)",
    "function(loop-mssa(licm,loop-rotate))",
    "function(loop(indvars,loop-deletion))",
    "function(gvn)",
    "function(sccp)",
    "function(bdce)",
    "function(dse)",
    "function(adce)",
    "function(memcpyopt)",
    "function(simplifycfg)",
    "function(instcombine<no-verify-fixpoint>)",
    "deadargelim",
    "globalopt",
    "globaldce",
    "constmerge",
    "function(loop-vectorize)",
    "function(slp-vectorizer)",
    "function(alignment-from-assumptions)",
    "function(div-rem-pairs)",
    "function(tailcallelim)",
    "globaldce",
};

/// Returns this thread's CPU time in ms.
static double now() {
  timespec Time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &Time);
  return double(Time.tv_sec) * 1e3 + double(Time.tv_nsec) * 1e-6;
}

namespace {
/// Durations in ms.
struct Times {
  double Median, Best, Worst;
};
} // namespace

/// Calls \p Run \p Repetitions times and returns the statistics of the times.
template <typename Callable>
static Times measure(unsigned Repetitions, Callable Run) {
  std::vector<double> All;
  for (unsigned I = 0; I != Repetitions; ++I) {
    const double Start = now();
    Run();
    All.push_back(now() - Start);
  }
  llvm::sort(All);
  return {All[All.size() / 2], All.front(), All.back()};
}

static void writeRow(llvm::json::OStream &J, StringRef What, const Times &T) {
  J.object([&] {
    J.attribute("what", What);
    J.attribute("ms", T.Median);
    J.attribute("best_ms", T.Best);
    J.attribute("worst_ms", T.Worst);
  });
}

/// Converts the vocabulary to LLVM's data structure.
static llvm::ir2vec::Vocabulary forLLVM(const EmbeddingVocabulary &Vocabulary) {
  const unsigned Ends[] = {llvm::ir2vec::Vocabulary::MaxOpcodes,
                           FirstOperandEntity, FirstPredicateEntity,
                           NumIREntities};
  std::vector<std::vector<llvm::ir2vec::Embedding>> Sections;
  unsigned Entity = 0;
  for (unsigned End : Ends) {
    Sections.emplace_back();
    for (; Entity != End; ++Entity)
      Sections.back().emplace_back(Vocabulary[Entity].vec());
  }
  return {llvm::ir2vec::VocabStorage(std::move(Sections))};
}

static double embedByLLVM(llvm::Module &M,
                          const llvm::ir2vec::Vocabulary &Vocabulary,
                          llvm::IR2VecKind Kind) {
  llvm::ir2vec::Embedding Sum(Vocabulary.getDimension());
  for (llvm::Function &F : M)
    if (!F.isDeclaration())
      Sum += llvm::ir2vec::Embedder::create(Kind, F, Vocabulary)
                 ->getFunctionVector();
  return Sum[0];
}

static void fromScratch(llvm::json::OStream &J, llvm::Module &M,
                        const EmbeddingVocabulary &Vocabulary,
                        unsigned Repetitions) {
  std::vector<float> Into(Vocabulary.dimension());
  for (EmbeddingKind Kind : {EmbeddingKind::Symbolic, EmbeddingKind::FlowAware,
                             EmbeddingKind::LLVMFlowAware})
    writeRow(J, ("module, " + embeddingKindName(Kind)).str(),
             measure(Repetitions, [&] {
               Vocabulary.embed(EntityHistogram::of(M, Kind),
                                Normalization::PerInstruction, Into);
             }));
  writeRow(J, "each function, symbolic", measure(Repetitions, [&] {
             for (llvm::Function &F : M)
               if (!F.isDeclaration())
                 Vocabulary.embed(EntityHistogram::of(F),
                                  Normalization::PerInstruction, Into);
           }));
  const llvm::ir2vec::Vocabulary LLVMs = forLLVM(Vocabulary);
  volatile double Used = 0; // So that the compiler does not remove the calls.
  const unsigned Fewer = std::max(1U, Repetitions / 4);
  writeRow(J, "module, symbolic, LLVM's Embedder", measure(Fewer, [&] {
             Used = embedByLLVM(M, LLVMs, llvm::IR2VecKind::Symbolic);
           }));
  writeRow(J, "module, flow-aware, LLVM's Embedder", measure(Fewer, [&] {
             Used = embedByLLVM(M, LLVMs, llvm::IR2VecKind::FlowAware);
           }));
}

static std::vector<std::pair<const llvm::Function *, std::uint64_t>>
hashes(const llvm::Module &M) {
  std::vector<std::pair<const llvm::Function *, std::uint64_t>> Found;
  for (const llvm::Function &F : M)
    if (!F.isDeclaration())
      Found.emplace_back(&F, llvm::StructuralHash(F, /*DetailedHash=*/true));
  return Found;
}

namespace {
/// Runs LLVM passes and owns their analysis managers.
class PassRunner {
public:
  explicit PassRunner(ModuleEmbedder *Embedder = nullptr)
      : Builder(nullptr, llvm::PipelineTuningOptions(), std::nullopt,
                &Callbacks) {
    if (Embedder)
      Embedder->registerAnalyses(FAM, Callbacks);
    Builder.registerModuleAnalyses(MAM);
    Builder.registerCGSCCAnalyses(CGAM);
    Builder.registerFunctionAnalyses(FAM);
    Builder.registerLoopAnalyses(LAM);
    Builder.crossRegisterProxies(LAM, FAM, CGAM, MAM);
  }

  void run(StringRef Pipeline, llvm::Module &M) {
    llvm::ModulePassManager MPM;
    if (llvm::Error E = Builder.parsePassPipeline(MPM, Pipeline)) {
      llvm::errs() << "ir2vec-bench: " << llvm::toString(std::move(E)) << "\n";
      std::exit(1);
    }
    MPM.run(M, MAM);
  }

  llvm::FunctionAnalysisManager &functions() { return FAM; }

private:
  llvm::PassInstrumentationCallbacks Callbacks;
  llvm::PassBuilder Builder;
  llvm::LoopAnalysisManager LAM;
  llvm::FunctionAnalysisManager FAM;
  llvm::CGSCCAnalysisManager CGAM;
  llvm::ModuleAnalysisManager MAM;
};
} // namespace

static void afterPasses(llvm::json::OStream &J, llvm::Module &M,
                        const EmbeddingVocabulary &Vocabulary) {
  ModuleEmbedder Embedder(Vocabulary, {});
  PassRunner Runner(&Embedder);
  llvm::FunctionAnalysisManager &FAM = Runner.functions();
  std::vector<float> Into(Vocabulary.dimension());
  Embedder.embed(M, FAM, Into);
  for (StringRef Pass : Passes) {
    const auto Before = hashes(M);
    Runner.run(Pass, M);
    const auto After = hashes(M);
    const auto Changed = llvm::count_if(After, [&](const auto &Entry) {
      return !llvm::is_contained(Before, Entry);
    });
    const std::size_t CountedBefore = Embedder.functionsCounted();
    const double Start = now();
    Embedder.embed(M, FAM, Into);
    const double Time = now() - Start;
    J.object([&] {
      J.attribute("pass", Pass);
      J.attribute("functions", After.size());
      J.attribute("changed", Changed);
      J.attribute("counted", Embedder.functionsCounted() - CountedBefore);
      J.attribute("ms", Time);
    });
    if (MLBridge::Error E = Embedder.verify(M, FAM)) {
      llvm::errs() << Pass << ": " << E.str() << "\n";
      std::exit(1);
    }
  }
}

int main(int Argc, char **Argv) {
  if (Argc < 3) {
    llvm::errs() << "usage: ir2vec-bench VOCABULARY.json MODULE.bc "
                    "[REPETITIONS [PIPELINE]]\n";
    return 2;
  }
  MLBridge::Expected<EmbeddingVocabulary> Vocabulary =
      EmbeddingVocabulary::load(Argv[1]);
  if (!Vocabulary) {
    llvm::errs() << Vocabulary.takeError().str() << "\n";
    return 1;
  }
  unsigned Repetitions = 21;
  if (Argc > 3 &&
      (StringRef(Argv[3]).getAsInteger(10, Repetitions) || Repetitions == 0)) {
    llvm::errs() << "ir2vec-bench: expected a number above 0, found " << Argv[3]
                 << "\n";
    return 2;
  }
  llvm::LLVMContext Context;
  llvm::SMDiagnostic Problem;
  std::unique_ptr<llvm::Module> M =
      llvm::parseIRFile(Argv[2], Problem, Context);
  if (!M) {
    Problem.print("ir2vec-bench", llvm::errs());
    return 1;
  }
  if (Argc > 4)
    PassRunner().run(Argv[4], *M);
  llvm::json::OStream J(outs());
  J.object([&] {
    J.attribute("module", M->getModuleIdentifier());
    J.attribute("functions", llvm::count_if(*M, [](const llvm::Function &F) {
                  return !F.isDeclaration();
                }));
    J.attribute("instructions", EntityHistogram::of(*M).instructions());
    J.attribute("vocabulary", Vocabulary->name());
    J.attribute("dimension", Vocabulary->dimension());
    J.attributeArray("whole",
                     [&] { fromScratch(J, *M, *Vocabulary, Repetitions); });
    J.attributeArray("passes", [&] { afterPasses(J, *M, *Vocabulary); });
  });
  outs() << "\n";
  return 0;
}
