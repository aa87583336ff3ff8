//===- ONNXRuntime.cpp - ONNX Runtime, found at run time ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXRuntime.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/LibraryFolders.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <dlfcn.h>

using namespace MLBridge;
using namespace MLBridge::onnx;

static constexpr const char *LibraryName = "libonnxruntime.so.1";

/// The first that has all that is called here.
static constexpr std::uint32_t LeastAPI = 15;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// Where to look, in this order. What a user has named is the only place.
static std::vector<std::string> candidates(const ONNXOptions &Options) {
  if (!Options.Runtime.empty())
    return {Options.Runtime};
  if (const char *Named = std::getenv("MLBRIDGE_ONNXRUNTIME"); Named && *Named)
    return {Named};
  std::vector<std::string> Paths;
  for (const std::string &Folder : libraryFolders())
    Paths.push_back(Folder + "/" + LibraryName);
  Paths.emplace_back(LibraryName);
  return Paths;
}

static Error unsupported(const std::string &Why) {
  return {ErrorCode::Unsupported, "ONNX Runtime: " + Why};
}

/// Since 1.29, the library sends telemetry to Microsoft from a thread of its
/// own, unless the environment says otherwise before it is loaded. A compiler
/// is not to send anything anywhere. Nor would a child of it end: at its
/// exit(3), the library waits for that thread, which only the parent has.
static void refuseTelemetry() {
  // Once, since others may read the environment meanwhile.
  [[maybe_unused]] static const int Refused =
      ::setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0);
}

/// The library's table of functions. It stays loaded for good: what it has
/// started or registered would else lead into nothing.
static Expected<const OrtApiBase *> load(const ONNXOptions &Options) {
  refuseTelemetry();
  std::string Reasons;
  for (const std::string &Path : candidates(Options)) {
    Expected<void *> Library =
        openLibrary(Path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (Library.code() == ErrorCode::System)
      return Error(ErrorCode::System,
                   "ONNX Runtime: " + std::string(Library.message()));
    using GetBase = const OrtApiBase *(*)() noexcept;
    GetBase Get = nullptr;
    if (Library)
      Get = reinterpret_cast<GetBase>(::dlsym(*Library, "OrtGetApiBase"));
    if (Get)
      return Get();
    Reasons += (Reasons.empty() ? "" : "; ") +
               (Library ? printable(Path) + ": it has no OrtGetApiBase"
                        : std::string(Library.message()));
  }
  return unsupported(
      "its library cannot be loaded (" + Reasons +
      "); install it by `python3 -m pip install onnxruntime` (mlbridge's "
      "extra onnx, `pip install '.[onnx]'`), and "
      "name the file libonnxruntime.so.1... by ?runtime=PATH or by the "
      "environment's MLBRIDGE_ONNXRUNTIME=PATH");
}

/// The interface of the library, in the newest version that both sides have.
/// Asked for one that it lacks, the library would print that.
static const OrtApi *interfaceOf(const OrtApiBase &Base) {
  std::string_view Text = Base.GetVersionString();
  Text.remove_prefix(std::min(Text.find('.') + 1, Text.size()));
  std::uint32_t Has = 0; // 1.N has the interfaces up to N.
  std::from_chars(Text.data(), Text.data() + Text.size(), Has);
  if (Has < LeastAPI)
    return nullptr;
  return Base.GetApi(std::min<std::uint32_t>(Has, ORT_API_VERSION));
}

Expected<std::shared_ptr<const Runtime>>
Runtime::open(const ONNXOptions &Options) {
  Expected<const OrtApiBase *> Base = load(Options);
  if (!Base)
    return Base.takeError();
  const OrtApi *API = interfaceOf(**Base);
  if (!API)
    return unsupported("expected 1." + std::to_string(LeastAPI) +
                       " or later, found " + (*Base)->GetVersionString());
  std::shared_ptr<Runtime> Opened(new Runtime(API));
  if (Error E = Opened->initialize())
    return E;
  return std::shared_ptr<const Runtime>(std::move(Opened));
}

Error Runtime::initialize() {
  // The library has one environment a process, and counts who uses it. What
  // fails comes back as a status; it is not for the compiler's stderr as well.
  auto Env =
      make<OrtEnv>("ONNX Runtime", ErrorCode::Unsupported, [&](OrtEnv **Made) {
        return API->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "MLBridge", Made);
      });
  if (!Env)
    return Env.takeError();
  auto Info = make<OrtMemoryInfo>(
      "ONNX Runtime", ErrorCode::Unsupported, [&](OrtMemoryInfo **Made) {
        return API->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault,
                                        Made);
      });
  if (!Info)
    return Info.takeError();
  Environment = std::move(*Env);
  Memory = std::move(*Info);
  return check(API->GetAllocatorWithDefaultOptions(&Allocator), "ONNX Runtime",
               ErrorCode::Unsupported);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// ONNX Runtime has no code for it.
static bool saysOutOfMemory(std::string_view Message) {
  return Message.find("bad_alloc") != std::string_view::npos ||
         Message.find("Failed to allocate memory") != std::string_view::npos;
}

static ErrorCode codeOf(OrtErrorCode Code, ErrorCode Default) {
  switch (Code) {
  case ORT_NO_SUCHFILE:
    return ErrorCode::System;
  case ORT_INVALID_PROTOBUF:
  case ORT_INVALID_GRAPH:
    return ErrorCode::Malformed;
  case ORT_NOT_IMPLEMENTED:
    return ErrorCode::Unsupported;
  default:
    return Default;
  }
}

Error Runtime::describe(OrtStatus *Status, std::string_view What,
                        ErrorCode Code) const {
  Handle<OrtStatus> Owned(Status, Release{API});
  std::string_view Message = API->GetErrorMessage(Status);
  Code = saysOutOfMemory(Message) ? ErrorCode::System
                                  : codeOf(API->GetErrorCode(Status), Code);
  // It may end with a newline, and quote all of a model's own text.
  while (!Message.empty() && Message.back() == '\n')
    Message.remove_suffix(1);
  return {Code, std::string(What) + ": " + printable(Message, 5 * MostPrinted)};
}
