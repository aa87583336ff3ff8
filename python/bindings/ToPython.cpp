//===- ToPython.cpp - Tensors as NumPy arrays and strings -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToPython.h"
#include "NumPy.h"

#include <array>
#include <cstring>

namespace nb = nanobind;

namespace MLBridge::Python {

static int numpyType(ElementType Type) {
  switch (Type) {
  case ElementType::Int8:
    return NPY_INT8;
  case ElementType::Int16:
    return NPY_INT16;
  case ElementType::Int32:
    return NPY_INT32;
  case ElementType::Int64:
    return NPY_INT64;
  case ElementType::UInt8:
    return NPY_UINT8;
  case ElementType::UInt16:
    return NPY_UINT16;
  case ElementType::UInt32:
    return NPY_UINT32;
  case ElementType::UInt64:
    return NPY_UINT64;
  case ElementType::Float:
    return NPY_FLOAT32;
  case ElementType::Double:
    return NPY_FLOAT64;
  case ElementType::Bool:
    return NPY_BOOL;
  case ElementType::String:
    break;
  }
  return NPY_NOTYPE;
}

/// Creates an array with the tensor's type and shape. The array is a view of \p
/// Data. If \p Data is null, the array owns new memory.
static nb::object makeArray(const TensorView &Tensor, void *Data, int Flags) {
  std::array<npy_intp, Shape::MaxRank> Extents{};
  std::ranges::copy(Tensor.Dims, Extents.begin());
  PyObject *Array = PyArray_New(
      &PyArray_Type, static_cast<int>(Tensor.Dims.rank()), Extents.data(),
      numpyType(Tensor.Type), nullptr, Data, 0, Flags, nullptr);
  if (!Array)
    throw nb::python_error();
  return nb::steal(Array);
}

nb::object ownerOf(std::shared_ptr<const void> Memory) {
  using Held = std::shared_ptr<const void>;
  auto Holder = std::make_unique<Held>(std::move(Memory));
  nb::capsule Owner(Holder.get(),
                    [](void *P) noexcept { delete static_cast<Held *>(P); });
  (void)Holder.release();
  return Owner;
}

nb::object viewArray(const TensorView &Tensor, nb::handle Owner) {
  // Use a non-null address for an empty tensor, because NumPy allocates memory
  // if the address is null.
  static const std::uint64_t Nowhere = 0;
  const void *Data = Tensor.NumBytes == 0 ? &Nowhere : Tensor.Data;
  // The cast is safe, because the array is read-only without
  // NPY_ARRAY_WRITEABLE.
  nb::object Array =
      makeArray(Tensor, const_cast<void *>(Data), NPY_ARRAY_C_CONTIGUOUS);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(Array.ptr()),
                            Owner.inc_ref().ptr()) != 0)
    throw nb::python_error();
  return Array;
}

nb::object copyArray(const TensorView &Tensor) {
  nb::object Array = makeArray(Tensor, nullptr, 0);
  if (Tensor.NumBytes != 0)
    std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject *>(Array.ptr())),
                Tensor.Data, Tensor.NumBytes);
  return Array;
}

nb::object textObject(const TensorView &Tensor) {
  if (!Tensor.isStringList())
    return toStr(Tensor.text());
  nb::list Strings;
  const char *Text = static_cast<const char *>(Tensor.Data);
  for (std::uint64_t Length : Tensor.Lengths) {
    Strings.append(toStr({Text, Length}));
    Text += Length;
  }
  return Strings;
}

} // namespace MLBridge::Python
