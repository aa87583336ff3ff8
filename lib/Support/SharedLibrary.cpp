//===- SharedLibrary.cpp - RAII for dlopen() ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/SharedLibrary.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/PrintableText.h"

#include <dlfcn.h>

using namespace MLBridge;

void SharedLibrary::Close::operator()(void *Handle) const { ::dlclose(Handle); }

Expected<SharedLibrary> SharedLibrary::open(const std::string &Path) {
  Expected<LibraryFile> File = LibraryFile::open(Path);
  if (!File)
    return File.takeError();
  const std::string &Name = File->name();
  void *Handle = ::dlopen(Name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!Handle) {
    std::string_view Why = ::dlerror();
    if (Why.substr(0, Name.size() + 2) == Name + ": ")
      Why.remove_prefix(Name.size() + 2);
    return Error(ErrorCode::Unsupported, "'" + printable(Path) +
                                             "': the dynamic linker cannot "
                                             "load it: " +
                                             printable(Why));
  }
  return SharedLibrary(Handle);
}

const void *SharedLibrary::find(const char *Symbol) const {
  return ::dlsym(Handle.get(), Symbol);
}
