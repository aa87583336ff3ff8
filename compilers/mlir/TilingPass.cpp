//===- TilingPass.cpp - The pass mlbridge-tile, and the plug-in -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the pass `mlbridge-tile{model=SPEC}`, in which a model decides about
/// affine loop nests and linalg operations. Run it with the stock mlir-opt:
/// \code
///   mlir-opt-22 --load-pass-plugin=MLBridgeMLIR.so x.mlir
///     --pass-pipeline='builtin.module(func.func(mlbridge-tile{model=SPEC}))'
/// \endcode
///
//===----------------------------------------------------------------------===//

#include "NestAnalysis.h"
#include "TilingModel.h"
#include "Transform.h"

#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include <atomic>

using namespace mlir;
using mlir::affine::AffineForOp;

namespace MLBridge {

namespace {

struct TilingPass : PassWrapper<TilingPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilingPass)

  TilingPass() = default;
  /// Copies the pass for another thread. The copy opens its own session.
  TilingPass(const TilingPass &Other)
      : PassWrapper(Other), HasFailed(Other.HasFailed) {}

  StringRef getArgument() const final { return "mlbridge-tile"; }
  StringRef getDescription() const final {
    return "Let a model choose tile sizes, loop order and unroll factor of "
           "affine loop nests and linalg operations";
  }
  void getDependentDialects(DialectRegistry &Registry) const override;
  void runOnOperation() override;

  Option<std::string> Spec{
      *this, "model",
      llvm::cl::desc("The model that decides, such as pipe:/tmp/tiling. `none` "
                     "leaves all nests as they are"),
      llvm::cl::init("none")};

private:
  /// Requests a choice. If the model fails, returns the choice that leaves the
  /// nest as it is.
  TilingChoice choose(Operation *Op, const LoopNest &Nest);
  void decide(AffineForOp Root);
  void decide(linalg::LinalgOp Op);
  /// Prints the first warning of all threads, and drops all others.
  void warn(Operation *Op, const Twine &Why);

  TilingModel Model;
  std::shared_ptr<std::atomic<bool>> HasFailed =
      std::make_shared<std::atomic<bool>>(false);
};

} // namespace

void TilingPass::getDependentDialects(DialectRegistry &Registry) const {
  // Loading the dialects takes longer than the rest of the pass.
  if (Spec == "none")
    return;
  Registry
      .insert<affine::AffineDialect, scf::SCFDialect, tensor::TensorDialect>();
  linalg::registerTilingInterfaceExternalModels(Registry);
}

void TilingPass::warn(Operation *Op, const Twine &Why) {
  if (!HasFailed->exchange(true))
    Op->emitWarning("mlbridge-tile: " + Why);
}

TilingChoice TilingPass::choose(Operation *Op, const LoopNest &Nest) {
  std::string Failure;
  TilingChoice Choice =
      Model.choose(Nest, getOperation().getSymName(), Failure);
  if (!Failure.empty())
    warn(Op, Failure + "; this nest and all later ones stay as they are");
  return Choice;
}

void TilingPass::decide(AffineForOp Root) {
  SmallVector<AffineForOp, 8> Loops;
  affine::getPerfectlyNestedLoops(Loops, Root);
  std::optional<LoopNest> Nest = describeAffine(Loops);
  if (!Nest) {
    // The loops in the innermost body may be nests of their own.
    for (AffineForOp Inner :
         llvm::to_vector(Loops.back().getBody()->getOps<AffineForOp>()))
      decide(Inner);
    return;
  }
  if (*HasFailed)
    return;
  const TilingChoice Choice = choose(Root, *Nest);
  if (Choice.isLeave())
    return;
  Location Loc = Root.getLoc();
  if (failed(applyToAffine(Loops, Choice)))
    mlir::emitWarning(Loc, "mlbridge-tile: MLIR cannot tile or unroll this "
                           "nest completely; its result is the same");
}

void TilingPass::decide(linalg::LinalgOp Op) {
  std::optional<LoopNest> Nest = describeLinalg(Op);
  if (!Nest || *HasFailed)
    return;
  const TilingChoice Choice = choose(Op, *Nest);
  if (Choice.isLeave())
    return;
  if (failed(applyToLinalg(Op, Choice)))
    warn(Op, "MLIR cannot tile this operation; it stays as it is");
}

void TilingPass::runOnOperation() {
  // Analyse nothing if the spec leaves all nests as they are.
  if (Spec == "none") {
    markAllAnalysesPreserved();
    return;
  }
  SmallVector<AffineForOp> Roots;
  SmallVector<linalg::LinalgOp> LinalgOps;
  getOperation().walk([&](Operation *Op) {
    if (auto Linalg = dyn_cast<linalg::LinalgOp>(Op))
      LinalgOps.push_back(Linalg);
    else if (auto Loop = dyn_cast<AffineForOp>(Op);
             Loop && !Op->getParentOfType<AffineForOp>())
      Roots.push_back(Loop);
  });
  if (Roots.empty() && LinalgOps.empty())
    return;
  // A mistake in the command line is an error, but a model's failure is not.
  if (!Model.isOpen())
    if (const std::string Mistake = Model.open(Spec); !Mistake.empty()) {
      getOperation().emitError("mlbridge-tile: " + Mistake);
      return signalPassFailure();
    }
  // Decide about the source's loops first, because a linalg operation on
  // buffers becomes affine loops, which need no second decision.
  for (AffineForOp Root : Roots)
    decide(Root);
  for (linalg::LinalgOp Op : LinalgOps)
    decide(Op);
}

} // namespace MLBridge

// mlir-opt looks up this function by its name.
extern "C" LLVM_ATTRIBUTE_WEAK
    __attribute__((visibility("default"))) mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "MLBridgeMLIR", MLBRIDGE_VERSION,
          [] { PassRegistration<MLBridge::TilingPass>(); }};
}
