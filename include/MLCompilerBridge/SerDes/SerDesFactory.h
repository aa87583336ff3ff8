//===- SerDesFactory.h - Creates a SerDes from its name ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines SerDesFactory, which creates a SerDes from its name. The name comes
/// from a model spec (`pipe:/tmp/advisor?serdes=json`) or from a compiler's
/// handshake.
///
/// A program that links or defines additional formats adds them to its
/// RunnerFactory (RunnerFactory::formats()) and its ModelServer
/// (ModelServerOptions::Formats).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SERDES_SERDESFACTORY_H
#define MLCOMPILERBRIDGE_SERDES_SERDESFACTORY_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge {

/// Creates a SerDes from its name. A SerDesFactory is a copyable value.
class SerDesFactory {
public:
  /// Creates a SerDes for a session in which this process is the side \p Our.
  using Create =
      std::function<Expected<std::unique_ptr<BaseSerDes>>(SerDes::Side Our)>;
  struct Format {
    /// The format's BaseSerDes::name().
    std::string Name;
    /// The line that `mlbridge doctor` prints.
    std::string Help;
    Create Make;
  };

  /// Creates a factory with the formats "bitstream" and "json".
  SerDesFactory();

  /// Adds a format, or replaces the format with the same name.
  void add(Format NewFormat);
  /// Adds a format that is the same for both sides. \p SerDesT must have a
  /// default constructor.
  template <typename SerDesT> void add(std::string Name, std::string Help) {
    add({std::move(Name), std::move(Help),
         [](SerDes::Side) -> Expected<std::unique_ptr<BaseSerDes>> {
           return std::make_unique<SerDesT>();
         }});
  }
  Span<const Format> formats() const { return Formats; }

  /// Creates the SerDes called \p Name. If \p Name is unknown, returns an
  /// InvalidArgument that lists the known names.
  Expected<std::unique_ptr<BaseSerDes>> create(std::string_view Name,
                                               SerDes::Side Our) const;

private:
  std::vector<Format> Formats;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_SERDESFACTORY_H
