//===- RttPass.cpp - Round trips from a pass of mlir-opt --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the pass `mlbridge-rtt`, which runs the client of `mlbridge bench
/// rtt` in the stock mlir-opt. The variable MLBRIDGE_RTT_ARGUMENTS has the
/// client's arguments, with line breaks, because a spec can contain characters
/// that a pass pipeline cannot.
///
//===----------------------------------------------------------------------===//

#include "RttClient.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct RttPass
    : mlir::PassWrapper<RttPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RttPass)

  llvm::StringRef getArgument() const final { return "mlbridge-rtt"; }
  llvm::StringRef getDescription() const final {
    return "Time round trips to a model";
  }
  void runOnOperation() override;
};

} // namespace

void RttPass::runOnOperation() {
  const char *Given = std::getenv("MLBRIDGE_RTT_ARGUMENTS");
  llvm::SmallVector<llvm::StringRef, 8> Lines;
  llvm::StringRef(Given ? Given : "").split(Lines, '\n');
  std::vector<std::string> Owned{"mlbridge-rtt"};
  Owned.insert(Owned.end(), Lines.begin(), Lines.end());
  std::vector<const char *> Arguments;
  Arguments.reserve(Owned.size());
  for (const std::string &One : Owned)
    Arguments.push_back(One.c_str());
  MLBridge::bench::runRttClient(Arguments);
}

// mlir-opt looks up this function by its name.
extern "C" LLVM_ATTRIBUTE_WEAK
    __attribute__((visibility("default"))) mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "rtt-mlir", "1",
          [] { mlir::PassRegistration<RttPass>(); }};
}
