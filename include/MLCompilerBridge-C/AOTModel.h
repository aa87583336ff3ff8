/*===- MLCompilerBridge-C/AOTModel.h - A model as machine code ----*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * The C interface of a model that `mlbridge compile` has compiled from an ONNX
 * file, or that mlbridge_add_tf_aot_model() has compiled from a SavedModel. A
 * compiled model is one constant descriptor and several functions. The
 * functions do not allocate memory or keep state, so any number of threads can
 * call them at the same time. The caller owns all memory.
 *
 * A program that links libMLCompilerBridge.so passes the descriptor to
 * mlbridgeAddBuiltinModel(), so that `builtin:policy` names the model. C++
 * programs can use MLCompilerBridge/Runners/AOTModel.h.
 *
 * Without a library, the following code runs the model `policy`, which is
 * linked into the program. A program that opens libpolicy.so instead finds the
 * descriptor at the symbol `mlbridge_aot_model`.
 * \code
 *   extern const MLBridgeAOTModel mlbridge_aot_model_policy;
 *   const MLBridgeAOTModel *model = &mlbridge_aot_model_policy;
 *   int64_t nodes = 7, shapes[4];  // free extents; extents of all outputs
 *   uint64_t bytes;
 *   if (model->measure(&nodes, shapes, &bytes) != MLBRIDGE_AOT_OK) ...
 *   void *workspace;
 *   if (posix_memalign(&workspace, MLBRIDGE_AOT_ALIGNMENT, bytes) != 0) ...
 *   const void *inputs[] = {features, adjacency};
 *   void *outputs[] = {logits};
 *   model->variants[mlbridge_aot_choose(model)].run(&nodes, inputs, outputs,
 *                                                   workspace);
 * \endcode
 *
 * This header is plain C99. `mlbridge compile --emit c` copies the header into
 * the generated file, before the model's code.
 */

#ifndef MLCOMPILERBRIDGE_C_AOTMODEL_H
#define MLCOMPILERBRIDGE_C_AOTMODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! The value of the first field of every descriptor: "MLBA" in memory. */
#define MLBRIDGE_AOT_MAGIC 0x41424c4du
/*! The version of the layout and meaning of these structures. */
#define MLBRIDGE_AOT_ABI 1u
/*! The name of the descriptor's symbol in a shared library. The symbol has the
 * type `const MLBridgeAOTModel *const`. */
#define MLBRIDGE_AOT_SYMBOL "mlbridge_aot_model"
/*! The alignment of the workspace in bytes. An input or output needs only the
 * alignment of its element type. */
#define MLBRIDGE_AOT_ALIGNMENT 64
/*! Marks an output's extent that measure() computes. */
#define MLBRIDGE_AOT_COMPUTED (-1)
/*! Marks an extent whose value is element \p I of `free_extents`. */
#define MLBRIDGE_AOT_FREE(I) (-2 - (I))

/*! The results of a model's functions. */
enum {
  MLBRIDGE_AOT_OK = 0,
  /*! An input contains an index that is out of range. The outputs are
   * undefined. */
  MLBRIDGE_AOT_BAD_INDEX = 1,
  /*! A free extent is below 1, or the model does not accept it, or a tensor
   * would exceed 2^47 bytes. The property "mlbridge.extents" lists the extents
   * that the model accepts. */
  MLBRIDGE_AOT_BAD_EXTENT = 2
};

/*! Element types. MLBridge::ElementType has the same values. */
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
  /*! One byte that is 0 or 1. */
  MLBRIDGE_AOT_BOOL = 10
};

/*! An input or output. Its elements are dense and row-major. */
typedef struct MLBridgeAOTTensor {
  const char *name;
  uint32_t type;
  uint32_t rank;
  /*! The `rank` extents, outermost first. */
  const int64_t *extents;
} MLBridgeAOTTensor;

/*! One entry of the ONNX file's metadata, such as `mlbridge.extents`. */
typedef struct MLBridgeAOTProperty {
  const char *key;
  const char *value;
} MLBridgeAOTProperty;

/*! The model's code for one kind of CPU. All variants share the weights. */
typedef struct MLBridgeAOTVariant {
  /*! The kind of CPU: "x86-64-v4", "x86-64-v3" or "baseline". */
  const char *cpu;
  /*! Returns whether this CPU can run the variant. */
  int (*supported)(void);
  /*! Evaluates the model. The caller owns all memory. \p workspace has the
   * number of bytes that measure() returns for \p free_extents. \p inputs and
   * \p outputs have no null elements. \p free_extents may be null if the model
   * has no free extents. */
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
  /*! The variants, widest vectors first. The last variant runs on every CPU. */
  const MLBridgeAOTVariant *variants;
  /*! Computes the extents of all outputs and the size of the workspace in
   * bytes. \p output_extents receives the extents of the first output, then the
   * extents of the second output, and so on. */
  int (*measure)(const int64_t *free_extents, int64_t *output_extents,
                 uint64_t *workspace_bytes);
} MLBridgeAOTModel;

/*! Returns the index of the first variant that this CPU can run. */
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
