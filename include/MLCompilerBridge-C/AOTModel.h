/*===- MLCompilerBridge-C/AOTModel.h - A model as machine code ----*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * What `mlbridge compile` makes of an ONNX model: one constant descriptor, and
 * behind it functions that neither allocate nor keep anything, so that any
 * number of threads may run them at a time. All memory is the caller's.
 *
 * A program that is linked with the model `policy` runs it like this; one that
 * opens libpolicy.so finds the descriptor behind the symbol
 * `mlbridge_aot_model`. From C++, MLCompilerBridge/Runners/AOTModel.h does all
 * of it.
 * \code
 *   extern const MLBridgeAOTModel mlbridge_aot_model_policy;
 *   const MLBridgeAOTModel *model = &mlbridge_aot_model_policy;
 *   int64_t nodes = 7, shapes[4];  // free extents; extents of all outputs
 *   uint64_t bytes;
 *   if (model->measure(&nodes, shapes, &bytes) != MLBRIDGE_AOT_OK) ...
 *   void *workspace = aligned_alloc(MLBRIDGE_AOT_ALIGNMENT, bytes);
 *   const void *inputs[] = {features, adjacency};
 *   void *outputs[] = {logits};
 *   model->variants[mlbridge_aot_choose(model)].run(&nodes, inputs, outputs,
 *                                                   workspace);
 * \endcode
 *
 * This header is plain C99, and stands in front of what `--emit c` writes.
 */

#ifndef MLCOMPILERBRIDGE_C_AOTMODEL_H
#define MLCOMPILERBRIDGE_C_AOTMODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! The first field of every descriptor: "MLBA" in memory. */
#define MLBRIDGE_AOT_MAGIC 0x41424c4du
/*! Of the layout of these structures and the meaning of their fields. */
#define MLBRIDGE_AOT_ABI 1u
/*! The symbol of a shared library: a `const MLBridgeAOTModel *const`. */
#define MLBRIDGE_AOT_SYMBOL "mlbridge_aot_model"
/*! Of the workspace, in bytes. Inputs and outputs are aligned to their
 * elements. */
#define MLBRIDGE_AOT_ALIGNMENT 64
/*! An output's extent that is computed; measure() tells. */
#define MLBRIDGE_AOT_COMPUTED (-1)
/*! The extent that stands for element \p I of `free_extents`. */
#define MLBRIDGE_AOT_FREE(I) (-2 - (I))

/*! What the functions of a model return. */
enum {
  MLBRIDGE_AOT_OK = 0,
  /*! An element of an input that is an index was out of its table's range. The
   * outputs hold anything. */
  MLBRIDGE_AOT_BAD_INDEX = 1,
  /*! A free extent is below 1 or is none that the model takes, of which the
   * property "mlbridge.extents" tells; or a tensor would exceed 2^47 bytes. */
  MLBRIDGE_AOT_BAD_EXTENT = 2
};

/*! The type of an element. The numbers are those of MLBridge::ElementType. */
enum {
  MLBRIDGE_AOT_INT8 = 0,
  MLBRIDGE_AOT_INT16 = 1,
  MLBRIDGE_AOT_INT32 = 2,
  MLBRIDGE_AOT_INT64 = 3,
  MLBRIDGE_AOT_UINT8 = 4,
  MLBRIDGE_AOT_UINT16 = 5,
  MLBRIDGE_AOT_UINT32 = 6,
  MLBRIDGE_AOT_UINT64 = 7,
  MLBRIDGE_AOT_FLOAT = 8,
  MLBRIDGE_AOT_DOUBLE = 9,
  /*! One byte, 0 or 1. */
  MLBRIDGE_AOT_BOOL = 10
};

/*! An input or an output: dense, row-major. */
typedef struct MLBridgeAOTTensor {
  const char *name;
  uint32_t type;
  uint32_t rank;
  /*! `rank` of them, outermost first. */
  const int64_t *extents;
} MLBridgeAOTTensor;

/*! What the ONNX file said of itself: `mlbridge.*` and whatever else. */
typedef struct MLBridgeAOTProperty {
  const char *key;
  const char *value;
} MLBridgeAOTProperty;

/*! The model for one kind of CPU. All variants share the weights. */
typedef struct MLBridgeAOTVariant {
  /*! "x86-64-v4", "x86-64-v3", "baseline". */
  const char *cpu;
  /*! Whether this CPU can run it. */
  int (*supported)(void);
  /*! Evaluates the model, from and to the caller's memory. \p workspace has as
   * many bytes as measure() says for \p free_extents. Neither pointer array has
   * null elements; \p free_extents may be null where there are none. */
  int (*run)(const int64_t *free_extents, const void *const *inputs,
             void *const *outputs, void *workspace);
} MLBridgeAOTVariant;

typedef struct MLBridgeAOTModel {
  uint32_t magic;
  uint32_t abi;
  const char *name;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t num_free_extents;
  uint32_t num_properties;
  uint32_t num_variants;
  uint32_t reserved;
  const MLBridgeAOTTensor *inputs;
  const MLBridgeAOTTensor *outputs;
  const MLBridgeAOTProperty *properties;
  /*! The widest first; the last runs everywhere. */
  const MLBridgeAOTVariant *variants;
  /*! The extents of all outputs, one after the other, and the bytes of the
   * workspace. */
  int (*measure)(const int64_t *free_extents, int64_t *output_extents,
                 uint64_t *workspace_bytes);
} MLBridgeAOTModel;

/*! The index of the first variant that this CPU can run. */
static inline uint32_t mlbridge_aot_choose(const MLBridgeAOTModel *model) {
  uint32_t i = 0;
  while (i + 1 < model->num_variants && !model->variants[i].supported())
    ++i;
  return i;
}

#ifdef __cplusplus
}
#endif

#endif /* MLCOMPILERBRIDGE_C_AOTMODEL_H */
