//===- Trainer.h - The trainer's end over gRPC ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Binds Trainer, which exchanges messages through gRPC with a compiler that
/// serves an environment.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_GRPC_TRAINER_H
#define MLBRIDGE_PYTHON_GRPC_TRAINER_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

#include <nanobind/nanobind.h>

namespace MLBridge::Python {

/// Returns a factory with the formats in \p Formats, which is a sequence of
/// Format.
SerDesFactory formatsOf(nanobind::handle Formats);

void bindTrainer(nanobind::module_ &M);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_GRPC_TRAINER_H
