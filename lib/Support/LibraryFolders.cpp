//===- LibraryFolders.cpp - Folders to search for libraries ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/LibraryFolders.h"

#include "Support/OpenLibrary.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

using namespace MLBridge;

std::vector<std::string> MLBridge::libraryFolders() {
  namespace fs = std::filesystem;
  fs::path Own = ownFolder();
  // The dynamic linker knows a program found through PATH by its bare name.
  std::error_code Failure;
  if (Own.empty())
    Own = fs::read_symlink("/proc/self/exe", Failure);
  Own = Own.parent_path();

  std::vector<std::string> Folders;
  auto Add = [&Folders](const fs::path &Folder) {
    std::string Name = Folder.lexically_normal().string();
    if (std::ranges::find(Folders, Name) == Folders.end())
      Folders.push_back(std::move(Name));
  };
  if (!Own.empty())
    Add(Own);
  // Undefined in a wheel, which is built for an unknown prefix.
#ifdef MLBRIDGE_INSTALL_LIBDIR
  if (!Own.empty())
    Add(Own / ".." / MLBRIDGE_INSTALL_LIBDIR);
  Add(MLBRIDGE_INSTALL_FULL_LIBDIR);
#endif
  return Folders;
}
