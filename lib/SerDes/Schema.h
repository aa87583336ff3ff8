//===- Schema.h - What a message's tensors look like ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What both formats check of a tensor before it is written and after it is
/// read, and Schema, which remembers a message's names, types and shapes: while
/// these stay as they were, whatever a writer made of them can be used again.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_LIB_SERDES_SCHEMA_H
#define MLCOMPILERBRIDGE_LIB_SERDES_SCHEMA_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <bit>
#include <string>
#include <vector>

namespace MLBridge::serdes {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied to and from little-endian messages as they "
              "are in memory");

/// \p Name in quotes for an error message. Names come from other processes:
/// long ones are cut, and what would upset a terminal is replaced.
std::string quoted(std::string_view Name);

/// "feature 'x': <What>", or only what if there is no name.
Error featureError(ErrorCode Code, std::string_view Name,
                   const std::string &What);

/// Whether the shape, the size and the lengths of \p Tensor agree.
Error checkForm(const TensorView &Tensor);
/// Whether the elements of \p Tensor are values of its type: a bool is 0 or 1,
/// a string is UTF-8. Every other type has no wrong values, and costs nothing.
/// \p Code is what it is otherwise.
Error checkElements(const TensorView &Tensor, ErrorCode Code);

/// Finds two equal names in time n log n, since they may come from a hostile
/// peer. Kept, it allocates only when there are more than ever before.
class DuplicateFinder {
public:
  /// A name that two of \p Named have.
  template <typename T>
  std::optional<std::string_view> find(Span<const T> Named) {
    Sorted.clear();
    for (const T &N : Named)
      Sorted.push_back(N.Name);
    return findInSorted();
  }

private:
  std::optional<std::string_view> findInSorted();

  std::vector<std::string_view> Sorted;
};

/// All of the last message's tensors but their elements.
class Schema {
public:
  /// Takes over \p Features. True when they differ from the last ones; an
  /// InvalidArgument when they are no message: a name that is empty, not UTF-8
  /// or there twice, or a tensor that contradicts itself.
  Expected<bool> update(Span<const TensorView> Features);

private:
  struct Entry {
    std::string Name;
    ElementType Type;
    Shape Dims;
    std::size_t NumBytes;
    std::vector<std::uint64_t> Lengths;

    bool hasFormOf(const TensorView &Tensor) const;
  };

  bool hasNamesOf(Span<const TensorView> Features) const;
  Error checkNames(Span<const TensorView> Features);

  /// Entries behind the first Count are of older messages, kept for their
  /// memory.
  std::vector<Entry> Entries;
  std::size_t Count = 0;
  bool IsValid = false;
  DuplicateFinder Duplicates;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_SCHEMA_H
