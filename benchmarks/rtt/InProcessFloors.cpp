//===- InProcessFloors.cpp - Direct calls of runtimes ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcessFloors.h"

#include "ClientSupport.h"

#include "MLCompilerBridge-C/AOTModel.h"
#include "MLCompilerBridge/Runners/AOTModel.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "ONNX/ONNXModel.h"
#endif
#ifdef MLBRIDGE_HAS_TF
#include "TF/TFModel.h"

#include <cstring>
#endif

#include <dlfcn.h>

using namespace MLBridge;
using namespace MLBridge::bench;

/// Returns the number of elements of the only output.
static std::size_t countOutputs(const Model &M) {
  if (M.inputs().size() != 1 || M.outputs().size() != 1 ||
      M.outputs().front().Type != ElementType::Float)
    fail(M.name() + ": expected one input, and one output of float32s");
  std::optional<std::size_t> Count = M.outputs().front().Dims.numElements();
  if (!Count)
    fail(M.name() + ": expected an output of fixed extents");
  return *Count;
}

//===----------------------------------------------------------------------===//
// ONNX Runtime
//===----------------------------------------------------------------------===//

#ifdef MLBRIDGE_HAS_ONNX
namespace {
/// Calls OrtApi::Run with tensors in the caller's memory.
struct ONNXFloor {
  std::shared_ptr<const onnx::ONNXModel> M;
  onnx::Handle<OrtRunOptions> Options;
  std::string InputName, OutputName;
  onnx::Handle<OrtValue> Input, Output;
  std::vector<float> Reply;

  Span<const float> ask() {
    const OrtApi &API = M->runtime().api();
    const char *InputNames[] = {InputName.c_str()};
    const char *OutputNames[] = {OutputName.c_str()};
    const OrtValue *Inputs[] = {Input.get()};
    OrtValue *Outputs[] = {Output.get()};
    if (OrtStatus *Status = API.Run(M->session(), Options.get(), InputNames,
                                    Inputs, 1, OutputNames, 1, Outputs))
      fail(API.GetErrorMessage(Status));
    return Reply;
  }
};
} // namespace

/// Creates a tensor that uses the memory \p Data and has the extents of \p
/// Spec.
static onnx::Handle<OrtValue> bindTensor(const onnx::Runtime &Library,
                                         const TensorSpec &Spec,
                                         Span<float> Data) {
  return orFail(
      Library.make<OrtValue>("floor", ErrorCode::Model, [&](OrtValue **Made) {
        return Library.api().CreateTensorWithDataAsOrtValue(
            Library.memory(), Data.data(), Data.size() * sizeof(float),
            Spec.Dims.begin(), Spec.Dims.rank(), onnx::toONNX(Spec.Type), Made);
      }));
}

static InProcessSubject openONNX(const std::string &File,
                                 Span<const float> Features) {
  auto M = std::static_pointer_cast<const onnx::ONNXModel>(
      orFail(loadONNXModel(File)));
  const onnx::Runtime &Library = M->runtime();
  auto Floor = std::make_shared<ONNXFloor>();
  Floor->Reply.resize(countOutputs(*M));
  Floor->InputName = M->inputs().front().Name;
  Floor->OutputName = M->outputs().front().Name;
  // Create the options once, because without options each evaluation would
  // create them.
  Floor->Options = orFail(Library.make<OrtRunOptions>(
      "floor", ErrorCode::Model, [&](OrtRunOptions **Made) {
        return Library.api().CreateRunOptions(Made);
      }));
  // The cast is safe, because the runtime does not write to inputs.
  Floor->Input =
      bindTensor(Library, M->inputs().front(),
                 {const_cast<float *>(Features.data()), Features.size()});
  Floor->Output = bindTensor(Library, M->outputs().front(), Floor->Reply);
  Floor->M = M;
  return {M, [Floor] { return Floor->ask(); }};
}
#endif

//===----------------------------------------------------------------------===//
// Generated code
//===----------------------------------------------------------------------===//

namespace {
/// Calls the entry point of the fastest variant that this CPU can run.
struct AOTFloor {
  struct Close {
    void operator()(void *Library) const { ::dlclose(Library); }
  };
  struct Free {
    void operator()(void *Memory) const { std::free(Memory); }
  };

  std::unique_ptr<void, Close> Library;
  decltype(MLBridgeAOTVariant::run) Run = nullptr;
  const void *Inputs[1] = {};
  void *Outputs[1] = {};
  std::unique_ptr<void, Free> Workspace;
  std::vector<float> Reply;

  Span<const float> ask() {
    if (Run(nullptr, Inputs, Outputs, Workspace.get()) != MLBRIDGE_AOT_OK)
      fail("the generated model failed");
    return Reply;
  }
};
} // namespace

