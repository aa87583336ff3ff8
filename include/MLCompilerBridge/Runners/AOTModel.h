//===- AOTModel.h - Models as machine code ----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads models that `mlbridge compile` has compiled. A compiled model is
/// either a shared library (`aot:libpolicy.so`) or linked into this program
/// (`builtin:policy`). docs/guides/compile.md shows how to compile an .onnx
/// file in both ways.
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

/// Opens a library made by `mlbridge compile`. \p CPU selects the variant to
/// run, such as "x86-64-v3" or "baseline". If \p CPU is empty, selects the
/// first variant that this CPU supports, which has the widest vectors.
///
/// While the file is open, a linker or a package manager may replace it with a
/// new file. Do not overwrite the file in place, because this changes the
/// running program.
///
/// Returns one of these errors:
/// - System if the file cannot be opened.
/// - Malformed if the file is truncated, is not a shared library, or was not
///   made by `mlbridge compile`.
/// - Unsupported if the file has another ABI version, or lacks the variant, or
///   this CPU cannot run the variant.
Expected<std::shared_ptr<const Model>> loadAOTModel(const std::string &File,
                                                    std::string_view CPU = {});

/// Creates a Model from \p Descriptor, for example for a model that is linked
/// into this program. \p CPU and the error Unsupported are as above.
/// \p Descriptor must outlive the model. Messages contain \p Name.
Expected<std::shared_ptr<const Model>>
wrapAOTModel(const MLBridgeAOTModel &Descriptor, std::string Name,
             std::string_view CPU = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_AOTMODEL_H
