//===- FileStamp.cpp - Whether a model's file has changed -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/FileStamp.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::inprocess;

Expected<FileStamp> FileStamp::of(const std::string &Path) {
  FileStamp Stamp;
  if (Error E = Stamp.add(Path))
    return E;
  return Stamp;
}

Expected<FileStamp> FileStamp::ofParts(const std::vector<std::string> &Paths) {
  FileStamp Stamp;
  for (const std::string &Path : Paths) {
    if (::access(Path.c_str(), F_OK) != 0)
      Stamp.Files.emplace_back();
    else if (Error E = Stamp.add(Path))
      return E;
  }
  return Stamp;
}

Error FileStamp::add(const std::string &Path) {
  struct stat Status = {};
  if (::stat(Path.c_str(), &Status) != 0)
    return Error::fromErrno(errno, "model file '" + Path + "'");
  if (S_ISDIR(Status.st_mode))
    return addFolder(Path);
  if (!S_ISREG(Status.st_mode))
    return {ErrorCode::InvalidArgument,
            "model file '" + Path +
                "': expected a file or a folder, found something else, such "
                "as a pipe or a device"};
  Files.push_back({std::uint64_t(Status.st_dev), std::uint64_t(Status.st_ino),
                   std::uint64_t(Status.st_size),
                   std::uint64_t(Status.st_mtim.tv_sec),
                   std::uint64_t(Status.st_mtim.tv_nsec)});
  return Error::success();
}

Error FileStamp::addFolder(const std::string &Path) {
  namespace fs = std::filesystem;
  std::error_code Failure;
  std::vector<std::string> Names;
  for (fs::recursive_directory_iterator I(Path, Failure), End;
       !Failure && I != End; I.increment(Failure))
    if (I->is_regular_file(Failure))
      Names.push_back(I->path());
  if (Failure)
    return {ErrorCode::System,
            "model folder '" + Path + "': " + Failure.message()};
  std::ranges::sort(Names);
  for (const std::string &Name : Names)
    if (Error E = add(Name))
      return E;
  return Error::success();
}
