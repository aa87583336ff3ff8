//===- FileStamp.cpp - Detects changes of a model's files -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/FileStamp.h"

#include "Support/PrintableText.h"
#include "Support/RegularFile.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::inprocess;

/// The limit on the number of files and folders in a model. A SavedModel has
/// about ten files and ten folders. With its assets, it may have hundreds of
/// files. Checking a folder of the maximal size takes 20 ms.
static constexpr std::size_t MostInFolder = 10'000;

Expected<FileStamp> FileStamp::of(const std::string &Path, Folders Allowed) {
  FileStamp Stamp;
  if (Error E = Stamp.add(Path, Allowed))
    return E;
  return Stamp;
}

Expected<FileStamp> FileStamp::ofParts(const std::vector<std::string> &Paths) {
  FileStamp Stamp;
  for (const std::string &Path : Paths) {
    if (::access(Path.c_str(), F_OK) != 0)
      Stamp.Files.emplace_back();
    else if (Error E = Stamp.add(Path, Folders::Refused))
      return E;
  }
  return Stamp;
}

Error FileStamp::add(const std::string &Path, Folders Allowed) {
  const std::string What = "model file '" + printable(Path) + "'";
  struct stat Status = {};
  if (::stat(Path.c_str(), &Status) != 0)
    return Error::fromErrno(errno, What);
  if (S_ISDIR(Status.st_mode) && Allowed == Folders::Allowed)
    return addFolder(Path);
  if (Error E = expectRegularFile(Status, What))
    return E;
  Files.push_back({std::uint64_t(Status.st_dev), std::uint64_t(Status.st_ino),
                   std::uint64_t(Status.st_size),
                   std::uint64_t(Status.st_mtim.tv_sec),
                   std::uint64_t(Status.st_mtim.tv_nsec)});
  return Error::success();
}

Error FileStamp::addFolder(const std::string &Path) {
  namespace fs = std::filesystem;
  const std::string What = "model folder '" + printable(Path) + "'";
  std::error_code Failure;
  std::vector<std::string> Names;
  std::size_t NumEntries = 0;
  for (fs::recursive_directory_iterator I(Path, Failure), End;
       !Failure && I != End; I.increment(Failure)) {
    if (++NumEntries > MostInFolder)
      return {ErrorCode::InvalidArgument, What +
                                              ": expected a model of at most " +
                                              std::to_string(MostInFolder) +
                                              " files and folders, found more"};
    if (I->is_regular_file(Failure))
      Names.push_back(I->path());
  }
  if (Failure)
    return {ErrorCode::System, What + ": " + Failure.message()};
  std::ranges::sort(Names);
  for (const std::string &Name : Names)
    if (Error E = add(Name, Folders::Refused))
      return E;
  return Error::success();
}
