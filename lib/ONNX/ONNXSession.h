//===- ONNXSession.h - Creates sessions of ONNX Runtime ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates sessions with the execution providers and custom operators that the
/// user has chosen.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXSESSION_H
#define MLBRIDGE_LIB_ONNX_ONNXSESSION_H

#include "ONNX/ONNXRuntime.h"

namespace MLBridge::onnx {

/// Creates the options of a session that evaluates in the calling thread.
/// Messages begin with \p Name. Returns Unsupported if an execution provider or
/// a library of operators is not available, or the errors of checkLibrary().
Expected<Handle<OrtSessionOptions>>
makeSessionOptions(const ONNXOptions &Chosen, const std::string &Name,
                   const Runtime &Library);

/// Creates a session. Loads the model from \p Bytes, or from \p File if \p
/// Bytes is empty.
Expected<Handle<OrtSession>> makeSession(const std::string &File,
                                         const std::string &Bytes,
                                         const OrtSessionOptions &Options,
                                         const std::string &Name,
                                         const Runtime &Library);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXSESSION_H
