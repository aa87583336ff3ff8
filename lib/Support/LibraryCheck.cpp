//===- LibraryCheck.cpp - Checks before dlopen() --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/LibraryCheck.h"

#include "Support/PrintableText.h"
#include "Support/RegularFile.h"

#include <cstring>
#include <elf.h>
#include <link.h>
#include <unistd.h>

using namespace MLBridge;

/// Reads a T at \p Offset. Returns false on failure.
template <typename T> static bool readAt(int FD, std::uint64_t Offset, T &Out) {
  return ::pread(FD, &Out, sizeof(T), static_cast<off_t>(Offset)) ==
         static_cast<ssize_t>(sizeof(T));
}

/// Returns whether [Offset, Offset + Length) is inside a file of \p FileSize
/// bytes.
static bool isInside(std::uint64_t Offset, std::uint64_t Length,
                     std::uint64_t FileSize) {
  return Offset <= FileSize && Length <= FileSize - Offset;
}

/// Returns a description of the damage to the library \p FD, or an empty string
/// if the library is complete.
static std::string findDamage(int FD, std::uint64_t FileSize) {
  ElfW(Ehdr) Head;
  if (!readAt(FD, 0, Head) || std::memcmp(Head.e_ident, ELFMAG, SELFMAG) != 0 ||
      Head.e_ident[EI_CLASS] !=
          (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      Head.e_type != ET_DYN || Head.e_phentsize != sizeof(ElfW(Phdr)))
    return "expected a shared library for this machine";
  std::string CutShort =
      "the file ends at byte " + std::to_string(FileSize) +
      ", but its header lists more contents: it was cut short";
  // Check the section headers, because linkers write them at the end of a file.
  if (!isInside(Head.e_shoff, std::uint64_t(Head.e_shnum) * Head.e_shentsize,
                FileSize))
    return CutShort;
  for (unsigned I = 0; I < Head.e_phnum; ++I) {
    ElfW(Phdr) Segment;
    if (!readAt(FD, Head.e_phoff + I * sizeof(Segment), Segment) ||
        !isInside(Segment.p_offset, Segment.p_filesz, FileSize))
      return CutShort;
  }
  return {};
}

/// Returns a path to \p FD that no other file has while the library is loaded.
/// Such a path is necessary, because the dynamic linker does not load a file
/// whose name is the name of a loaded library. "/proc/self/fd/N" alone is not
/// unique, because another file may later have the same descriptor number.
/// Therefore, the path also encodes the file's device and inode as a sequence
/// of "./" and "/". A loaded file keeps its inode.
static std::string nameOf(int FD, const struct stat &Status) {
  std::string Name = "/proc/self/fd/";
  for (std::uint64_t Number :
       {std::uint64_t(Status.st_dev), std::uint64_t(Status.st_ino)})
    for (int Bit = 0; Bit < 64; ++Bit)
      Name += Number >> Bit & 1 ? "./" : "/";
  return Name + std::to_string(FD);
}

Expected<LibraryFile> LibraryFile::open(const std::string &Path) {
  const std::string Shown = "'" + printable(Path) + "'";
  Expected<RegularFile> Opened = openRegularFile(Path, "cannot open " + Shown);
  if (!Opened)
    return Opened.takeError();
  LibraryFile File(Opened->FD.release());
  std::string Damage =
      findDamage(File.FD, static_cast<std::uint64_t>(Opened->Status.st_size));
  if (!Damage.empty())
    return Error(ErrorCode::Malformed, Shown + ": " + Damage);
  File.Name = nameOf(File.FD, Opened->Status);
  return File;
}

LibraryFile::~LibraryFile() {
  if (FD >= 0)
    ::close(FD);
}

Error MLBridge::checkLibrary(const std::string &Path) {
  return LibraryFile::open(Path).takeError();
}
