//===- SizeGuard.cpp - Keeps the smaller code -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compiles copies of a module, measures them, and moves the smaller code into
/// the module.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeGuard.h"

#include "Inliner/CallFeatures.h"
#include "Inliner/Inliner.h"
#include "Inliner/InlinerOptions.h"
#include "MachineCode/MachineCode.h"
#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "PhaseOrdering/PhaseOrderingPass.h"
#include "Pipeline/Applicability.h"
#include "Pipeline/ModuleContents.h"
#include "Pipeline/ModuleCopy.h"
#include "Pipeline/PassRunner.h"
#include "Pipeline/PipelineReplacement.h"
#include "Size/LinkedText.h"
#include "Size/SizeDecider.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Target/TargetMachine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<bool> GuardOpt(
    "mlbridge-size-guard", cl::cat(optionCategory()),
    cl::desc("Also compile each module as the stock compiler does, and keep "
             "the smaller code"));
cl::opt<unsigned>
    GuardBudgetOpt("mlbridge-size-guard-budget", cl::cat(optionCategory()),
                   cl::value_desc("ms"),
                   cl::desc("Keep the stock compiler's code if the comparison "
                            "of -mlbridge-size-guard takes longer"));

constexpr char GuardName[] = "mlbridge-size-guard";

/// A copy of a module, and its target.
class Variant {
public:
  /// Reads a copy from \p Bitcode. \p Name is the name of the module.
  static Expected<Variant> create(StringRef Bitcode, StringRef Name);

  Module &module() { return Copy->module(); }
  TargetMachine &target() { return *TM; }
  std::string takeErrors() { return Copy->takeErrors(); }
  /// Measures the code in bytes. The module is useless afterwards.
  Expected<std::uint64_t> measure(const CalleeFiles &Files);

private:
  Variant() = default;

  std::unique_ptr<ModuleCopy> Copy;
  /// Describes the target to the passes. It generates no code.
  std::unique_ptr<TargetMachine> TM;
};

/// The optimisations that the guard compares with the stock compiler.
struct Deciders {
  RegisterInsideOf Register;
  /// Null unless -mlbridge-size was given.
  std::shared_ptr<SizeDecider> Size;

  /// Optimises \p V, a copy of \p M. \p MAM has the analyses of \p M.
  void optimize(Variant &V, Module &M, ModuleAnalysisManager &MAM,
                const StockPipeline &Stock) const;
};

/// The comparison for one module.
class Comparison {
public:
  Comparison(Module &M, ModuleAnalysisManager &MAM, const StockPipeline &Stock,
             const Deciders &Given)
      : M(M), MAM(MAM), Stock(Stock), Given(Given) {}

  /// Compiles and measures both copies. If the decided code is smaller, moves
  /// it into the module and returns true.
  Expected<bool> run();
  /// Emits a remark, and a line of statistics.
  void report(bool IsReplaced) const;

private:
  Error compileStock(StringRef Bitcode, const CalleeFiles &Files);
  /// Returns the bitcode of the decided code.
  Expected<std::string> compileDecided(StringRef Bitcode,
                                       const CalleeFiles &Files);
  double elapsed() const {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - Start)
        .count();
  }
  bool isOver() const {
    return GuardBudgetOpt != 0 && elapsed() >= GuardBudgetOpt;
  }

  Module &M;
  ModuleAnalysisManager &MAM;
  const StockPipeline Stock;
  const Deciders &Given;
  const std::chrono::steady_clock::time_point Start =
      std::chrono::steady_clock::now();
  std::optional<std::uint64_t> StockBytes, DecidedBytes;
  bool HasExpired = false;
};

/// Prints a remark in a link with LTO, in which the guard does not run.
class RefusingPass : public PassInfoMixin<RefusingPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace

Expected<Variant> Variant::create(StringRef Bitcode, StringRef Name) {
  Expected<std::unique_ptr<ModuleCopy>> Copy = ModuleCopy::read(Bitcode, Name);
  if (!Copy)
    return Copy.takeError();
  Expected<std::unique_ptr<TargetMachine>> TM =
      createTargetMachine((*Copy)->module());
  if (!TM)
    return TM.takeError();
  Variant Result;
  Result.Copy = std::move(*Copy);
  Result.TM = std::move(*TM);
  return Result;
}

