//===- ModelSpec.h - One string that names a model --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpec: `scheme:path?key=value&key=value`, taken apart. Reserved
/// characters (`% ? & = |`) in a path or value are percent-encoded. A decorator
/// stands before the spec it decorates:
/// `record:log.bin|fallback|pipe:/tmp/advisor`.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MODELSPEC_H
#define MLCOMPILERBRIDGE_EXTEND_MODELSPEC_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace MLBridge {

/// A model spec, taken apart and percent-decoded.
struct ModelSpec {
  std::string Scheme;
  std::string Path;
  std::vector<std::pair<std::string, std::string>> Options;
  /// For a decorator: the spec behind the first `|`, as it was written.
  std::string Inner;

  static Expected<ModelSpec> parse(std::string_view Text);

  /// An InvalidArgument that names the first option that is not in \p Known.
  Error checkOptions(Span<const std::string_view> Known) const;
  /// The value of option \p Key, or \p Default.
  std::string_view option(std::string_view Key, std::string_view Default) const;
  /// `5s`, `200ms`, `50us`, `inf`.
  Expected<Duration> duration(std::string_view Key, Duration Default) const;
  /// A number of bytes: `65536`, `64KiB`, `1GiB`.
  Expected<std::size_t> bytes(std::string_view Key, std::size_t Default) const;
  /// A whole number of 1 or more.
  Expected<std::size_t> number(std::string_view Key, std::size_t Default) const;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSPEC_H
