/*===- Run.h - Calls functions compiled by XLA --------------------*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * mlbridge_xla_run(): calls a function that XLA has compiled. The C code that
 * compile.py writes uses it, because XLA's functions need two C++ objects.
 */

#ifndef MLBRIDGE_LIB_TF_AOT_RUN_H
#define MLBRIDGE_LIB_TF_AOT_RUN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! The type of a compiled function, as XLA calls it. */
typedef void MLBridgeXLAFunction(void *result, const void *run_options,
                                 const void **arguments, void **buffers,
                                 void *status, int64_t *counters);

/*! Evaluates \p function in the calling thread. \p result is the element of
 * \p buffers to which the function writes the addresses of the results. Each
 * buffer must be aligned to 64 bytes. Pass null for the buffers that the
 * function owns. */
void mlbridge_xla_run(MLBridgeXLAFunction *function, void *result,
                      void **buffers);

#ifdef __cplusplus
}
#endif

#endif /* MLBRIDGE_LIB_TF_AOT_RUN_H */
