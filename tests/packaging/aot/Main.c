/*===- Main.c - A model in a program in C -------------------------*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * A model linked into a C program, called through its descriptor.
 */

#include "several.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const MLBridgeAOTModel *model = &mlbridge_aot_model_several;
  const int64_t count = 4;
  const double weight = 0.5;
  const float sizes[6] = {1, 2, 4, 8, 16, 32};
  const bool flags[6] = {true, false, true, false, true, true};
  const void *inputs[] = {&count, &weight, sizes, flags};
  float score = 0;
  double score64 = 0;
  bool decision = false;
  int64_t next = 0;
  void *outputs[] = {&score, &score64, &decision, &next};
  uint64_t bytes;
  int64_t extents[1];
  if (model->abi != MLBRIDGE_AOT_ABI ||
      model->measure(NULL, extents, &bytes) != MLBRIDGE_AOT_OK)
    return 1;
  /* aligned_alloc would need C11. */
  char *memory = malloc(bytes + MLBRIDGE_AOT_ALIGNMENT);
  if (!memory)
    return 2;
  char *workspace = memory + MLBRIDGE_AOT_ALIGNMENT -
                    (uintptr_t)memory % MLBRIDGE_AOT_ALIGNMENT;
  const MLBridgeAOTVariant *variant =
      &model->variants[mlbridge_aot_choose(model)];
  const int status = variant->run(NULL, inputs, outputs, workspace);
  printf("%s by %s: %g\n", model->name, variant->cpu, score64);
  free(memory);
  return status == MLBRIDGE_AOT_OK && score == 30.5F && score64 == 30.5 &&
                 decision && next == 5
             ? 0
             : 3;
}
