//===- TensorForm.h - Whether a tensor's parts agree ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks of what a tensor says about itself, for all who take tensors from
/// outside: feature sets from compilers, SerDes from models.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_CORE_TENSORFORM_H
#define MLBRIDGE_LIB_CORE_TENSORFORM_H

#include "MLCompilerBridge/Tensor.h"

#include <cstddef>
#include <string>

namespace MLBridge::detail {

/// "shape [3,4] needs 12 elements, found 10", or nothing when they agree.
std::string misfit(const Shape &Dims, std::size_t Elements);

/// Why the shape, the size and the lengths of \p View contradict each other,
/// or nothing.
std::string contradiction(const TensorView &View);

} // namespace MLBridge::detail

#endif // MLBRIDGE_LIB_CORE_TENSORFORM_H
