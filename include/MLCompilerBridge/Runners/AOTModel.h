//===- AOTModel.h - Models as machine code ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Models that `mlbridge compile` made: opened as a shared library
/// (`aot:libpolicy.so`), or linked into this program (`builtin:policy`).
/// docs/compile.md goes from an .onnx file to either.
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

/// Opens a library that `mlbridge compile` made. \p CPU names the variant to
/// run ("x86-64-v3", "baseline"); where it is empty, the widest that this CPU
/// can run.
///
/// The file may be replaced while it is open, as linkers and package managers
/// do it; whoever overwrites it in place changes a running program.
///
/// ErrorCode::System: it cannot be opened. Malformed: it is no library, cut
/// short, or none that `mlbridge compile` made. Unsupported: it is of another
/// ABI version, or has no such variant for this CPU.
Expected<std::shared_ptr<const Model>> loadAOTModel(const std::string &File,
                                                    std::string_view CPU = {});

/// The same of a model that is linked into this program, or that the caller
/// found by other means; \p Descriptor outlives the model. \p Name is for
/// messages.
Expected<std::shared_ptr<const Model>>
wrapAOTModel(const MLBridgeAOTModel &Descriptor, std::string Name,
             std::string_view CPU = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_AOTMODEL_H
