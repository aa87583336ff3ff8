/*===- other-abi.c - A model of a later ABI -----------------------*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * A model of a later ABI. Only its first two fields are known.
 */

#include "MLCompilerBridge-C/AOTModel.h"

static const MLBridgeAOTModel Later = {
    .magic = MLBRIDGE_AOT_MAGIC,
    .abi = MLBRIDGE_AOT_ABI + 1,
};
const MLBridgeAOTModel *const mlbridge_aot_model = &Later;
