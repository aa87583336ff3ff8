//===- OpenLibrary.cpp - Loading libraries at run time --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/LibraryCheck.h"

#include "Support/PrintableText.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace MLBridge;

/// Whether \p Why, the dynamic linker's message about \p Path, means that
/// memory ran out. \p Path is empty if the linker searched for the file. The
/// linker has no error code for this case: it names what it could not create or
/// allocate, or, without memory to expand a path, reports that an existing file
/// is missing.
static bool saysOutOfMemory(std::string_view Why, const std::string &Path) {
  for (std::string_view Words :
       {std::string_view("out of memory"), std::string_view("cannot create"),
        std::string_view(std::strerror(ENOMEM))})
    if (Why.find(Words) != std::string_view::npos)
      return true;
  if (Why.find("cannot allocate") != std::string_view::npos)
    // The static TLS block has a fixed size.
    return Why.find("static TLS block") == std::string_view::npos;
  return !Path.empty() &&
         Why.starts_with(Path + ": cannot open shared object file") &&
         ::access(Path.c_str(), R_OK) == 0;
}

Expected<void *> MLBridge::openLibrary(const std::string &Name, int Flags) {
  const bool IsPath = Name.find('/') != std::string::npos;
  // For a missing file, the linker's own message is clear.
  if (IsPath && ::access(Name.c_str(), F_OK) == 0)
    if (Error E = checkLibrary(Name))
      return Error(ErrorCode::Unsupported, E.message());
  if (void *Library = ::dlopen(Name.c_str(), Flags))
    return Library;
  const char *Why = ::dlerror();
  if (!Why)
    Why = "the dynamic linker gives no reason";
  if (saysOutOfMemory(Why, IsPath ? Name : std::string()))
    return Error(ErrorCode::System, "'" + printable(Name) +
                                        "': out of memory (" + printable(Why) +
                                        ")");
  // The message begins with the name, which may be long.
  return Error(ErrorCode::Unsupported, printable(Why, 5 * MostPrinted));
}
