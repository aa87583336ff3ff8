//===- Formats.cpp - Every SerDes that Python may name ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formats.h"
#include "Bindings.h"
#include "ToPython.h"

#include <array>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace MLBridge::Python {

using Format = SerDesFactory::Format;

/// The formats that have their own module. python/CMakeLists.txt defines the
/// list.
static constexpr std::array<std::string_view, MLBRIDGE_NUM_FORMAT_MODULES>
    Modules{MLBRIDGE_FORMAT_MODULES};

/// Imports the module of a format. The caller must hold the GIL.
static Format load(std::string_view Name) {
  std::string Module = "mlbridge._format_" + std::string(Name);
  return nb::cast<Format>(nb::module_::import_(Module.c_str()).attr("FORMAT"));
}

/// Returns a format whose module is imported when the format creates its first
/// SerDes.
static Format deferred(std::string_view Name) {
  auto Make =
      [Name](SerDes::Side Our) -> Expected<std::unique_ptr<BaseSerDes>> {
    nb::gil_scoped_acquire Acquire;
    // Convert exceptions to an error, because the caller does not catch
    // exceptions.
    try {
      return load(Name).Make(Our);
    } catch (const std::exception &E) {
      return Error(ErrorCode::Unsupported,
                   "the SerDes '" + std::string(Name) +
                       "' cannot be loaded: " + E.what());
    }
  };
  return {std::string(Name), "", Make};
}

SerDesFactory formatsWith(nb::handle More) {
  SerDesFactory All;
  for (std::string_view Name : Modules)
    All.add(deferred(Name));
  for (nb::handle One : More)
    All.add(nb::cast<Format>(One));
  return All;
}

static nb::list formats() {
  SerDesFactory Known = formatsWith(nb::tuple());
  nb::list All;
  for (const Format &F : Known.formats())
    All.append(nb::cast(F));
  return All;
}

/// Returns the help of a format. If the format has its own module, imports that
/// module.
static std::string helpOf(const Format &F) {
  bool IsDeferred = std::ranges::find(Modules, F.Name) != Modules.end();
  return IsDeferred ? load(F.Name).Help : F.Help;
}

void bindFormats(nb::module_ &M) {
  nb::class_<Format>(M, "Format",
                     "A SerDes, for servers, runners and mlbridge.codec.")
      .def_prop_ro(
          "name", [](const Format &F) { return F.Name; },
          "The format's name in the option 'serdes' of a spec.")
      .def_prop_ro(
          "help", helpOf,
          "One line of help. Raises ImportError if the format's library is "
          "missing.")
      .def("__repr__",
           [](const Format &F) { return "<Format " + F.Name + ">"; });
  M.def("formats", formats, nb::sig("def formats() -> list[Format]"),
        "The formats of this build.");
}

} // namespace MLBridge::Python
