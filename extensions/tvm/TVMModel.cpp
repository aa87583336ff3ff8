//===- TVMModel.cpp - Models compiled by Apache TVM -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements Model and ModelCursor with Apache TVM. A library is loaded once.
/// Each cursor has a separate virtual machine, which holds the memory of an
/// evaluation. TVM reports errors as exceptions. This file catches them.
///
//===----------------------------------------------------------------------===//

#include "TVMModel.h"

#include "MLCompilerBridge/Extend/LibraryCheck.h"
#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "MLCompilerBridge/Extend/ModelSignature.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

using namespace MLBridge;

namespace ffi = tvm::ffi;

/// The name of the symbol that contains the signature (ModelSignature.h).
static constexpr char SignatureSymbol[] = "mlbridge_signature";
static constexpr DLDevice CPU = {kDLCPU, 0};

/// Calls \p Do and converts TVM's exceptions to errors of \p Code.
template <typename F>
static auto guarded(ErrorCode Code, const std::string &Name, F Do)
    -> decltype(Do()) {
  try {
    return Do();
  } catch (const std::exception &E) {
    return Error(Code, Name + ": TVM: " + E.what());
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static DLDataType typeOf(ElementType Type) {
  const auto Bits = static_cast<std::uint8_t>(8 * elementSize(Type));
  switch (Type) {
  case ElementType::Float:
  case ElementType::Double:
    return {kDLFloat, Bits, 1};
  case ElementType::Bool:
    return {kDLBool, Bits, 1};
  case ElementType::Int8:
  case ElementType::Int16:
  case ElementType::Int32:
  case ElementType::Int64:
    return {kDLInt, Bits, 1};
  default:
    return {kDLUInt, Bits, 1};
  }
}

namespace {

/// Heap memory with the alignment that TVM's code requires.
struct Aligned {
  void AllocData(DLTensor *Tensor) {
    constexpr std::size_t Alignment = 64;
    const std::size_t Size = ffi::GetDataSize(*Tensor);
    Tensor->data = std::aligned_alloc(
        Alignment, std::max<std::size_t>((Size + 63) / 64, 1) * Alignment);
    if (!Tensor->data)
      throw std::bad_alloc();
  }
  void FreeData(DLTensor *Tensor) { std::free(Tensor->data); }
};

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

class TVMModel final : public Model {
public:
  TVMModel(std::string Name, ModelSignature Signature, ffi::Module Library)
      : Model(std::move(Name), std::move(Signature.Inputs),
              std::move(Signature.Outputs), std::move(Signature.About)),
        Library(std::move(Library)) {}

  Expected<std::unique_ptr<ModelCursor>> open() const override;

private:
  ffi::Module Library;
  /// Locked while a cursor is created, because TVM does not document modules as
  /// thread-safe.
  mutable std::mutex Opening;
};

class TVMCursor final : public ModelCursor {
public:
  TVMCursor(std::shared_ptr<const Model> M, ffi::Module Machine,
            ffi::Function Main)
      : TheModel(std::move(M)), Machine(std::move(Machine)),
        Main(std::move(Main)), Bound(TheModel->inputs().size()),
        Arguments(TheModel->inputs().size()) {
    for (const TensorSpec &Output : TheModel->outputs())
      Views.push_back({Output.Name, Output.Type, {}, nullptr, 0, {}});
  }

  Expected<Span<const TensorView>> run(Span<const TensorView> Inputs) override {
    return guarded(ErrorCode::Model, TheModel->name(),
                   [&] { return evaluate(Inputs); });
  }

private:
  Expected<Span<const TensorView>> evaluate(Span<const TensorView> Inputs);
  Error show(std::size_t I, const ffi::Tensor &Output);

  std::shared_ptr<const Model> TheModel;
  ffi::Module Machine;
  ffi::Function Main;
  /// Copies of the inputs, which the virtual machine reads.
  std::vector<ffi::Tensor> Bound;
  std::vector<ffi::AnyView> Arguments;
  /// The owner of the outputs until the next evaluation.
  ffi::Any Result;
  std::vector<TensorView> Views;
};

} // namespace

Expected<std::unique_ptr<ModelCursor>> TVMModel::open() const {
  std::scoped_lock Lock(Opening);
  return guarded(
      ErrorCode::Model, name(),
      [&]() -> Expected<std::unique_ptr<ModelCursor>> {
        constexpr int PooledAllocator = 2;
        auto Load = Library->GetFunction("vm_load_executable");
        if (!Load.has_value())
          return Error(ErrorCode::Malformed,
                       name() + ": expected a program for TVM's relax virtual "
                                "machine, found none");
        auto Machine = (*Load)().cast<ffi::Module>();
        (*Machine->GetFunction("vm_initialization"))(
            static_cast<int>(CPU.device_type), CPU.device_id, PooledAllocator);
        auto Main = Machine->GetFunction("main");
        if (!Main.has_value())
          return Error(ErrorCode::Malformed,
                       name() + ": expected a function 'main', found none");
        return std::make_unique<TVMCursor>(shared_from_this(), Machine, *Main);
      });
}

Expected<Span<const TensorView>>
TVMCursor::evaluate(Span<const TensorView> Inputs) {
  for (std::size_t I = 0; I < Inputs.size(); ++I) {
    const TensorView &Input = Inputs[I];
    const ffi::ShapeView Dims(Input.Dims.begin(), Input.Dims.rank());
    if (!Bound[I].defined() ||
        !std::equal(Dims.begin(), Dims.end(), Bound[I].shape().begin())) {
      Bound[I] =
          ffi::Tensor::FromNDAlloc(Aligned(), Dims, typeOf(Input.Type), CPU);
      Arguments[I] = Bound[I];
    }
    std::memcpy(Bound[I].data_ptr(), Input.Data, Input.NumBytes);
  }
  Main.CallPacked(
      ffi::PackedArgs(Arguments.data(), static_cast<int>(Arguments.size())),
      &Result);
  if (auto One = Result.try_cast<ffi::Tensor>(); One && Views.size() == 1) {
    if (Error E = show(0, *One))
      return E;
    return Span<const TensorView>(Views);
  }
  auto Several = Result.try_cast<ffi::Array<ffi::Tensor>>();
  if (!Several || Several->size() != Views.size())
    return Error(ErrorCode::SchemaMismatch, TheModel->name() + ": expected " +
                                                std::to_string(Views.size()) +
                                                " tensors, found " +
                                                Result.GetTypeKey());
  for (std::size_t I = 0; I < Views.size(); ++I)
    if (Error E = show(I, (*Several)[I]))
      return E;
  return Span<const TensorView>(Views);
}

/// Makes output \p I a view of \p Output if it matches the signature.
Error TVMCursor::show(std::size_t I, const ffi::Tensor &Output) {
  const TensorSpec &Spec = TheModel->outputs()[I];
  TensorView &View = Views[I];
  const ffi::ShapeView Dims = Output.shape();
  View.Dims = Shape(Span<const std::int64_t>(Dims.data(), Dims.size()));
  View.Data = Output.data_ptr();
  View.NumBytes = ffi::GetDataSize(*Output.GetDLTensorPtr());
  bool Fits = Dims.size() == Spec.Dims.rank() &&
              Output.dtype() == typeOf(Spec.Type) && Output.IsContiguous() &&
              Output.device().device_type == kDLCPU;
  for (std::size_t D = 0; Fits && D < Dims.size(); ++D)
    Fits = Spec.Dims[D] < 0 || Spec.Dims[D] == Dims[D];
  if (Fits)
    return Error::success();
  return {ErrorCode::SchemaMismatch,
          TheModel->name() + ": output '" + Spec.Name + "': expected " +
              Spec.typeStr() + ", found a tensor of shape " + View.Dims.str() +
              " and of type " +
              std::string(ffi::DLDataTypeToString(Output.dtype()))};
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Loads TVM's runtime. The runtime registers its virtual machine with TVM, so
/// it is never unloaded.
static Error loadRuntime(const ModelSpec &Spec) {
  const std::string Path(Spec.option("runtime", "libtvm_runtime.so"));
  Expected<void *> Library = openLibrary(Path, RTLD_NOW | RTLD_GLOBAL);
  if (Library)
    return Error::success();
  Error E = Library.takeError();
  if (E.code() == ErrorCode::System)
    return {E.code(), "TVM's runtime: " + E.message()};
  return {ErrorCode::Unsupported,
          "cannot load TVM's runtime: " + E.message() +
              "; install the Python package apache-tvm and name its "
              "libtvm_runtime.so by ?runtime=PATH, or add its folder to "
              "LD_LIBRARY_PATH"};
}

/// Reads the signature from the library, which is loaded as \p LinkName.
static Expected<ModelSignature> signatureOf(const std::string &Name,
                                            const std::string &LinkName) {
  std::unique_ptr<void, int (*)(void *)> Library(
      ::dlopen(LinkName.c_str(), RTLD_NOW | RTLD_NOLOAD), ::dlclose);
  const void *Text =
      Library ? ::dlsym(Library.get(), SignatureSymbol) : nullptr;
  if (!Text)
    return Error(ErrorCode::Malformed,
                 Name + ": expected the symbol " + SignatureSymbol +
                     ", found none; create the library with "
                     "mlbridge.runtimes.tvm");
  return ModelSignature::parseNumeric(static_cast<const char *>(Text), Name,
                                      "TVM");
}

static Expected<std::shared_ptr<const Model>> load(const std::string &File,
                                                   const ModelSpec &Spec) {
  if (Error E = loadRuntime(Spec))
    return E;
  const std::string Name = Spec.Scheme + ":" + File;
  Expected<LibraryFile> Opened = LibraryFile::open(File);
  if (!Opened) {
    Error E = Opened.takeError();
    return Error(E.code(), Name + ": " + E.message());
  }
  // Load the file under a unique name. With the file's own name, the linker
  // would return an earlier version of the file that is still loaded.
  const std::string &LinkName = Opened->name();
  return guarded(
      ErrorCode::Malformed, Name,
      [&]() -> Expected<std::shared_ptr<const Model>> {
        // Do not use Module::LoadFromFile(), because it needs a file extension
        // in the name.
        auto Library = ffi::Function::GetGlobalRequired(
                           "ffi.Module.load_from_file.so")(LinkName, "so")
                           .cast<ffi::Module>();
        Expected<ModelSignature> Signature = signatureOf(Name, LinkName);
        if (!Signature)
          return Signature.takeError();
        return std::make_shared<const TVMModel>(Name, std::move(*Signature),
                                                std::move(Library));
      });
}

void MLBridge::addTVM(RunnerFactory &Factory) {
  addModelFormat(Factory,
                 {"tvm",
                  "tvm:LIBRARY.so?runtime=libtvm_runtime.so: a model compiled "
                  "by Apache TVM",
                  load,
                  {"runtime"}});
}
