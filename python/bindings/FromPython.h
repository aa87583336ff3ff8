//===- FromPython.h - Python values as tensors ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorsFromPython converts Python values to tensors. The values are a
/// policy's advice, or the features of a compiler that is written in Python.
///
/// - A bool, int, float or str becomes a scalar.
/// - A list or tuple of these becomes a tensor of rank 1.
/// - A NumPy array or scalar keeps its type and shape.
/// - Any other object that NumPy can convert to an array is converted, for
///   example a torch.Tensor on the CPU or an array.array.
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

/// A FeatureSet that is filled from Python objects and can be reused.
///
/// Dense arrays in native byte order are not copied, and the set keeps
/// references to them until clear(). All other values are copied.
class TensorsFromPython {
public:
  /// The element types for Python's int and float. They apply unless add() is
  /// called with another type.
  struct NumberTypes {
    ElementType Int = ElementType::Int64;
    ElementType Float = ElementType::Double;
  };

  /// \p Noun names an entry in error messages, for example "feature" or
  /// "reply".
  explicit TensorsFromPython(std::string_view Noun) : Noun(Noun) {}

  void clear();
  void setNumberTypes(NumberTypes New) { Numbers = New; }

  /// Adds \p Value under \p Name. If \p Wanted is given, converts \p Value to
  /// that type. Raises SchemaMismatch, which is a TypeError, if \p Value is not
  /// a tensor or if the conversion would change its value.
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
  /// Converts \p Tensor to \p Type and adds it to the set. Copies the data
  /// unless \p Borrowed is true.
  void store(const Entry &E, TensorView Tensor, std::optional<ElementType> Type,
             bool Borrowed);
  void *allocate(std::size_t NumBytes);
  std::string subject(const Entry &E) const;
  void refuseMasked(const Entry &E, nanobind::handle Array) const;
  [[noreturn]] void mismatch(const Entry &E, const std::string &Found) const;

  std::string Noun;
  NumberTypes Numbers;
  FeatureSet Set;
  /// The memory for copies and converted tensors. The first 2048 bytes are part
  /// of this object and need no allocation.
  std::array<std::byte, 2048> FirstBlock;
  std::pmr::monotonic_buffer_resource Storage{FirstBlock.data(),
                                              FirstBlock.size()};
  /// The Python objects whose memory the set refers to.
  std::vector<nanobind::object> Borrowed;
};

/// Returns the text of a str as UTF-8. A lone surrogate becomes the byte that
/// it represents, which reverses textObject(). If Python does not store the
/// UTF-8 text, \p Backing is set to an object that owns it.
std::string_view toText(nanobind::handle Str, nanobind::object &Backing);

/// Returns a copy of the text of a str, converted as by toText(). It is used
/// for specs and paths, which may contain bytes that are not UTF-8.
std::string toString(const nanobind::str &Str);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FROMPYTHON_H
