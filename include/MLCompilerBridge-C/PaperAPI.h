//===- PaperAPI.h - The C API under the paper's names -------------*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines functions with the C names of the paper "The Next 700 ML-Enabled
/// Compiler Optimizations" (CC 2024) and its implementation. The functions call
/// the API of MLCompilerBridge.h:
/// \code
///   MLBridgeModelRunnerRef Runner =
///       createPipeModelRunner("/tmp/advisor", NULL);
///   int Factor;
///   populateFloatFeatures(Runner, "embedding", Embedding, 300);
///   if (Runner &&
///       evaluateIntFeatures(Runner, &Factor) == MLBridgeStatusSuccess)
///     unroll(Loop, Factor);
///   destroyPipeModelRunner(Runner);
/// \endcode
///
/// These names have no prefix, so a compiler may already use the same names.
/// Therefore, the functions are inline in a separate header, and the library
/// does not export them. Unlike the original functions, they return a status
/// and write advice through a pointer. A model's failure does not end the
/// process.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_C_PAPERAPI_H
#define MLCOMPILERBRIDGE_C_PAPERAPI_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Creating and destroying runners
//===----------------------------------------------------------------------===//
// On failure, these functions return null, and mlbridgeGetLastErrorMessage()
// returns the reason.

/// Implements the next three functions. The path in the spec is \p Before
/// followed by \p Name.
static inline MLBridgeModelRunnerRef mlbridgePaperCreate(const char *Scheme,
                                                         const char *Before,
                                                         const char *Name,
                                                         const char *SerDes) {
  MLBridgeModelRunnerRef Runner = NULL;
  char Path[4096], Options[64];
  if (!Name)
    mlbridgeFail(MLBridgeStatusInvalidArgument, "the model's name is null");
  else if ((size_t)snprintf(Path, sizeof(Path), "%s%s", Before, Name) >=
               sizeof(Path) ||
           (size_t)snprintf(Options, sizeof(Options), "%s%s",
                            SerDes ? "serdes=" : "",
                            SerDes ? SerDes : "") >= sizeof(Options))
    mlbridgeFail(MLBridgeStatusInvalidArgument, "the model's name is too long");
  else
    mlbridgeCreateModelRunnerAt(Scheme, Path, Options, &Runner);
  return Runner;
}

/// Creates a runner that reaches a model in another process through pipes at
/// \p Name. \p SerDes is "bitstream" or "json". Null means "bitstream".
static inline MLBridgeModelRunnerRef createPipeModelRunner(const char *Name,
                                                           const char *SerDes) {
  return mlbridgePaperCreate("pipe", "", Name, SerDes);
}

/// Creates a runner as createPipeModelRunner() does, but for shared memory.
static inline MLBridgeModelRunnerRef
createSharedMemoryModelRunner(const char *Name, const char *SerDes) {
  return mlbridgePaperCreate("shm", "", Name, SerDes);
}

/// Creates a runner for a model that a gRPC server at \p Address serves.
/// \p Address is "HOST:PORT".
static inline MLBridgeModelRunnerRef
createGRPCModelRunner(const char *Address) {
  return mlbridgePaperCreate("grpc", "//", Address, NULL);
}

/// Creates a runner for an ONNX model in this process. \p Model is
/// "policy.onnx" or, for several agents, "label=a.onnx,label2=b.onnx".
static inline MLBridgeModelRunnerRef createONNXModelRunner(const char *Model) {
  MLBridgeModelRunnerRef Runner = NULL;
  mlbridgeCreateModelRunnerAt("onnx", Model, NULL, &Runner);
  return Runner;
}

/// Creates a runner for the TensorFlow SavedModel at \p Path. The model runs in
/// this process.
static inline MLBridgeModelRunnerRef createTFModelRunner(const char *Path) {
  MLBridgeModelRunnerRef Runner = NULL;
  mlbridgeCreateModelRunnerAt("tf", Path, NULL, &Runner);
  return Runner;
}

// All destroy functions do the same. The paper's API has one function for each
// kind of runner.

static inline void destroyPipeModelRunner(MLBridgeModelRunnerRef Runner) {
  mlbridgeDisposeModelRunner(Runner);
}
static inline void
destroySharedMemoryModelRunner(MLBridgeModelRunnerRef Runner) {
  mlbridgeDisposeModelRunner(Runner);
}
static inline void destroyGRPCModelRunner(MLBridgeModelRunnerRef Runner) {
  mlbridgeDisposeModelRunner(Runner);
}
static inline void destroyONNXModelRunner(MLBridgeModelRunnerRef Runner) {
  mlbridgeDisposeModelRunner(Runner);
}
static inline void destroyTFModelRunner(MLBridgeModelRunnerRef Runner) {
  mlbridgeDisposeModelRunner(Runner);
}

//===----------------------------------------------------------------------===//
// Features and advice by C type
//===----------------------------------------------------------------------===//

/// Defines two functions for NAME, such as Int, and its TYPE.
/// populateIntFeatures() adds a copy of the \p Count elements of \p Values to
/// the next request. evaluateIntFeatures() sends the request and writes the
/// advice to \p Value.
#define MLBRIDGE_PAPER_FUNCTIONS_OF(NAME, TYPE, ELEMENT)                       \
  static inline MLBridgeStatus populate##NAME##Features(                       \
      MLBridgeModelRunnerRef Runner, const char *Name, const TYPE *Values,     \
      size_t Count) {                                                          \
    return mlbridgeSet##ELEMENT##Vector(mlbridgeGetFeatures(Runner), Name,     \
                                        Values, Count);                        \
  }                                                                            \
  static inline MLBridgeStatus evaluate##NAME##Features(                       \
      MLBridgeModelRunnerRef Runner, TYPE *Value) {                            \
    return mlbridgeEvaluate##ELEMENT(Runner, Value);                           \
  }

MLBRIDGE_PAPER_FUNCTIONS_OF(Int, int, Int32)
MLBRIDGE_PAPER_FUNCTIONS_OF(Long, int64_t, Int64)
MLBRIDGE_PAPER_FUNCTIONS_OF(Float, float, Float)
MLBRIDGE_PAPER_FUNCTIONS_OF(Double, double, Double)
MLBRIDGE_PAPER_FUNCTIONS_OF(Bool, bool, Bool)

#undef MLBRIDGE_PAPER_FUNCTIONS_OF

/// Adds a list of \p Count strings to the next request. Each string ends with a
/// NUL.
static inline MLBridgeStatus
populateStringFeatures(MLBridgeModelRunnerRef Runner, const char *Name,
                       const char *const *Texts, size_t Count) {
  return mlbridgeSetStringVector(mlbridgeGetFeatures(Runner), Name, Texts, NULL,
                                 Count);
}

/// Sends the request and points \p Text to the advice. \p Text is valid until
/// the runner's next request.
static inline MLBridgeStatus
evaluateStringFeatures(MLBridgeModelRunnerRef Runner, const char **Text) {
  return mlbridgeEvaluateString(Runner, Text, NULL);
}

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MLCOMPILERBRIDGE_C_PAPERAPI_H
