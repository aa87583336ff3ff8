//===- LibraryFolders.cpp - Folders to search for libraries ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/LibraryFolders.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <system_error>

using namespace MLBridge;
namespace fs = std::filesystem;

/// Returns the folder of the library, plug-in or program that contains this
/// code. Resolves symbolic links. Returns an empty path if the folder is
/// unknown.
static fs::path ownFolder() {
  Dl_info Here;
  ::link_map *Map = nullptr;
  if (::dladdr1(reinterpret_cast<void *>(&ownFolder), &Here,
                reinterpret_cast<void **>(&Map), RTLD_DL_LINKMAP) == 0 ||
      !Map)
    return {};
  // Use /proc/self/exe for the program, because its l_name is empty. dladdr()
  // would return argv[0], which may be relative or wrong.
  const char *Name = *Map->l_name ? Map->l_name : "/proc/self/exe";
  std::error_code Failure;
  return fs::canonical(Name, Failure).parent_path();
}

std::vector<std::string> MLBridge::libraryFolders() {
  const fs::path Own = ownFolder();
  std::vector<std::string> Folders;
  auto Add = [&Folders](const fs::path &Folder) {
    std::string Name = Folder.lexically_normal().string();
    if (std::ranges::find(Folders, Name) == Folders.end())
      Folders.push_back(std::move(Name));
  };
  if (!Own.empty())
    Add(Own);
  // This macro is undefined in a wheel, because the prefix of a wheel is not
  // known when it is built.
#ifdef MLBRIDGE_INSTALL_LIBDIR
  // Search in ../lib only for a program in a folder `bin`. For any other file,
  // ../lib may not belong to this project's installation.
  if (Own.filename() == "bin")
    Add(Own / ".." / MLBRIDGE_INSTALL_LIBDIR);
  Add(MLBRIDGE_INSTALL_FULL_LIBDIR);
#endif
  return Folders;
}
