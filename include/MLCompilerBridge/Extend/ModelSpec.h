//===- ModelSpec.h - One string that names a model --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ModelSpec, a parsed `scheme:path?key=value&key=value`. Reserved
/// characters (`% ? & = |`) in a path or value are percent-encoded. A decorator
/// precedes the spec that it decorates, as in
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

/// A model spec, parsed and percent-decoded.
struct ModelSpec {
  std::string Scheme;
  std::string Path;
  std::vector<std::pair<std::string, std::string>> Options;
  /// The spec of the decorated runner: the text after the first `|`, still
  /// percent-encoded.
  std::string Inner;

  /// Parses \p Text. If \p Text is invalid, returns an InvalidArgument that
  /// names the position of the mistake.
  static Expected<ModelSpec> parse(std::string_view Text);

  /// Returns InvalidArgument if an option is not in \p Known. The option
  /// `timeout` need not be in \p Known, because every scheme accepts it.
  Error checkOptions(Span<const std::string_view> Known) const;
  /// Returns the value of the option \p Key, or \p Default if the spec lacks
  /// it.
  std::string_view option(std::string_view Key, std::string_view Default) const;
  /// Parses the option \p Key as a duration, such as `5s`, `200ms`, `50us` or
  /// `inf`. This function and the next two return \p Default if the spec lacks
  /// the option, and InvalidArgument if its value is invalid.
  Expected<Duration> duration(std::string_view Key, Duration Default) const;
  /// Parses the option \p Key as a number of bytes, such as `65536`, `64KiB` or
  /// `1GiB`.
  Expected<std::size_t> bytes(std::string_view Key, std::size_t Default) const;
  /// Parses the option \p Key as an integer of 1 or more.
  Expected<std::size_t> number(std::string_view Key, std::size_t Default) const;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSPEC_H
