//===- TensorForm.h - Checks of a tensor's form -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks that a tensor's shape, size and lengths agree. FeatureSet and each
/// SerDes use these checks for tensors from external input.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_CORE_TENSORFORM_H
#define MLBRIDGE_LIB_CORE_TENSORFORM_H

#include "MLCompilerBridge/Tensor.h"

#include <cstddef>
#include <string>

namespace MLBridge::detail {

/// Returns a description of a mismatch, such as "shape [3,4] needs 12 elements,
/// found 10". Returns an empty string if \p Dims and \p Elements agree.
std::string misfit(const Shape &Dims, std::size_t Elements);

/// Returns a description of a contradiction between the shape, the size and the
/// lengths of \p View. Returns an empty string if they agree.
std::string contradiction(const TensorView &View);

} // namespace MLBridge::detail

#endif // MLBRIDGE_LIB_CORE_TENSORFORM_H
