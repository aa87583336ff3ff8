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

/// Those that are modules of their own, by python/CMakeLists.txt.
static constexpr std::array<std::string_view, MLBRIDGE_NUM_FORMAT_MODULES>
    Modules{MLBRIDGE_FORMAT_MODULES};

/// The format of the module of that name, which is imported. The GIL is held.
static Format load(std::string_view Name) {
  std::string Module = "mlbridge._format_" + std::string(Name);
  return nb::cast<Format>(nb::module_::import_(Module.c_str()).attr("FORMAT"));
}

/// Stands for the format of that name until it is used.
static Format deferred(std::string_view Name) {
  auto Make =
      [Name](SerDes::Side Our) -> Expected<std::unique_ptr<BaseSerDes>> {
    nb::gil_scoped_acquire Acquire;
    // The caller is built without exceptions.
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

/// The line of a format that may be in a module yet to be imported.
static std::string helpOf(const Format &F) {
  bool IsDeferred = std::ranges::find(Modules, F.Name) != Modules.end();
  return IsDeferred ? load(F.Name).Help : F.Help;
}

void bindFormats(nb::module_ &M) {
  nb::class_<Format>(M, "Format",
                     "A SerDes by its name; for serving, asking and "
                     "mlbridge.codec.")
      .def_prop_ro(
          "name", [](const Format &F) { return F.Name; },
          "What a spec's option 'serdes' calls it.")
      .def_prop_ro("help", helpOf,
                   "One line about it. Raises ImportError where its library "
                   "is missing.")
      .def("__repr__",
           [](const Format &F) { return "<Format " + F.Name + ">"; });
  M.def("formats", formats, nb::sig("def formats() -> list[Format]"),
        "The formats of this build.");
}

} // namespace MLBridge::Python