static InProcessSubject openAOT(const std::string &File,
                                Span<const float> Features) {
  std::shared_ptr<const Model> M = orFail(loadAOTModel(File));
  auto Floor = std::make_shared<AOTFloor>();
  Floor->Library.reset(::dlopen(File.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!Floor->Library)
    fail(::dlerror());
  const auto *Symbol = static_cast<const MLBridgeAOTModel *const *>(
      ::dlsym(Floor->Library.get(), MLBRIDGE_AOT_SYMBOL));
  if (!Symbol)
    fail(::dlerror());
  const MLBridgeAOTModel &Descriptor = **Symbol;
  Floor->Run = Descriptor.variants[mlbridge_aot_choose(&Descriptor)].run;
  Floor->Reply.resize(countOutputs(*M));
  Floor->Inputs[0] = Features.data();
  Floor->Outputs[0] = Floor->Reply.data();
  std::int64_t Extents[Shape::MaxRank];
  std::uint64_t Bytes = 0;
  if (Descriptor.num_free_extents != 0 ||
      Descriptor.measure(nullptr, Extents, &Bytes) != MLBRIDGE_AOT_OK)
    fail(File + ": expected fixed extents");
  constexpr std::uint64_t Step = MLBRIDGE_AOT_ALIGNMENT;
  Floor->Workspace.reset(std::aligned_alloc(Step, (Bytes / Step + 1) * Step));
  if (!Floor->Workspace)
    fail("there is no memory");
  return {M, [Floor] { return Floor->ask(); }};
}

//===----------------------------------------------------------------------===//
// TensorFlow
//===----------------------------------------------------------------------===//

#ifdef MLBRIDGE_HAS_TF
namespace {
/// Calls TF_SessionRun, which creates a new output tensor each time.
struct TFFloor {
  std::shared_ptr<const tf::TFModel> M;
  std::shared_ptr<tf::OpenModel> Opened;
  tf::Handle<TF_Status> Status;
  tf::Handle<TF_Tensor> Input, Output;
  std::size_t NumOutputs = 0;

  Span<const float> ask() {
    const tf::Runtime &API = M->runtime();
    Output.reset();
    TF_Tensor *Inputs[] = {Input.get()};
    TF_Tensor *Outputs[] = {nullptr};
    API.SessionRun(Opened->Session.get(), nullptr, Opened->InputPlaces.data(),
                   Inputs, 1, Opened->OutputPlaces.data(), Outputs, 1, nullptr,
                   0, nullptr, Status.get());
    Output = tf::Handle<TF_Tensor>(Outputs[0], tf::Release{&API});
    if (Error E = API.check(Status.get(), M->name(), ErrorCode::Model))
      fail(E.str());
    return {static_cast<const float *>(API.TensorData(Output.get())),
            NumOutputs};
  }
};
} // namespace

static InProcessSubject openTF(const std::string &Folder,
                               Span<const float> Features) {
  auto M =
      std::static_pointer_cast<const tf::TFModel>(orFail(loadTFModel(Folder)));
  const tf::Runtime &API = M->runtime();
  auto Floor = std::make_shared<TFFloor>();
  Floor->M = M;
  Floor->Opened = orFail(M->opened());
  Floor->NumOutputs = countOutputs(*M);
  Floor->Status = tf::Handle<TF_Status>(API.NewStatus(), tf::Release{&API});
  const Shape &Dims = M->inputs().front().Dims;
  const std::size_t NumBytes = Features.size() * sizeof(float);
  Floor->Input = tf::Handle<TF_Tensor>(
      API.AllocateTensor(TF_FLOAT, Dims.begin(), static_cast<int>(Dims.rank()),
                         NumBytes),
      tf::Release{&API});
  if (!Floor->Input || API.TensorByteSize(Floor->Input.get()) != NumBytes)
    fail("there is no memory");
  std::memcpy(API.TensorData(Floor->Input.get()), Features.data(), NumBytes);
  return {M, [Floor] { return Floor->ask(); }};
}
#endif

//===----------------------------------------------------------------------===//
// By scheme
//===----------------------------------------------------------------------===//

InProcessSubject bench::openInProcess(const std::string &Scheme,
                                      const std::string &File,
                                      Span<const float> Features) {
#ifdef MLBRIDGE_HAS_ONNX
  if (Scheme == "onnx")
    return openONNX(File, Features);
#endif
  if (Scheme == "aot")
    return openAOT(File, Features);
#ifdef MLBRIDGE_HAS_TF
  if (Scheme == "tf")
    return openTF(File, Features);
#endif
  fail("this build has no '" + Scheme + ":'");
}
