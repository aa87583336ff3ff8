//===- TFRuntime.cpp - Loads TensorFlow's C API ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TF/TFRuntime.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/PrintableText.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace MLBridge;
using namespace MLBridge::tf;

/// The library is never unloaded, because its threads and registries would
/// outlive it.
///
/// The library contains its own LLVM, which has the same symbol names as the
/// compiler's LLVM. RTLD_DEEPBIND makes the library use its own LLVM.
/// Otherwise, both LLVMs register the same options, and LLVM ends the process.
/// ASan forbids RTLD_DEEPBIND, so under ASan, TensorFlow cannot run in a
/// compiler that uses LLVM.
#if defined(__SANITIZE_ADDRESS__)
#define MLBRIDGE_TF_OWN_SYMBOLS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MLBRIDGE_TF_OWN_SYMBOLS 0
#endif
#endif
#ifndef MLBRIDGE_TF_OWN_SYMBOLS
#define MLBRIDGE_TF_OWN_SYMBOLS RTLD_DEEPBIND
#endif
static constexpr int HowToOpen =
    RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | MLBRIDGE_TF_OWN_SYMBOLS;

/// Returns the libraries to try, in this order. If the user names a library, it
/// is the only candidate.
static std::vector<std::string> candidates(const TFOptions &Options) {
  if (!Options.Runtime.empty())
    return {Options.Runtime};
  if (const char *Named = std::getenv("MLBRIDGE_TENSORFLOW"); Named && *Named)
    return {Named};
  return {"libtensorflow.so.2", "libtensorflow_cc.so.2"};
}

static Error unsupported(const std::string &Why) {
  return {ErrorCode::Unsupported, "TensorFlow: " + Why};
}

Expected<std::shared_ptr<const Runtime>>
Runtime::open(const TFOptions &Options) {
  std::string Reasons;
  for (const std::string &Path : candidates(Options)) {
    Expected<void *> Library = openLibrary(Path, HowToOpen);
    if (Library.code() == ErrorCode::System)
      return Error(ErrorCode::System,
                   "TensorFlow: " + std::string(Library.message()));
    if (!Library) {
      Reasons += (Reasons.empty() ? "" : "; ") + std::string(Library.message());
      continue;
    }
    auto Opened = std::make_shared<Runtime>();
#define MLBRIDGE_TF_LOOK_UP(NAME)                                              \
  Opened->NAME =                                                               \
      reinterpret_cast<decltype(&TF_##NAME)>(::dlsym(*Library, "TF_" #NAME));  \
  if (!Opened->NAME)                                                           \
    return unsupported(printable(Path) +                                       \
                       " lacks the function TF_" #NAME                         \
                       "; expected TensorFlow 2, the library with its "        \
                       "C API");
    MLBRIDGE_TF_FUNCTIONS(MLBRIDGE_TF_LOOK_UP)
#undef MLBRIDGE_TF_LOOK_UP
    if (std::string_view Version = Opened->Version();
        !Version.starts_with("2."))
      return unsupported("expected version 2, found " + printable(Version) +
                         " in " + printable(Path));
    return std::shared_ptr<const Runtime>(std::move(Opened));
  }
  return unsupported(
      "its library cannot be loaded (" + Reasons +
      "); install it, for example with "
      "`python3 -m pip install tensorflow-cpu`, and name the file "
      "libtensorflow_cc.so.2 of that package with ?runtime=PATH or with the "
      "environment variable MLBRIDGE_TENSORFLOW=PATH");
}

static ErrorCode codeOf(TF_Code Code, ErrorCode Default) {
  switch (Code) {
  case TF_RESOURCE_EXHAUSTED:
    return ErrorCode::System;
  case TF_UNIMPLEMENTED:
    return ErrorCode::Unsupported;
  default:
    return Default;
  }
}

Error Runtime::check(const TF_Status *Status, const std::string &What,
                     ErrorCode Code) const {
  TF_Code Found = GetCode(Status);
  if (Found == TF_OK)
    return Error::success();
  // Make the message printable. It may have several lines and may quote
  // arbitrary text of a model.
  return {codeOf(Found, Code),
          What + ": " + printable(Message(Status), 5 * MostPrinted)};
}

void Release::operator()(TF_Session *P) const {
  Handle<TF_Status> Ignored(API->NewStatus(), *this);
  API->CloseSession(P, Ignored.get());
  API->DeleteSession(P, Ignored.get());
}
