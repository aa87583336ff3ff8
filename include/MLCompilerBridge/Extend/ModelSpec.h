//===- ModelSpec.h - One string that names a model --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpec: a parsed `scheme:path?key=value&key=value`. Reserved characters
/// (`% ? & = |`) in a path or value are percent-encoded. A decorator precedes
/// the spec that it decorates: `record:log.bin|fallback|pipe:/tmp/advisor`.
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

/// A model spec, parsed and percent-decoded.
struct ModelSpec {
  std::string Scheme;
  std::string Path;
  std::vector<std::pair<std::string, std::string>> Options;
  /// For a decorator: the spec after the first `|`, not decoded.
  std::string Inner;

  /// Parses \p Text; an InvalidArgument names the position of a mistake.
  static Expected<ModelSpec> parse(std::string_view Text);

  /// An InvalidArgument for the first option that is neither in \p Known nor
  /// `timeout`, which every scheme accepts.
  Error checkOptions(Span<const std::string_view> Known) const;
  /// The value of the option \p Key, or \p Default.
  std::string_view option(std::string_view Key, std::string_view Default) const;
  /// Parses a duration: `5s`, `200ms`, `50us`, `inf`. InvalidArgument for any
  /// other value, as in the two functions below.
  Expected<Duration> duration(std::string_view Key, Duration Default) const;
  /// Parses a number of bytes: `65536`, `64KiB`, `1GiB`.
  Expected<std::size_t> bytes(std::string_view Key, std::size_t Default) const;
  /// Parses an integer of 1 or more.
  Expected<std::size_t> number(std::string_view Key, std::size_t Default) const;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSPEC_H
