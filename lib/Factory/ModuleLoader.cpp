//===- ModuleLoader.cpp - Schemes out of MLBridge-NAME.so -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Factory/ModuleLoader.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/OpenLibrary.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::modules;

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// A scheme is part of a file's name only if nothing else can be meant by it.
static bool isPlain(std::string_view Name) {
  return !Name.empty() && std::ranges::all_of(Name, [](char C) {
    return (C >= 'a' && C <= 'z') || (C >= '0' && C <= '9') || C == '-' ||
           C == '_';
  });
}

std::string modules::moduleFileFor(std::string_view Scheme) {
  return "MLBridge-" + std::string(Scheme.substr(0, Scheme.find('+'))) + ".so";
}

/// The module's path, or the file's name alone where only the dynamic linker
/// may know it.
static std::string pathOf(const std::string &File) {
  const char *Named = std::getenv("MLBRIDGE_MODULES");
  std::string Folder = Named ? Named : "";
  if (!Folder.empty())
    Folder += '/';
  for (const std::string &In : {Folder, ownFolder()})
    if (std::string Path = In + File;
        !In.empty() && ::access(Path.c_str(), F_OK) == 0)
      return Path;
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
    // The linker says the same of a file that is not there and of one whose own
    // libraries are not, but for the name in front.
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
