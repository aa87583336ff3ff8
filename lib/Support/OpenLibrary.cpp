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

/// Returns whether the dynamic linker's message \p Why means that memory ran
/// out. The linker has no error code for exhausted memory. Its message usually
/// contains one of several texts about memory. But if there was no memory for a
/// path, the message states that an existing file cannot be opened. \p Path is
/// the library's path, or empty if the linker searched for the file.
static bool saysOutOfMemory(std::string_view Why, const std::string &Path) {
  for (std::string_view Words :
       {std::string_view("out of memory"), std::string_view("cannot create"),
        std::string_view(std::strerror(ENOMEM))})
    if (Why.find(Words) != std::string_view::npos)
      return true;
  if (Why.find("cannot allocate") != std::string_view::npos)
    // The static TLS block has a fixed size, so more memory would not help.
    return Why.find("static TLS block") == std::string_view::npos;
  return !Path.empty() &&
         Why.starts_with(Path + ": cannot open shared object file") &&
         ::access(Path.c_str(), R_OK) == 0;
}

Expected<void *> MLBridge::openLibrary(const std::string &Name, int Flags) {
  const bool IsPath = Name.find('/') != std::string::npos;
  // Do not check a missing file, because the linker's message about it is
  // clear.
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
  // Allow a long message, because it begins with the name.
  return Error(ErrorCode::Unsupported, printable(Why, 5 * MostPrinted));
}
