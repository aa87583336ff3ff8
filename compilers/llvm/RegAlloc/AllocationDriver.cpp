//===- AllocationDriver.cpp - What runs around the allocation -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the defaults of AllocationDriver.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationDriver.h"

namespace MLBridge {

AllocationDriver::~AllocationDriver() = default;

void AllocationDriver::finish(const llvm::MachineFunction &,
                              const AllocationCost &) {}

} // namespace MLBridge
