//===- FromPython.h - Python values as tensors ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorsFromPython: turns what a policy returns, or what a Python compiler
/// asks about, into tensors.
///
/// A bool, int, float or str is a scalar; a list or tuple of them is a tensor
/// of rank 1; a NumPy array or scalar has its own type and shape; anything else
/// that NumPy takes for an array (a CPU torch.Tensor, array.array) is one.
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

/// A FeatureSet filled from Python objects, made to be refilled.
///
/// Arrays are borrowed where they are dense and in native byte order, and the
/// set keeps a reference to them until clear(); everything else is copied.
class TensorsFromPython {
public:
  /// The types that Python's own numbers get when nobody asks for another.
  struct NumberTypes {
    ElementType Int = ElementType::Int64;
    ElementType Float = ElementType::Double;
  };

  /// \p Noun is what messages call an entry: "feature", "reply".
  explicit TensorsFromPython(std::string_view Noun) : Noun(Noun) {}

  void clear();
  void setNumberTypes(NumberTypes New) { Numbers = New; }

  /// Adds \p Value, as an element type of \p Wanted where that is set and the
  /// conversion keeps the value. Raises SchemaMismatch, which is a TypeError.
  void add(std::string_view Name, nanobind::handle Value,
           std::optional<ElementType> Wanted = std::nullopt);

  const FeatureSet &features() const { return Set; }

private:
  /// What is being added; for the functions below.
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
  /// Copies and conversions live here; the first few need no allocation.
  std::array<std::byte, 2048> FirstBlock;
  std::pmr::monotonic_buffer_resource Storage{FirstBlock.data(),
                                              FirstBlock.size()};
  /// What the set borrows from.
  std::vector<nanobind::object> Borrowed;
};

/// The text of a str, with textObject()'s rule for what is no UTF-8; \p Backing
/// holds it where Python has no UTF-8 form at hand.
std::string_view toText(nanobind::handle Str, nanobind::object &Backing);

/// The same as a string of its own: a spec, or a path, which need not be UTF-8.
std::string toString(const nanobind::str &Str);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FROMPYTHON_H