Expected<std::uint64_t> Variant::measure(const CalleeFiles &Files) {
  Expected<LinkedText> Text =
      LinkedTextMeter(LinkRoots::Defined).measure(module());
  if (!Text)
    return Text.takeError();
  if (std::string Problem = takeErrors(); !Problem.empty())
    return Error(ErrorCode::Unsupported, std::move(Problem));
  double Sum = 0;
  for (const auto &Function : Text->Functions) {
    const auto *F = module().getFunction(Function.first());
    // Count an unknown number of files, 0, as 1.
    const std::int64_t Copies = F ? std::max<std::int64_t>(1, Files.of(*F)) : 1;
    Sum += static_cast<double>(Function.second) / static_cast<double>(Copies);
  }
  return static_cast<std::uint64_t>(std::llround(Sum));
}

/// True if clang adds discriminators to the locations of \p M.
static bool hasDiscriminators(const Module &M) {
  // debug_compile_units() lacks the units that -Rpass alone makes.
  const NamedMDNode *Units = M.getNamedMetadata("llvm.dbg.cu");
  return Units && any_of(Units->operands(), [](const MDNode *Unit) {
           return cast<DICompileUnit>(Unit)->getDebugInfoForProfiling();
         });
}

void Deciders::optimize(Variant &V, Module &M, ModuleAnalysisManager &MAM,
                        const StockPipeline &Stock) const {
  const RegisterInside Inside = registerInside(Register, M, MAM);
  bool IsReplaced = false;
  if (!phaseOrderingSpec().empty())
    IsReplaced = runEpisode(V.module(), Stock, /*WhyNot=*/"", Inside);
  else if (Size)
    IsReplaced = Size->runPasses(V.module(), Stock, /*WhyNot=*/"", Inside);
  if (!IsReplaced) {
    PassRunner Passes(V.module(), V.target(), EmbeddingKind::Symbolic,
                      [&](PassBuilder &Inner) {
                        Inside(Inner);
                        if (Size)
                          Size->registerInlining(Inner);
                      });
    if (hasDiscriminators(V.module()))
      Passes.addDiscriminators();
    Passes.run(Stock);
  }
  if (Size)
    Size->outline(V.module(), Stock.Phase);
}

Error Comparison::compileStock(StringRef Bitcode, const CalleeFiles &Files) {
  Expected<Variant> V = Variant::create(Bitcode, M.getModuleIdentifier());
  if (!V)
    return V.takeError();
  PassRunner(V->module(), V->target(), EmbeddingKind::Symbolic, nullptr)
      .run(Stock);
  Expected<std::uint64_t> Bytes = V->measure(Files);
  if (!Bytes)
    return Bytes.takeError();
  StockBytes = *Bytes;
  return Error::success();
}

Expected<std::string> Comparison::compileDecided(StringRef Bitcode,
                                                 const CalleeFiles &Files) {
  Expected<Variant> V = Variant::create(Bitcode, M.getModuleIdentifier());
  if (!V)
    return V.takeError();
  Given.optimize(*V, M, MAM, Stock);
  if (const std::string Problem = V->takeErrors(); !Problem.empty()) {
    // Without the guard, these errors would end the compile, too.
    M.getContext().emitError(Problem);
    return std::string();
  }
  if (isOver())
    return std::string();
  std::string Result = bitcodeOf(V->module());
  Expected<std::uint64_t> Bytes = V->measure(Files);
  if (!Bytes)
    return Bytes.takeError();
  DecidedBytes = *Bytes;
  return Result;
}

