//===- FromPython.h - Python values as tensors ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorsFromPython: converts the advice of a policy, or the features of a
/// compiler written in Python, to tensors.
///
/// A bool, int, float or str is a scalar; a list or tuple of them is a tensor
/// of rank 1; a NumPy array or scalar keeps its type and shape; anything else
/// that NumPy can convert to an array (a CPU torch.Tensor, array.array) is
/// converted.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FROMPYTHON_H
#define MLBRIDGE_PYTHON_FROMPYTHON_H

#include "MLCompilerBridge/FeatureSet.h"

#include <array>
#include <memory_resource>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <vector>

namespace MLBridge::Python {

/// A reusable FeatureSet filled from Python objects.
///
/// Dense arrays in native byte order are borrowed: the set keeps a reference to
/// them until clear(). Everything else is copied.
class TensorsFromPython {
public:
  /// The types of Python's int and float if the caller wants no other type.
  struct NumberTypes {
    ElementType Int = ElementType::Int64;
    ElementType Float = ElementType::Double;
  };

  /// \p Noun names an entry in messages: "feature", "reply".
  explicit TensorsFromPython(std::string_view Noun) : Noun(Noun) {}

  void clear();
  void setNumberTypes(NumberTypes New) { Numbers = New; }

  /// Adds \p Value, converted to \p Wanted if that is set. Raises
  /// SchemaMismatch, a TypeError, if \p Value is no tensor or the conversion
  /// would change it.
  void add(std::string_view Name, nanobind::handle Value,
           std::optional<ElementType> Wanted = std::nullopt);

  const FeatureSet &features() const { return Set; }

private:
  /// The entry that is being added.
  struct Entry {
    std::string_view Name;
    std::optional<ElementType> Wanted;
  };

  void addInt(const Entry &E, nanobind::handle Value);
  void addArray(const Entry &E, nanobind::object Array);
  void addNumPyScalar(const Entry &E, nanobind::handle Value);
  void addList(const Entry &E, nanobind::handle Sequence);
  bool addNumbers(const Entry &E, nanobind::handle Sequence);
  bool addStrings(const Entry &E, nanobind::handle Sequence);
  template <typename T>
  void addScalar(const Entry &E, T Value, std::optional<ElementType> Default);
  /// Converts \p Tensor to \p Type, and copies it if it is not \p Borrowed.
  void store(const Entry &E, TensorView Tensor, std::optional<ElementType> Type,
             bool Borrowed);
  void *allocate(std::size_t NumBytes);
  std::string subject(const Entry &E) const;
  void refuseMasked(const Entry &E, nanobind::handle Array) const;
  [[noreturn]] void mismatch(const Entry &E, const std::string &Found) const;

  std::string Noun;
  NumberTypes Numbers;
  FeatureSet Set;
  /// The memory of copies and conversions. The first 2048 bytes need no
  /// allocation.
  std::array<std::byte, 2048> FirstBlock;
  std::pmr::monotonic_buffer_resource Storage{FirstBlock.data(),
                                              FirstBlock.size()};
  /// The objects that the set borrows from.
  std::vector<nanobind::object> Borrowed;
};

/// The UTF-8 text of a str; lone surrogates become the bytes they stand for, as
/// in textObject(). \p Backing owns the text if Python does not.
std::string_view toText(nanobind::handle Str, nanobind::object &Backing);

/// Like toText(), but returns a copy: a spec, or a path, which need not be
/// UTF-8.
std::string toString(const nanobind::str &Str);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FROMPYTHON_H
