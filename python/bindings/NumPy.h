//===- NumPy.h - NumPy's C API ----------------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Includes NumPy's C API. The C API creates a view of a feature in 30 ns,
/// whereas the buffer protocol needs 219 ns. The C API also supports NumPy's
/// own types. With the buffer protocol, an int64 array would have the dtype
/// longlong.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_NUMPY_H
#define MLBRIDGE_PYTHON_NUMPY_H

#include <nanobind/nanobind.h>

// Only Module.cpp defines MLBRIDGE_IMPORTS_NUMPY. That file therefore defines
// the table of NumPy's functions, which all files use.
#define PY_ARRAY_UNIQUE_SYMBOL MLBridgeNumPyAPI
#ifndef MLBRIDGE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#endif // MLBRIDGE_PYTHON_NUMPY_H
