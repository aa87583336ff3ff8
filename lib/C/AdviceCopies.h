//===- AdviceCopies.h - Advice converted for C ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines AdviceCopies, which stores parts of advice in a form for C, such as
/// names that end with a NUL. Each part is converted once per reply. The next
/// reply reuses the memory.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_ADVICECOPIES_H
#define MLBRIDGE_LIB_C_ADVICECOPIES_H

#include "MLCompilerBridge/Advice.h"

#include <cstddef>
#include <vector>

namespace MLBridge::C {

class AdviceCopies {
public:
  /// Returns a copy of the name that ends with a NUL.
  const char *name(const TensorView &Tensor);
  /// Returns a copy of the string that ends with a NUL.
  const char *text(const TensorView &Tensor);
  /// Returns copies of the strings of a list. Each copy ends with a NUL. The
  /// total of Tensor.Lengths must be at most Tensor.NumBytes.
  const char *const *texts(const TensorView &Tensor);
  /// Returns the elements, converted to \p Type. \p Type is a numeric type or
  /// Bool.
  Expected<const void *> elements(const TensorView &Tensor, ElementType Type);

  /// Removes all copies but keeps their memory.
  void clear() { Used = 0; }

private:
  enum class Form : std::uint8_t { Name, Text, Texts, Elements };
  struct Copy {
    const TensorView *Of = nullptr;
    Form Is = Form::Name;
    ElementType Type = ElementType::String;
    /// The copy's memory, which is aligned for every numeric type.
    std::vector<std::max_align_t> Memory;
  };

  /// Returns the copy of \p Of in the form \p Is, or null if there is no such
  /// copy.
  void *find(const TensorView &Of, Form Is, ElementType Type) const;
  /// Allocates memory for a copy of \p Of in the form \p Is and records the
  /// copy.
  void *make(const TensorView &Of, Form Is, ElementType Type,
             std::size_t NumBytes);
  const char *terminated(const TensorView &Of, Form Is, std::string_view Text);

  std::vector<Copy> Made;
  std::size_t Used = 0;
};

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_ADVICECOPIES_H
