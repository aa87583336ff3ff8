//===- ModuleLoader.cpp - Loads MLBridge-NAME.so --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Factory/ModuleLoader.h"

#include "Factory/ComponentSchemes.h"
#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/LibraryFolders.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::modules;

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// Returns whether \p Name is safe as part of a file name.
static bool isPlain(std::string_view Name) {
  return !Name.empty() && std::ranges::all_of(Name, [](char C) {
    return (C >= 'a' && C <= 'z') || (C >= '0' && C <= '9') || C == '-' ||
           C == '_';
  });
}

std::string modules::moduleFileFor(std::string_view Scheme) {
  return "MLBridge-" + std::string(Scheme.substr(0, Scheme.find('+'))) + ".so";
}

/// Returns the value of MLBRIDGE_MODULES, or an empty string if it is not set.
static std::string namedFolder() {
  const char *Named = std::getenv("MLBRIDGE_MODULES");
  return Named ? Named : "";
}

std::string modules::describeMissing(std::string_view Scheme) {
  const std::string Named = namedFolder();
  std::string Text = "no module " + moduleFileFor(Scheme) +
                     " in MLBRIDGE_MODULES" +
                     (Named.empty() ? std::string(" (not set)")
                                    : "=" + printable(Named, 5 * MostPrinted));
  for (const std::string &Folder : libraryFolders())
    Text += ", " + printable(Folder, 5 * MostPrinted);
  Text += " or the folders of the dynamic linker";
  if (isModuleScheme(Scheme))
    Text += "; run `mlbridge doctor` to find or install the module, and set "
            "MLBRIDGE_MODULES to its folder";
  return Text;
}

/// Returns the path of the module's file. If the file is in none of the
/// folders, returns only its name, so that the dynamic linker searches for it.
static std::string pathOf(const std::string &File) {
  std::vector<std::string> Folders = libraryFolders();
  if (std::string Named = namedFolder(); !Named.empty())
    Folders.insert(Folders.begin(), std::move(Named));
  for (std::string &Path : Folders) {
    Path.append("/").append(File);
    if (::access(Path.c_str(), F_OK) == 0)
      return std::move(Path);
  }
  return File;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Expected<const RunnerModule *> modules::loadModule(std::string_view Scheme) {
  if (!isPlain(Scheme.substr(0, Scheme.find('+'))))
    return nullptr;
  const std::string File = moduleFileFor(Scheme);
  const std::string Path = pathOf(File);
  auto Unusable = [&](const std::string &Why,
                      ErrorCode Code = ErrorCode::Unsupported) {
    return Error(Code, "scheme '" + printable(Scheme) +
                           "': " + printable(Path) + ": " + Why);
  };
  Expected<void *> Library =
      openLibrary(Path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!Library) {
    // Distinguish a missing module from a module whose dependency is missing.
    // The linker's message has the same words for both, but starts with the
    // name of the missing file.
    if (Path == File && Library.message().starts_with(File))
      return nullptr;
    return Unusable(std::string(Library.message()), Library.code());
  }
  const auto *Module = static_cast<const RunnerModule *>(
      ::dlsym(*Library, "MLBridgeRunnerModule"));
  if (!Module)
    return Unusable("expected a module of this library, which exports "
                    "MLBridgeRunnerModule");
  if (!Module->Version)
    return Unusable("expected a version, found a null pointer",
                    ErrorCode::Malformed);
  if (std::string_view(Module->Version) != MLBRIDGE_VERSION)
    return Unusable("expected version " MLBRIDGE_VERSION ", found " +
                    printable(Module->Version));
  if (!Module->AddRunners)
    return Unusable("expected the function AddRunners, found a null pointer",
                    ErrorCode::Malformed);
  return Module;
}
