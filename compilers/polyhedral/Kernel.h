//===- Kernel.h - Descriptions of loop nests --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a kernel: loop nests as integer sets, and the statements inside them.
/// README.md describes the files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_KERNEL_H
#define MLBRIDGE_POLYHEDRAL_KERNEL_H

#include <cstdint>
#include <isl/cpp.h>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace MLBridge::polyhedral {

/// A mistake in a kernel, an option or a choice. Like isl's exceptions, it is
/// caught in main().
class UserError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An array of doubles.
struct Array {
  std::string Name;
  std::vector<std::int64_t> Extents;
  /// A C expression of the subscripts i0, i1, ... that gives the value of each
  /// element before the kernel runs.
  std::string Initial;
};

/// One access of a statement, as affine functions of the statement's iterators.
// NOLINTNEXTLINE(bugprone-exception-escape): isl's objects have no move.
struct Access {
  std::string Array;
  isl::multi_aff Subscripts;
  bool IsWrite = false;
};

// NOLINTNEXTLINE(bugprone-exception-escape): isl's objects have no move.
struct Statement {
  std::string Name;
  std::vector<std::string> Iterators;
  isl::set Domain;
  /// The time of each instance in the original order.
  isl::multi_aff Time;
  /// A C assignment.
  std::string Body;
  std::vector<Access> Accesses;
};

// NOLINTNEXTLINE(bugprone-exception-escape): isl's objects have no move.
struct Kernel {
  std::string Name;
  std::vector<Array> Arrays;
  std::vector<Statement> Statements;
  /// The instances of all statements, and the original order of execution.
  isl::union_set Domain;
  isl::union_map Order;
  isl::union_map Reads;
  isl::union_map Writes;

  const Array &array(const std::string &Name) const;
};

/// The values of parameters, by name.
using Parameters = std::map<std::string, std::int64_t>;

/// Reads a kernel from the JSON file \p Path. \p Given replaces the values of
/// parameters. Throws UserError or isl::exception.
Kernel readKernel(isl::ctx Context, const std::string &Path,
                  const Parameters &Given);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_KERNEL_H
