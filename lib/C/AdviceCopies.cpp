//===- AdviceCopies.cpp - Advice converted for C --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/AdviceCopies.h"

#include <cstring>

using namespace MLBridge;
using namespace MLBridge::C;

void *AdviceCopies::find(const TensorView &Of, Form Is,
                         ElementType Type) const {
  for (std::size_t I = 0; I != Used; ++I)
    if (Made[I].Of == &Of && Made[I].Is == Is && Made[I].Type == Type)
      return const_cast<std::max_align_t *>(Made[I].Memory.data());
  return nullptr;
}

void *AdviceCopies::make(const TensorView &Of, Form Is, ElementType Type,
                         std::size_t NumBytes) {
  if (Used == Made.size())
    Made.emplace_back();
  Copy &New = Made[Used];
  // Allocate at least one unit, so that the pointer is not null.
  std::size_t Units = NumBytes / sizeof(std::max_align_t) + 1;
  if (New.Memory.size() < Units)
    New.Memory.resize(Units);
  New.Of = &Of;
  New.Is = Is;
  New.Type = Type;
  ++Used;
  return New.Memory.data();
}

const char *AdviceCopies::terminated(const TensorView &Of, Form Is,
                                     std::string_view Text) {
  if (const void *Copy = find(Of, Is, ElementType::String))
    return static_cast<const char *>(Copy);
  auto *Copy =
      static_cast<char *>(make(Of, Is, ElementType::String, Text.size() + 1));
  Copy[Text.copy(Copy, Text.size())] = '\0';
  return Copy;
}

const char *AdviceCopies::name(const TensorView &Tensor) {
  return terminated(Tensor, Form::Name, Tensor.Name);
}

const char *AdviceCopies::text(const TensorView &Tensor) {
  return terminated(Tensor, Form::Text, Tensor.text());
}

const char *const *AdviceCopies::texts(const TensorView &Tensor) {
  if (const void *Copy = find(Tensor, Form::Texts, ElementType::String))
    return static_cast<const char *const *>(Copy);
  // Treat a single string as a list of one string.
  const std::uint64_t Whole = Tensor.NumBytes;
  const Span<const std::uint64_t> Lengths =
      Tensor.isStringList() ? Tensor.Lengths : Span(&Whole, 1);
  const std::size_t Count = Lengths.size();
  // The copy consists of the pointers, followed by the text.
  auto **Texts = static_cast<const char **>(
      make(Tensor, Form::Texts, ElementType::String,
           Count * sizeof(char *) + Tensor.NumBytes + Count));
  char *Out = reinterpret_cast<char *>(Texts + Count);
  std::string_view Left = Tensor.text();
  for (std::size_t I = 0; I != Count; ++I) {
    Texts[I] = Out;
    Out += Left.copy(Out, Lengths[I]);
    *Out++ = '\0';
    Left.remove_prefix(Lengths[I]);
  }
  return Texts;
}

Expected<const void *> AdviceCopies::elements(const TensorView &Tensor,
                                              ElementType Type) {
  if (Tensor.Type == ElementType::String)
    return detail::adviceMismatch(Tensor, elementTypeName(Type));
  if (const void *Copy = find(Tensor, Form::Elements, Type))
    return Copy;
  void *Copy = make(Tensor, Form::Elements, Type,
                    Tensor.numElements() * elementSize(Type));
  if (Error E = detail::convertElements(Tensor, Type, Copy)) {
    --Used;
    return E;
  }
  return Copy;
}
