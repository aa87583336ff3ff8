//===- SerDesFactory.h - SerDes by name -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SerDesFactory: from the name in `pipe:/tmp/advisor?serdes=json`, or in a
/// compiler's hello, to a SerDes.
///
/// There is no global registry: a program that links more formats, or has one
/// of its own, adds them to the RunnerFactory's (RunnerFactory::formats()) and
/// to the ModelServer's (ModelServerOptions::Formats).
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

/// Makes SerDes by name. A value: copy it, add to it, keep it anywhere.
class SerDesFactory {
public:
  /// Makes one for a session in which we are \p Our side.
  using Create =
      std::function<Expected<std::unique_ptr<BaseSerDes>>(SerDes::Side Our)>;
  struct Format {
    /// What BaseSerDes::name() says.
    std::string Name;
    /// One line for `mlbridge doctor`.
    std::string Help;
    Create Make;
  };

  /// Knows the formats of Core: bitstream and JSON.
  SerDesFactory();

  /// Adds a format, or replaces the one of the same name.
  void add(Format NewFormat);
  /// Adds one whose sides are alike: \p SerDesT is default-constructed.
  template <typename SerDesT> void add(std::string Name, std::string Help) {
    add({std::move(Name), std::move(Help),
         [](SerDes::Side) -> Expected<std::unique_ptr<BaseSerDes>> {
           return std::make_unique<SerDesT>();
         }});
  }
  Span<const Format> formats() const { return Formats; }

  /// The SerDes of that name; InvalidArgument where none is called so, with
  /// the names that there are.
  Expected<std::unique_ptr<BaseSerDes>> create(std::string_view Name,
                                               SerDes::Side Our) const;

private:
  std::vector<Format> Formats;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_SERDES_SERDESFACTORY_H
