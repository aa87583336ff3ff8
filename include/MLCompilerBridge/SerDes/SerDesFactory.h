//===- SerDesFactory.h - SerDes by name -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SerDesFactory: creates a SerDes from its name in a model spec
/// (`pipe:/tmp/advisor?serdes=json`) or in a compiler's handshake.
///
/// A program that links or defines more formats adds them to its RunnerFactory
/// (RunnerFactory::formats()) and its ModelServer
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

/// Creates SerDes by name. A copyable value.
class SerDesFactory {
public:
  /// Creates one for a session in which this process is side \p Our.
  using Create =
      std::function<Expected<std::unique_ptr<BaseSerDes>>(SerDes::Side Our)>;
  struct Format {
    /// BaseSerDes::name() of the format.
    std::string Name;
    /// One line for `mlbridge doctor`.
    std::string Help;
    Create Make;
  };

  /// Contains the formats of Core: bitstream and JSON.
  SerDesFactory();

  /// Adds a format, or replaces the one with the same name.
  void add(Format NewFormat);
  /// Adds a format whose sides do not differ: \p SerDesT is
  /// default-constructed.
  template <typename SerDesT> void add(std::string Name, std::string Help) {
    add({std::move(Name), std::move(Help),
         [](SerDes::Side) -> Expected<std::unique_ptr<BaseSerDes>> {
           return std::make_unique<SerDesT>();
         }});
  }
  Span<const Format> formats() const { return Formats; }

  /// Creates the SerDes called \p Name. An unknown name is an InvalidArgument
  /// that lists the known ones.
  Expected<std::unique_ptr<BaseSerDes>> create(std::string_view Name,
                                               SerDes::Side Our) const;

private:
  std::vector<Format> Formats;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_SERDESFACTORY_H
