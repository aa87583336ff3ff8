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

/// Reads a T at \p Offset; false on failure.
template <typename T> static bool readAt(int FD, std::uint64_t Offset, T &Out) {
  return ::pread(FD, &Out, sizeof(T), static_cast<off_t>(Offset)) ==
         static_cast<ssize_t>(sizeof(T));
}

/// Whether [Offset, Offset + Length) lies within a file of \p FileSize bytes.
static bool isInside(std::uint64_t Offset, std::uint64_t Length,
                     std::uint64_t FileSize) {
  return Offset <= FileSize && Length <= FileSize - Offset;
}

/// Describes what is wrong with the library \p FD; empty if it is complete.
static std::string findDamage(int FD, std::uint64_t FileSize) {
  ElfW(Ehdr) Head;
  if (!readAt(FD, 0, Head) || std::memcmp(Head.e_ident, ELFMAG, SELFMAG) != 0 ||
      Head.e_ident[EI_CLASS] !=
          (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      Head.e_type != ET_DYN || Head.e_phentsize != sizeof(ElfW(Phdr)))
    return "expected a shared library for this machine";
  std::string CutShort = "the file ends at byte " + std::to_string(FileSize) +
                         ", before what its own header lists: it was cut short";
  // Linkers write the section headers last.
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

/// A path to \p FD that encodes the file's device and inode in "./" and "/".
/// The dynamic linker compares libraries by name first and remembers all names
/// of a loaded one, while descriptor numbers and file names are reused. A
/// loaded file keeps its inode, so no other file has the same number.
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
