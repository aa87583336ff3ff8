//===- ONNXSession.cpp - Creates sessions of ONNX Runtime -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXSession.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "Support/Posix.h"
#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;
using namespace MLBridge::onnx;

//===----------------------------------------------------------------------===//
// Execution providers
//===----------------------------------------------------------------------===//

static std::string lowerCase(std::string Text) {
  // Use no function of the C library, because these functions depend on the
  // locale.
  for (char &C : Text)
    if (C >= 'A' && C <= 'Z')
      C = static_cast<char>(C - 'A' + 'a');
  return Text;
}

/// Returns the provider's name without its suffix, such as "CUDA" for
/// "CUDAExecutionProvider".
static std::string withoutSuffix(std::string Name) {
  constexpr std::string_view Suffix = "ExecutionProvider";
  if (Name.ends_with(Suffix))
    Name.resize(Name.size() - Suffix.size());
  return Name;
}

/// Returns the names of the providers in this build of ONNX Runtime, without
/// their suffix.
static Expected<std::vector<std::string>>
availableProviders(const std::string &Name, const Runtime &Library) {
  char **Names = nullptr;
  int Count = 0;
  if (Error E =
          Library.check(Library.api().GetAvailableProviders(&Names, &Count),
                        Name, ErrorCode::Unsupported))
    return E;
  std::vector<std::string> Found;
  Found.reserve(Count);
  for (int I = 0; I < Count; ++I)
    Found.push_back(withoutSuffix(Names[I]));
  if (Error E =
          Library.check(Library.api().ReleaseAvailableProviders(Names, Count),
                        Name, ErrorCode::Unsupported))
    return E;
  return Found;
}

/// Adds a provider for which ONNX Runtime has a separate type of options.
template <typename T>
static OrtStatus *append(OrtSessionOptions *Options, OrtStatus *(*Create)(T **),
                         OrtStatus *(*Append)(OrtSessionOptions *, const T *),
                         void (*Release)(T *)) {
  T *Made = nullptr;
  if (OrtStatus *Status = Create(&Made))
    return Status;
  OrtStatus *Status = Append(Options, Made);
  Release(Made);
  return Status;
}

/// Adds the provider \p Name, which is available, with its default options.
static OrtStatus *appendProvider(const std::string &Name,
                                 OrtSessionOptions *Options,
                                 const OrtApi &API) {
  if (Name == "CUDA")
    return append(Options, API.CreateCUDAProviderOptions,
                  API.SessionOptionsAppendExecutionProvider_CUDA_V2,
                  API.ReleaseCUDAProviderOptions);
  if (Name == "Tensorrt")
    return append(Options, API.CreateTensorRTProviderOptions,
                  API.SessionOptionsAppendExecutionProvider_TensorRT_V2,
                  API.ReleaseTensorRTProviderOptions);
  // SessionOptionsAppendExecutionProvider() expects two names in capitals.
  const char *Spelt = Name == "Azure"     ? "AZURE"
                      : Name == "Xnnpack" ? "XNNPACK"
                                          : Name.c_str();
  return API.SessionOptionsAppendExecutionProvider(Options, Spelt, nullptr,
                                                   nullptr, 0);
}

static Error setProviders(const std::vector<std::string> &Wanted,
                          OrtSessionOptions *Options, const std::string &Name,
                          const Runtime &Library) {
  if (Wanted.empty())
    return Error::success();
  Expected<std::vector<std::string>> Available =
      availableProviders(Name, Library);
  if (!Available)
    return Available.takeError();
  for (const std::string &Provider : Wanted) {
    auto Found = std::ranges::find(
        *Available, lowerCase(withoutSuffix(Provider)), lowerCase);
    const std::string What =
        Name + ": execution provider '" + printable(Provider) + "'";
    if (Found == Available->end()) {
      std::string Known;
      for (const std::string &One : *Available)
        Known += (Known.empty() ? "" : ", ") + lowerCase(One);
      return {ErrorCode::Unsupported,
              What + ": this build of ONNX Runtime has only " +
                  printable(Known) +
                  "; name a build with this provider with ?runtime=PATH"};
    }
    // ONNX Runtime adds the CPU itself, after all other providers.
    if (*Found == "CPU")
      return Error::success();
    if (Error E = Library.check(appendProvider(*Found, Options, Library.api()),
                                What, ErrorCode::Unsupported))
      return E;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Custom operators
//===----------------------------------------------------------------------===//

static Error addOperators(const std::string &Path, OrtSessionOptions *Options,
                          const std::string &Name, const Runtime &Library) {
  const std::string What = Name + ": operators '" + printable(Path) + "'";
  // ONNX Runtime would end the process if the library was truncated.
  if (Error E = checkLibrary(Path))
    return {E.code(), What + ": " + E.message()};
  // A path without a slash would be a name for the dynamic linker.
  const std::string Absolute = posix::absolutePath(Path);
  return Library.check(
      Library.api().RegisterCustomOpsLibrary_V2(Options, Absolute.c_str()),
      What, ErrorCode::Unsupported);
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

Expected<Handle<OrtSessionOptions>>
onnx::makeSessionOptions(const ONNXOptions &Chosen, const std::string &Name,
                         const Runtime &Library) {
  const OrtApi &API = Library.api();
  auto Options = Library.make<OrtSessionOptions>(
      Name, ErrorCode::Model,
      [&](OrtSessionOptions **Made) { return API.CreateSessionOptions(Made); });
  if (!Options)
    return Options;
  // Use no additional threads, because the threads would wait for each other by
  // spinning.
  for (OrtStatus *Status : {API.SetIntraOpNumThreads(Options->get(), 1),
                            API.SetInterOpNumThreads(Options->get(), 1)})
    if (Error E = Library.check(Status, Name, ErrorCode::Model))
      return E;
  if (Error E = setProviders(Chosen.Providers, Options->get(), Name, Library))
    return E;
  for (const std::string &Path : Chosen.OperatorLibraries)
    if (Error E = addOperators(Path, Options->get(), Name, Library))
      return E;
  return Options;
}

Expected<Handle<OrtSession>> onnx::makeSession(const std::string &File,
                                               const std::string &Bytes,
                                               const OrtSessionOptions &Options,
                                               const std::string &Name,
                                               const Runtime &Library) {
  const OrtApi &API = Library.api();
  return Library.make<OrtSession>(
      Name, ErrorCode::Model, [&](OrtSession **Made) {
        return Bytes.empty()
                   ? API.CreateSession(Library.environment(), File.c_str(),
                                       &Options, Made)
                   : API.CreateSessionFromArray(Library.environment(),
                                                Bytes.data(), Bytes.size(),
                                                &Options, Made);
      });
}
