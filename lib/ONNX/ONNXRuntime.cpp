//===- ONNXRuntime.cpp - Loads ONNX Runtime -------------------------------===//
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
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <new>

using namespace MLBridge;
using namespace MLBridge::onnx;

static constexpr const char *LibraryName = "libonnxruntime.so.1";

/// The first version of ONNX Runtime's C API that has all functions that
/// ML-Compiler-Bridge calls.
static constexpr std::uint32_t LeastAPI = 15;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// Returns the libraries to try, in this order. If the user names a library, it
/// is the only candidate.
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

/// Prevents telemetry, because compilers must not send data. From version 1.29
/// on, ONNX Runtime starts a thread that sends telemetry to Microsoft. An
/// environment variable prevents this if it is set before the library is
/// loaded. The thread would also make a forked child hang in exit(3), where the
/// library would wait for a thread that exists only in the parent.
static void refuseTelemetry() {
  // Set the variable only once, because other threads may read the environment
  // later.
  [[maybe_unused]] static const int Refused =
      ::setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0);
}

/// Loads the library and returns its function table. The library is never
/// unloaded, because it may have started threads or registered callbacks.
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
               (Library ? printable(Path) + ": it lacks OrtGetApiBase"
                        : std::string(Library.message()));
  }
  return unsupported(
      "its library cannot be loaded (" + Reasons +
      "); install it with `python3 -m pip install onnxruntime` (mlbridge's "
      "extra onnx, `pip install '.[onnx]'`), and "
      "name the file libonnxruntime.so.1... (`mlbridge doctor` prints its "
      "path) with ?runtime=PATH or with the environment variable "
      "MLBRIDGE_ONNXRUNTIME=PATH");
}

/// Returns the newest interface that both the library and these headers
/// support. A newer interface is not requested, because the library would print
/// a message.
static const OrtApi *interfaceOf(const OrtApiBase &Base) {
  std::string_view Text = Base.GetVersionString();
  Text.remove_prefix(std::min(Text.find('.') + 1, Text.size()));
  std::uint32_t Has = 0; // Version 1.N has the interfaces up to N.
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
  // Create the environment, which the library shares within the process. Log
  // only fatal errors, because failures are returned as a status and must not
  // appear on the compiler's stderr, too.
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
// The handler of failed allocations
//===----------------------------------------------------------------------===//

/// The number of this thread's WithoutNewHandler objects. It needs no lock,
/// which could stay locked forever in a forked child.
static thread_local unsigned NumGuards = 0;

/// The handler that throwOrCall() has replaced. A process has only one handler,
/// so this must be global, too.
static std::atomic<std::new_handler> Replaced = nullptr;

static void throwOrCall() {
  const std::new_handler Handler = Replaced;
  if (NumGuards || !Handler)
    throw std::bad_alloc();
  Handler();
}

WithoutNewHandler::WithoutNewHandler() {
  // The program may have set its handler since the last call. Another thread
  // may be here, too, so the replaced handler may be throwOrCall() itself.
  if (std::get_new_handler() != throwOrCall)
    if (std::new_handler Old = std::set_new_handler(throwOrCall);
        Old != throwOrCall)
      Replaced = Old;
  ++NumGuards;
}

WithoutNewHandler::~WithoutNewHandler() { --NumGuards; }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Returns true if \p Message reports exhausted memory. ONNX Runtime has no
/// error code for this.
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
  // Remove a newline at the end, and make the text printable. The message may
  // quote arbitrary text of a model.
  while (!Message.empty() && Message.back() == '\n')
    Message.remove_suffix(1);
  return {Code, std::string(What) + ": " + printable(Message, 5 * MostPrinted)};
}
