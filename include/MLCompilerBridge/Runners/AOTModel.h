//===- AOTModel.h - Models as machine code ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Models compiled by `mlbridge compile`: opened as a shared library
/// (`aot:libpolicy.so`) or linked into this program (`builtin:policy`).
/// docs/guides/compile.md shows how to compile an .onnx file to either.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_AOTMODEL_H
#define MLCOMPILERBRIDGE_RUNNERS_AOTMODEL_H

#include "MLCompilerBridge-C/AOTModel.h"
#include "MLCompilerBridge/Extend/Model.h"

#include <memory>
#include <string>
#include <string_view>

namespace MLBridge {

/// Opens a library made by `mlbridge compile`. \p CPU names the variant to run
/// ("x86-64-v3", "baseline"); if it is empty, the widest variant that this CPU
/// supports runs.
///
/// The file may be replaced while it is open, as linkers and package managers
/// do. Overwriting it in place changes the running program.
///
/// Errors: System: the file cannot be opened. Malformed: the file is not a
/// shared library, is cut short, or was not made by `mlbridge compile`.
/// Unsupported: the file has another ABI version or contains no such variant
/// that this CPU can run.
Expected<std::shared_ptr<const Model>> loadAOTModel(const std::string &File,
                                                    std::string_view CPU = {});

/// The same for a model that is linked into this program or that the caller has
/// found otherwise. \p Descriptor must outlive the model. Messages contain \p
/// Name.
Expected<std::shared_ptr<const Model>>
wrapAOTModel(const MLBridgeAOTModel &Descriptor, std::string Name,
             std::string_view CPU = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_AOTMODEL_H
