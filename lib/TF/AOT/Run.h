/*===- Run.h - Calls what TensorFlow's compiler made ----------*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * Connects the C code that compile.py writes to the two C++ objects that XLA's
 * functions take.
 */

#ifndef MLBRIDGE_LIB_TF_AOT_RUN_H
#define MLBRIDGE_LIB_TF_AOT_RUN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! A compiled function, as XLA calls it. */
typedef void MLBridgeXLAFunction(void *result, const void *run_options,
                                 const void **arguments, void **buffers,
                                 void *status, int64_t *counters);

/*! Evaluates \p function in the calling thread. \p result is the element of
 * \p buffers that receives the addresses of the results. Buffers are aligned to
 * 64 bytes; those that the function owns are null. */
void mlbridge_xla_run(MLBridgeXLAFunction *function, void *result,
                      void **buffers);

#ifdef __cplusplus
}
#endif

#endif /* MLBRIDGE_LIB_TF_AOT_RUN_H */
