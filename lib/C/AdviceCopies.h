//===- AdviceCopies.h - Advice converted for C ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AdviceCopies: parts of advice in a form that C can read, such as names that
/// end with a NUL. Each is made once for an advice, and its memory is reused
/// for the next advice.
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
  /// The name, ending with a NUL.
  const char *name(const TensorView &Tensor);
  /// The text of a string, ending with a NUL.
  const char *text(const TensorView &Tensor);
  /// The strings of a list, each ending with a NUL. They must fit into the
  /// tensor's bytes.
  const char *const *texts(const TensorView &Tensor);
  /// The elements, converted to \p Type, which is a number or Bool.
  Expected<const void *> elements(const TensorView &Tensor, ElementType Type);

  /// Forgets all copies but keeps their memory.
  void clear() { Used = 0; }

private:
  enum class Form : std::uint8_t { Name, Text, Texts, Elements };
  struct Copy {
    const TensorView *Of = nullptr;
    Form Is = Form::Name;
    ElementType Type = ElementType::String;
    /// Aligned for any number.
    std::vector<std::max_align_t> Memory;
  };

  /// The copy in that form, or null.
  void *find(const TensorView &Of, Form Is, ElementType Type) const;
  /// Allocates a copy in that form and records it.
  void *make(const TensorView &Of, Form Is, ElementType Type,
             std::size_t NumBytes);
  const char *terminated(const TensorView &Of, Form Is, std::string_view Text);

  std::vector<Copy> Made;
  std::size_t Used = 0;
};

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_ADVICECOPIES_H
