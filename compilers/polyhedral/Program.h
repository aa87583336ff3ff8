//===- Program.h - Compiles and runs programs ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs gcc, and then the program that gcc makes, each with a time limit.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_PROGRAM_H
#define MLBRIDGE_POLYHEDRAL_PROGRAM_H

#include <string>
#include <vector>

namespace MLBridge::polyhedral {

/// A folder for temporary files, which exists as long as the object.
class TemporaryFolder {
public:
  /// Throws UserError.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  const std::string &path() const { return Path; }
  std::string file(const char *Name) const { return Path + "/" + Name; }

private:
  std::string Path;
};

/// The result that a program of programOf() prints for a function.
struct Measured {
  bool IsSame = false;
  /// The time of each run in nanoseconds.
  std::vector<double> Times;
};

/// Returns the median of \p Values, which must not be empty.
double medianOf(std::vector<double> Values);

/// Compiles \p Code with `gcc -O3` and runs it. Throws UserError if gcc or the
/// program fails, or takes more than \p Seconds.
std::vector<Measured> runProgram(const std::string &Code, int Seconds);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_PROGRAM_H