Expected<bool> Comparison::run() {
  // Read the counts here, because the inliner reads them only with a model.
  Expected<CalleeFiles> Files = readCalleeFiles();
  if (!Files)
    return Files.takeError();
  const std::string Bitcode = bitcodeOf(M);
  // Measure the stock code first, because decisions may set options of the code
  // generator.
  if (Error E = compileStock(Bitcode, *Files))
    return E;
  std::string Decided;
  if (!isOver()) {
    Expected<std::string> Compiled = compileDecided(Bitcode, *Files);
    if (!Compiled)
      return Compiled.takeError();
    Decided = std::move(*Compiled);
  }
  HasExpired = isOver();
  if (HasExpired || !DecidedBytes || *DecidedBytes >= *StockBytes)
    return false;
  Expected<std::unique_ptr<Module>> Read =
      readBitcode(Decided, M.getModuleIdentifier(), M.getContext());
  if (!Read)
    return Read.takeError();
  replaceContents(M, **Read);
  return true;
}

void Comparison::report(bool IsReplaced) const {
  std::string Sizes = IsReplaced ? "kept=decided" : "kept=stock";
  if (DecidedBytes)
    Sizes += formatv(" decided={0}", *DecidedBytes).str();
  if (StockBytes)
    Sizes += formatv(" stock={0}", *StockBytes).str();
  if (HasExpired)
    Sizes += " budget=over";
  const auto Defined =
      find_if(M, [](const Function &F) { return !F.isDeclaration(); });
  LLVMContext &Context = M.getContext();
  if (Defined != M.end() && IsReplaced)
    Context.diagnose(OptimizationRemark(GuardName, "Decided", &*Defined)
                     << Sizes);
  else if (Defined != M.end())
    Context.diagnose(OptimizationRemarkMissed(GuardName, "Stock", &*Defined)
                     << Sizes);
  if (printStatistics())
    printLine(ModelSession::prefix(GuardName, M) + Sizes +
              formatv(" time={0:f1}ms", elapsed()).str());
}

/// Prints why the stock compiler's code is kept.
static void refuse(const Module &M, const Twine &Why) {
  printLine("remark: " + ModelSession::prefix(GuardName, M) + Why +
            "; keeping the stock compiler's code");
}

PreservedAnalyses RefusingPass::run(Module &M, ModuleAnalysisManager &) {
  refuse(M, "cannot compare the code of a link with LTO");
  return PreservedAnalyses::all();
}

/// Returns true if the decided code has replaced \p Stock.
static bool guard(Module &M, ModuleAnalysisManager &MAM,
                  const StockPipeline &Stock, StringRef WhyNot,
                  const Deciders &Given) {
  if (all_of(M, [](const Function &F) { return F.isDeclaration(); }))
    return false;
  if (WhyNot.empty() && Stock.isBeforeLink())
    WhyNot = "the linker generates the code";
  if (WhyNot.empty())
    WhyNot = whyNotReplaced(M);
  if (WhyNot.empty())
    WhyNot = whyNotMeasured(M);
  if (!WhyNot.empty()) {
    refuse(M, "cannot compare the final code: " + WhyNot);
    return false;
  }
  Comparison Current(M, MAM, Stock, Given);
  Expected<bool> IsReplaced = Current.run();
  if (!IsReplaced)
    refuse(M, "cannot compare the code: " + IsReplaced.takeError().str());
  else
    Current.report(*IsReplaced);
  if (Given.Size && !(IsReplaced && *IsReplaced))
    Given.Size->undoOutlining();
  return IsReplaced && *IsReplaced;
}

bool isSizeGuarded() { return GuardOpt; }

void registerSizeGuard(PassBuilder &PB, RegisterInsideOf Register) {
  const Deciders Given{Register, SizeDecider::fromOptions()};
  if (inlinerSpec().empty() && phaseOrderingSpec().empty() && !Given.Size)
    return;
  registerInlinerOnlyInside(PB);
  PB.registerFullLinkTimeOptimizationEarlyEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel) {
        Passes.addPass(RefusingPass());
      });
  replacePipelines(PB, [=](Module &M, ModuleAnalysisManager &MAM,
                           const StockPipeline &Stock, StringRef WhyNot) {
    return guard(M, MAM, Stock, WhyNot, Given);
  });
}

} // namespace MLBridge
