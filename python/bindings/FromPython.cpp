//===- FromPython.cpp - Python values as tensors ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FromPython.h"
#include "Errors.h"
#include "NumPy.h"

#include "MLCompilerBridge/Advice.h"

#include <cstring>
#include <limits>

namespace nb = nanobind;

namespace MLBridge::Python {

//===----------------------------------------------------------------------===//
// Python objects
//===----------------------------------------------------------------------===//

static std::string textOf(nb::handle Value) { return nb::str(Value).c_str(); }

static PyArrayObject *asArray(nb::handle Value) {
  return reinterpret_cast<PyArrayObject *>(Value.ptr());
}

/// Returns the element type for an array's dtype. The byte order does not
/// matter.
static std::optional<ElementType> elementTypeOfDtype(const PyArray_Descr *D) {
  auto OfSize = [](npy_intp Bytes,
                   ElementType First) -> std::optional<ElementType> {
    for (int I = 0; I < 4; ++I)
      if (Bytes == (1 << I))
        return static_cast<ElementType>(static_cast<int>(First) + I);
    return std::nullopt;
  };
  npy_intp Bytes = PyDataType_ELSIZE(D);
  switch (D->kind) {
  case 'b':
    return ElementType::Bool;
  case 'i':
    return OfSize(Bytes, ElementType::Int8);
  case 'u':
    return OfSize(Bytes, ElementType::UInt8);
  case 'f':
    if (Bytes == sizeof(float))
      return ElementType::Float;
    if (Bytes == sizeof(double))
      return ElementType::Double;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::string_view toText(nb::handle Str, nb::object &Backing) {
  Py_ssize_t Size = 0;
  if (const char *Text = PyUnicode_AsUTF8AndSize(Str.ptr(), &Size))
    return {Text, static_cast<std::size_t>(Size)};
  PyErr_Clear();
  Backing = nb::steal(
      PyUnicode_AsEncodedString(Str.ptr(), "utf-8", "surrogateescape"));
  if (!Backing.is_valid())
    throw nb::python_error();
  return {PyBytes_AS_STRING(Backing.ptr()),
          static_cast<std::size_t>(PyBytes_GET_SIZE(Backing.ptr()))};
}

std::string toString(const nb::str &Str) {
  nb::object Backing;
  return std::string(toText(Str, Backing));
}

/// True if an array has masked elements. Their contents are meaningless.
static bool hasMaskedValues(nb::handle Array) {
  if (PyArray_CheckExact(Array.ptr()))
    return false;
  nb::object Masked = nb::module_::import_("numpy.ma");
  return nb::isinstance(Array, Masked.attr("MaskedArray")) &&
         nb::cast<bool>(Masked.attr("is_masked")(Array));
}

//===----------------------------------------------------------------------===//
// TensorsFromPython
//===----------------------------------------------------------------------===//

void TensorsFromPython::clear() {
  Set.clear();
  Storage.release();
  Borrowed.clear();
}

std::string TensorsFromPython::subject(const Entry &E) const {
  return Noun + " '" + std::string(E.Name) + "'";
}

void TensorsFromPython::mismatch(const Entry &E,
                                 const std::string &Found) const {
  std::string Expected =
      E.Wanted ? std::string(elementTypeName(*E.Wanted))
               : std::string("a number, a str, a list of these or an array");
  raise({ErrorCode::SchemaMismatch,
         subject(E) + ": expected " + Expected + ", found " + Found});
}

void TensorsFromPython::refuseMasked(const Entry &E, nb::handle Array) const {
  if (hasMaskedValues(Array))
    mismatch(E, "an array with masked values; fill them first "
                "(numpy.ma.filled)");
}

void *TensorsFromPython::allocate(std::size_t NumBytes) {
  return Storage.allocate(NumBytes, alignof(std::max_align_t));
}

void TensorsFromPython::store(const Entry &E, TensorView Tensor,
                              std::optional<ElementType> Type, bool Borrowed) {
  Tensor.Name = E.Name;
  if (Type && *Type != Tensor.Type) {
    if (*Type == ElementType::String || Tensor.Type == ElementType::String)
      mismatch(E, Tensor.typeStr());
    std::size_t NumBytes = Tensor.numElements() * elementSize(*Type);
    void *Converted = allocate(NumBytes);
    if (Error Failure = detail::convertElements(Tensor, *Type, Converted))
      raise(Failure);
    Tensor.Type = *Type;
    Tensor.Data = Converted;
    Tensor.NumBytes = NumBytes;
  } else if (!Borrowed) {
    void *Copy = allocate(Tensor.NumBytes);
    if (Tensor.NumBytes != 0)
      std::memcpy(Copy, Tensor.Data, Tensor.NumBytes);
    Tensor.Data = Copy;
  }
  Set.set(E.Name, Tensor);
  if (const Error &Misuse = Set.error())
    raise(Misuse);
}

template <typename T>
void TensorsFromPython::addScalar(const Entry &E, T Value,
                                  std::optional<ElementType> Default) {
  TensorView Tensor;
  Tensor.Type = *elementTypeOf<T>();
  Tensor.Data = &Value;
  Tensor.NumBytes = sizeof(T);
  store(E, Tensor, E.Wanted ? E.Wanted : Default, /*Borrowed=*/false);
}

void TensorsFromPython::addInt(const Entry &E, nb::handle Value) {
  int Overflow = 0;
  long long Signed = PyLong_AsLongLongAndOverflow(Value.ptr(), &Overflow);
  if (Overflow == 0) {
    addScalar<std::int64_t>(E, Signed, Numbers.Int);
    return;
  }
  unsigned long long Unsigned = PyLong_AsUnsignedLongLong(Value.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    mismatch(E, "an int that needs more than 64 bits");
  }
  addScalar<std::uint64_t>(E, Unsigned, std::nullopt);
}

/// Adds a NumPy scalar directly, without converting it to an array.
void TensorsFromPython::addNumPyScalar(const Entry &E, nb::handle Value) {
  nb::object Descr = nb::steal(
      reinterpret_cast<PyObject *>(PyArray_DescrFromScalar(Value.ptr())));
  if (!Descr.is_valid())
    throw nb::python_error();
  auto *D = reinterpret_cast<PyArray_Descr *>(Descr.ptr());
  std::optional<ElementType> Type = elementTypeOfDtype(D);
  if (!Type)
    mismatch(E, "dtype " + textOf(Descr));
  alignas(std::uint64_t) std::byte Element[sizeof(std::uint64_t)];
  PyArray_ScalarAsCtype(Value.ptr(), Element);
  TensorView Tensor;
  Tensor.Type = *Type;
  Tensor.Data = Element;
  Tensor.NumBytes = elementSize(*Type);
  store(E, Tensor, E.Wanted, /*Borrowed=*/false);
}

void TensorsFromPython::addArray(const Entry &E, nb::object Array) {
  std::optional<ElementType> Type =
      elementTypeOfDtype(PyArray_DESCR(asArray(Array)));
  if (!Type) {
    // Convert an array of NumPy's fixed-width strings to one str or a list of
    // str. Pass the type String, because the elements of an empty list cannot
    // show the type.
    if (PyArray_TYPE(asArray(Array)) == NPY_UNICODE &&
        PyArray_NDIM(asArray(Array)) <= 1) {
      refuseMasked(E, Array);
      add(E.Name, Array.attr("tolist")(),
          E.Wanted ? E.Wanted : ElementType::String);
      return;
    }
    mismatch(E, "dtype " + textOf(Array.attr("dtype")));
  }
  refuseMasked(E, Array);
  if (!PyArray_ISCARRAY_RO(asArray(Array))) {
    // Let NumPy copy an array that is strided, unaligned or byte-swapped.
    PyArray_Descr *Native =
        PyArray_DescrNewByteorder(PyArray_DESCR(asArray(Array)), NPY_NATIVE);
    PyObject *Plain =
        PyArray_FromArray(asArray(Array), Native, NPY_ARRAY_CARRAY_RO);
    if (!Plain)
      throw nb::python_error();
    Array = nb::steal(Plain);
  }
  PyArrayObject *Plain = asArray(Array);
  TensorView Tensor;
  Tensor.Type = *Type;
  for (int I = 0; I < PyArray_NDIM(Plain); ++I)
    if (!Tensor.Dims.push(PyArray_DIM(Plain, I)))
      mismatch(E, "an array of rank " + std::to_string(PyArray_NDIM(Plain)) +
                      " (the limit is " + std::to_string(Shape::MaxRank) + ")");
  Tensor.Data = PyArray_DATA(Plain);
  Tensor.NumBytes = static_cast<std::size_t>(PyArray_NBYTES(Plain));
  store(E, Tensor, E.Wanted, /*Borrowed=*/true);
  Borrowed.push_back(std::move(Array));
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// Writes \p Int to \p Out. Returns false if \p Out cannot represent \p Int
/// exactly.
static bool exactInt(PyObject *Int, std::int64_t &Out) {
  int Overflow = 0;
  Out = PyLong_AsLongLongAndOverflow(Int, &Overflow);
  return Overflow == 0;
}

static bool exactInt(PyObject *Int, std::uint64_t &Out) {
  Out = PyLong_AsUnsignedLongLong(Int);
  if (!PyErr_Occurred())
    return true;
  PyErr_Clear();
  return false;
}

static bool exactInt(PyObject *Int, double &Out) {
  std::int64_t Value = 0;
  if (!exactInt(Int, Value))
    return false;
  Out = static_cast<double>(Value);
  return Out < 0x1p63 && static_cast<std::int64_t>(Out) == Value;
}

/// Does the same as exactInt(), but also accepts a float.
static bool exactNumber(PyObject *Number, double &Out) {
  if (!PyFloat_CheckExact(Number))
    return exactInt(Number, Out);
  Out = PyFloat_AS_DOUBLE(Number);
  return true;
}

/// Makes \p Tensor a list of T. \p Take converts each item. Returns false if a
/// T cannot represent an item.
template <typename T>
static bool takeItems(Span<PyObject *> Items, bool (*Take)(PyObject *, T &),
                      void *Memory, TensorView &Tensor) {
  auto *Out = static_cast<T *>(Memory);
  for (PyObject *Item : Items)
    if (!Take(Item, *Out++))
      return false;
  Tensor.Type = *elementTypeOf<T>();
  Tensor.Data = Memory;
  Tensor.NumBytes = Items.size() * sizeof(T);
  return true;
}

/// Adds a list whose items are all bool, all int, or a mixture of int and
/// float. Returns false for any other list. The caller then lets NumPy convert
/// the list.
bool TensorsFromPython::addNumbers(const Entry &E, nb::handle Sequence) {
  Span<PyObject *> Items(
      PySequence_Fast_ITEMS(Sequence.ptr()),
      static_cast<std::size_t>(PySequence_Fast_GET_SIZE(Sequence.ptr())));
  std::size_t Bools = 0, Ints = 0, Floats = 0;
  for (PyObject *Item : Items) {
    Bools += PyBool_Check(Item);
    Ints += PyLong_CheckExact(Item);
    Floats += PyFloat_CheckExact(Item);
  }

  TensorView Tensor;
  Tensor.Dims.push(static_cast<std::int64_t>(Items.size()));
  std::optional<ElementType> Default;
  void *Memory = allocate(Items.size() * sizeof(std::uint64_t));
  if (Bools == Items.size()) {
    auto IsTrue = [](PyObject *Item, bool &Out) {
      Out = Item == Py_True;
      return true;
    };
    takeItems<bool>(Items, IsTrue, Memory, Tensor);
  } else if (Ints == Items.size()) {
    if (takeItems<std::int64_t>(Items, exactInt, Memory, Tensor))
      Default = Numbers.Int;
    else if (!takeItems<std::uint64_t>(Items, exactInt, Memory, Tensor))
      mismatch(E, "ints that need more than 64 bits");
  } else if (Ints + Floats == Items.size()) {
    if (!takeItems<double>(Items, exactNumber, Memory, Tensor))
      mismatch(E, "an int among floats that a double cannot hold");
    Default = Numbers.Float;
  } else {
    return false;
  }
  store(E, Tensor, E.Wanted ? E.Wanted : Default, /*Borrowed=*/true);
  return true;
}

/// Adds a list of str. Returns false if an item is not a str.
bool TensorsFromPython::addStrings(const Entry &E, nb::handle Sequence) {
  PyObject **Items = PySequence_Fast_ITEMS(Sequence.ptr());
  Py_ssize_t Count = PySequence_Fast_GET_SIZE(Sequence.ptr());
  std::vector<nb::object> Backing(Count);
  std::vector<std::string_view> Texts(Count);
  for (Py_ssize_t I = 0; I < Count; ++I) {
    if (!PyUnicode_Check(Items[I]))
      return false;
    Texts[I] = toText(Items[I], Backing[I]);
  }
  if (E.Wanted && *E.Wanted != ElementType::String)
    mismatch(E, "a list of str");
  Set.set(E.Name, Texts);
  return true;
}

void TensorsFromPython::addList(const Entry &E, nb::handle Sequence) {
  if (PySequence_Fast_GET_SIZE(Sequence.ptr()) == 0) {
    // An empty list does not show its element type, so use the expected type.
    if (E.Wanted == ElementType::String)
      Set.set(E.Name, std::vector<std::string_view>());
    else
      store(E, {{}, E.Wanted.value_or(Numbers.Float), {0}, nullptr, 0, {}},
            E.Wanted, /*Borrowed=*/false);
    return;
  }
  if (addStrings(E, Sequence) || addNumbers(E, Sequence))
    return;
  // Check each array in the list here, because NumPy would ignore its mask.
  for (Py_ssize_t I = 0; I < PySequence_Fast_GET_SIZE(Sequence.ptr()); ++I)
    if (nb::handle Item = PySequence_Fast_GET_ITEM(Sequence.ptr(), I);
        PyArray_Check(Item.ptr()))
      refuseMasked(E, Item);
  // Let NumPy convert other lists, such as nested lists and lists of NumPy
  // scalars.
  nb::object Array = nb::steal(PyArray_FROM_O(Sequence.ptr()));
  if (!Array.is_valid())
    mismatch(E, "a list that cannot be converted to an array: " +
                    textOf(nb::python_error().value()));
  // Refuse an array of strings, because NumPy converts numbers to strings if
  // the list contains a str.
  if (PyArray_TYPE(asArray(Array)) == NPY_UNICODE)
    mismatch(E, "a list of str and something else, or of lists of str");
  addArray(E, std::move(Array));
}

void TensorsFromPython::add(std::string_view Name, nb::handle Value,
                            std::optional<ElementType> Wanted) {
  Entry E{Name, Wanted};
  PyObject *Object = Value.ptr();
  // Check for float32 and int64 scalars first, because most policies return an
  // element of an array or the result of argmax().
  if (Py_TYPE(Object) == &PyFloatArrType_Type)
    return addScalar<float>(E, PyArrayScalar_VAL(Object, Float), std::nullopt);
  if (Py_TYPE(Object) == &PyInt64ArrType_Type)
    return addScalar<std::int64_t>(E, PyArrayScalar_VAL(Object, Int64),
                                   std::nullopt);
  if (PyBool_Check(Object)) {
    addScalar<bool>(E, Object == Py_True, std::nullopt);
  } else if (PyLong_Check(Object)) {
    addInt(E, Value);
  } else if (PyFloat_Check(Object)) {
    // Do not apply the default type to a NumPy float64, which is also a Python
    // float.
    addScalar<double>(E, PyFloat_AS_DOUBLE(Object),
                      PyFloat_CheckExact(Object) ? std::optional(Numbers.Float)
                                                 : std::nullopt);
  } else if (PyArray_Check(Object)) {
    addArray(E, nb::borrow(Value));
  } else if (PyUnicode_Check(Object)) {
    if (Wanted && *Wanted != ElementType::String)
      mismatch(E, "a str");
    nb::object Backing;
    Set.set(Name, toText(Value, Backing));
  } else if (PyList_Check(Object) || PyTuple_Check(Object)) {
    addList(E, Value);
  } else if (PyArray_IsScalar(Object, Number) ||
             PyArray_IsScalar(Object, Bool)) {
    addNumPyScalar(E, Value);
  } else if (PyArray_CheckScalar(Object) ||
             PyObject_HasAttrString(Object, "__array__") ||
             (PyObject_CheckBuffer(Object) && !PyBytes_Check(Object))) {
    nb::object Array = nb::steal(PyArray_FROM_O(Object));
    if (!Array.is_valid())
      throw nb::python_error();
    addArray(E, std::move(Array));
  } else {
    mismatch(E, textOf(nb::type_name(Value.type())));
  }
}

} // namespace MLBridge::Python
