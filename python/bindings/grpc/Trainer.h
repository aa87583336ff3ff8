//===- Trainer.h - The trainer's end over gRPC ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Trainer: exchanges messages with a compiler that serves an environment over
/// gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_GRPC_TRAINER_H
#define MLBRIDGE_PYTHON_GRPC_TRAINER_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

#include <nanobind/nanobind.h>

namespace MLBridge::Python {

/// A factory of the formats in \p Formats, a sequence of Format.
SerDesFactory formatsOf(nanobind::handle Formats);

void bindTrainer(nanobind::module_ &M);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_GRPC_TRAINER_H
