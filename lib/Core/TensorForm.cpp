//===- TensorForm.cpp - Checks of a tensor's form -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Core/TensorForm.h"

#include <optional>

using namespace MLBridge;

std::string detail::misfit(const Shape &Dims, std::size_t Elements) {
  std::optional<std::size_t> Needed = Dims.numElements();
  if (!Needed)
    return "shape " + Dims.str() +
           " has a negative extent or too many elements";
  if (*Needed == Elements)
    return {};
  return "shape " + Dims.str() + " needs " + std::to_string(*Needed) +
         " elements, found " + std::to_string(Elements);
}

std::string detail::contradiction(const TensorView &View) {
  if (!View.Data && View.NumBytes != 0)
    return std::to_string(View.NumBytes) + " bytes at a null pointer";
  if (!View.isStringList() && !View.Lengths.empty())
    return View.typeStr() + " is not a list of strings, but has lengths";
  if (View.Type != ElementType::String) {
    if (View.NumBytes % elementSize(View.Type) != 0)
      return std::to_string(View.NumBytes) +
             " bytes are not a multiple of the size of " +
             std::string(elementTypeName(View.Type));
    return misfit(View.Dims, View.NumBytes / elementSize(View.Type));
  }
  if (View.Dims.rank() > 1)
    return "a list of strings has rank 1, found shape " + View.Dims.str();
  if (View.Dims.isScalar())
    return {};
  if (std::string Why = misfit(View.Dims, View.Lengths.size()); !Why.empty())
    return Why;
  std::size_t Left = View.NumBytes;
  for (std::uint64_t Length : View.Lengths) {
    if (Length > Left)
      return "the strings are longer than their " +
             std::to_string(View.NumBytes) + " bytes";
    Left -= Length;
  }
  if (Left != 0)
    return "the strings leave " + std::to_string(Left) + " of " +
           std::to_string(View.NumBytes) + " bytes unused";
  return {};
}
