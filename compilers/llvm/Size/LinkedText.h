//===- LinkedText.h - The code that a linker keeps --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Measures the machine code of a whole program as a linker with --gc-sections
/// keeps it. The program is one module, and each function has its own section.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_LINKEDTEXT_H
#define MLBRIDGE_LLVM_SIZE_LINKEDTEXT_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <unordered_map>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// The sizes of a program's code in bytes, without padding.
struct LinkedText {
  std::uint64_t Bytes = 0;
  /// The kept functions, by name.
  llvm::StringMap<std::uint64_t> Functions;
};

/// The globals that the linker keeps although nothing refers to them.
enum class LinkRoots {
  Main,     ///< `main`: the linker makes a program.
  Exported, ///< All exported symbols: the linker makes a shared library.
  /// All symbols that a file must define. The module is one file of an unknown
  /// program.
  Defined,
};

/// Measures variants of one program. Most functions of a variant equal
/// functions of earlier variants, so only new functions are compiled.
class LinkedTextMeter {
public:
  explicit LinkedTextMeter(LinkRoots Roots) : Roots(Roots) {}

  /// Measures \p M, an optimised program. Removes functions from \p M, which is
  /// useless afterwards. Also counts functions that the code generator makes by
  /// outlining. Returns InvalidArgument if the linker would keep no function of
  /// the program, or an error of emitObject().
  Expected<LinkedText> measure(llvm::Module &M);

private:
  const LinkRoots Roots;
  /// Maps a hash of a function's name and body to the function's size.
  std::unordered_map<std::uint64_t, std::uint64_t> Known;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_LINKEDTEXT_H
