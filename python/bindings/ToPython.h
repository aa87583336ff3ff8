//===- ToPython.h - Tensors as NumPy arrays and strings ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts a tensor to a NumPy array, a str or a list of str. A scalar becomes
/// a 0-d array.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_TOPYTHON_H
#define MLBRIDGE_PYTHON_TOPYTHON_H

#include "MLCompilerBridge/Tensor.h"

#include <memory>
#include <nanobind/nanobind.h>
#include <string_view>

namespace MLBridge::Python {

/// Returns a Python object that keeps \p Memory alive.
nanobind::object ownerOf(std::shared_ptr<const void> Memory);

/// Returns a read-only array that views the tensor's elements in place and
/// keeps \p Owner alive. \p Tensor must not be a string tensor.
nanobind::object viewArray(const TensorView &Tensor, nanobind::handle Owner);

/// Returns a writable array with a copy of the elements. \p Tensor must not be
/// a string tensor.
nanobind::object copyArray(const TensorView &Tensor);

/// Converts a string tensor to a str or a list of str. Bytes that are not UTF-8
/// become lone surrogates, as in os.fsdecode. Therefore, every symbol name can
/// be represented.
nanobind::object textObject(const TensorView &Tensor);

/// Converts one text to a str, in the same way as textObject().
inline nanobind::object toStr(std::string_view Text) {
  PyObject *Str = PyUnicode_DecodeUTF8(
      Text.data(), static_cast<Py_ssize_t>(Text.size()), "surrogateescape");
  if (!Str)
    throw nanobind::python_error();
  return nanobind::steal(Str);
}

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_TOPYTHON_H
