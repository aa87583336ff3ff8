//===- Schema.h - Names, types and shapes of a message ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that check tensors. All formats call them before writing a tensor
/// and after reading a tensor. The class Schema stores a message's names, types
/// and shapes. While the schema does not change, a writer can reuse data that
/// depends only on the schema.
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

/// Returns \p Name in quotes, for an error message. Names come from other
/// processes, so long names are shortened and control characters are escaped.
std::string quoted(std::string_view Name);

/// Returns an error "feature 'x': <What>".
Error featureError(ErrorCode Code, std::string_view Name,
                   const std::string &What);

/// Checks that the shape, the size and the lengths of \p Tensor agree. Returns
/// an InvalidArgument error if they do not.
Error checkForm(const TensorView &Tensor);
/// Checks that the bytes of bools are 0 or 1 and that strings are UTF-8.
/// Otherwise, returns an error with \p Code. For other types, every value is
/// valid, so the check costs nothing.
Error checkElements(const TensorView &Tensor, ErrorCode Code);

/// Finds two equal names in O(n log n) steps, because a hostile peer may send
/// many names. Reuse one object for many calls. It allocates memory only if
/// there are more names than in all earlier calls.
class DuplicateFinder {
public:
  /// Returns a name that two elements of \p Named share, or nullopt if all
  /// names differ.
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

/// The last message's tensors, without their elements.
class Schema {
public:
  /// Stores the schema of \p Features. Returns true if it differs from the last
  /// schema. Returns an InvalidArgument error if a name is empty, not UTF-8 or
  /// duplicate, or if a tensor's shape, size and lengths disagree.
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

  /// The first Count elements are the last message's schema. The remaining
  /// elements are kept only so that their memory can be reused.
  std::vector<Entry> Entries;
  std::size_t Count = 0;
  bool IsValid = false;
  DuplicateFinder Duplicates;
};

} // namespace MLBridge::serdes

#endif // MLCOMPILERBRIDGE_LIB_SERDES_SCHEMA_H
