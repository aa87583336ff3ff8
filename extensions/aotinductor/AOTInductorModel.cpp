//===- AOTInductorModel.cpp - Models compiled by PyTorch ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements Model and ModelCursor with PyTorch. A package is loaded once. It
/// has one set of weights, and one instance of its code for each concurrent
/// thread. A cursor holds only the tensors of an evaluation. libtorch reports
/// errors as exceptions. This file catches them.
///
//===----------------------------------------------------------------------===//

#include "AOTInductorModel.h"

#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "MLCompilerBridge/Extend/ModelSignature.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <thread>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <unistd.h>

using namespace MLBridge;

using Loader = torch::inductor::AOTIModelPackageLoader;

/// The name of the model in a package, and the metadata key of its signature.
static constexpr char ModelInPackage[] = "model";
static constexpr char SignatureKey[] = "mlbridge_signature";

/// Calls \p Do and converts libtorch's exceptions to errors with the code
/// \p Code.
template <typename F>
static auto guarded(ErrorCode Code, const std::string &Name, F Do)
    -> decltype(Do()) {
  try {
    return Do();
  } catch (const c10::Error &E) {
    // Do not use what(), because its text includes a backtrace.
    return Error(Code, Name + ": PyTorch: " + E.what_without_backtrace());
  } catch (const std::exception &E) {
    return Error(Code, Name + ": PyTorch: " + E.what());
  }
}

static at::ScalarType typeOf(ElementType Type) {
  switch (Type) {
  case ElementType::Int8:
    return at::kChar;
  case ElementType::Int16:
    return at::kShort;
  case ElementType::Int32:
    return at::kInt;
  case ElementType::Int64:
    return at::kLong;
  case ElementType::UInt8:
    return at::kByte;
  case ElementType::UInt16:
    return at::kUInt16;
  case ElementType::UInt32:
    return at::kUInt32;
  case ElementType::UInt64:
    return at::kUInt64;
  case ElementType::Float:
    return at::kFloat;
  case ElementType::Double:
    return at::kDouble;
  case ElementType::Bool:
    return at::kBool;
  case ElementType::String:
    break;
  }
  return at::ScalarType::Undefined;
}

namespace {

class AOTInductorModel final : public Model {
public:
  AOTInductorModel(std::string Name, ModelSignature Signature,
                   std::unique_ptr<Loader> Package)
      : Model(std::move(Name), std::move(Signature.Inputs),
              std::move(Signature.Outputs), std::move(Signature.About)),
        Package(std::move(Package)) {}

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  /// Evaluates the model. Any number of threads can call this function. Each
  /// thread waits for a free instance of the code.
  std::vector<at::Tensor> run(const std::vector<at::Tensor> &Inputs) const {
    return Package->run(Inputs);
  }

private:
  std::unique_ptr<Loader> Package;
};

class AOTInductorCursor final : public ModelCursor {
public:
  explicit AOTInductorCursor(std::shared_ptr<const AOTInductorModel> M)
      : TheModel(std::move(M)), Arguments(TheModel->inputs().size()) {
    for (const TensorSpec &Output : TheModel->outputs())
      Views.push_back({Output.Name, Output.Type, {}, nullptr, 0, {}});
  }

  Expected<Span<const TensorView>> run(Span<const TensorView> Inputs) override {
    return guarded(ErrorCode::Model, TheModel->name(),
                   [&] { return evaluate(Inputs); });
  }

private:
  Expected<Span<const TensorView>> evaluate(Span<const TensorView> Inputs);
  Error show(std::size_t I);

  std::shared_ptr<const AOTInductorModel> TheModel;
  std::vector<at::Tensor> Arguments;
  /// /// The outputs, which are valid until the next evaluation.
  std::vector<at::Tensor> Outputs;
  std::vector<TensorView> Views;
};

} // namespace

Expected<std::unique_ptr<ModelCursor>> AOTInductorModel::open() const {
  return std::make_unique<AOTInductorCursor>(
      std::static_pointer_cast<const AOTInductorModel>(shared_from_this()));
}

Expected<Span<const TensorView>>
AOTInductorCursor::evaluate(Span<const TensorView> Inputs) {
  c10::InferenceMode NoGradients;
  for (std::size_t I = 0; I < Inputs.size(); ++I) {
    const TensorView &Input = Inputs[I];
    at::Tensor &Argument = Arguments[I];
    // Copy the input, because the code may require the alignment of PyTorch's
    // tensors.
    const at::IntArrayRef Dims(Input.Dims.begin(), Input.Dims.rank());
    if (!Argument.defined() || Argument.sizes() != Dims)
      Argument = at::empty(Dims, typeOf(Input.Type));
    std::memcpy(Argument.data_ptr(), Input.Data, Input.NumBytes);
  }
  Outputs = TheModel->run(Arguments);
  if (Outputs.size() != Views.size())
    return Error(ErrorCode::SchemaMismatch, TheModel->name() + ": expected " +
                                                std::to_string(Views.size()) +
                                                " tensors, found " +
                                                std::to_string(Outputs.size()));
  for (std::size_t I = 0; I < Views.size(); ++I)
    if (Error E = show(I))
      return E;
  return Span<const TensorView>(Views);
}

/// Makes view \p I describe output \p I, if the output matches the signature.
Error AOTInductorCursor::show(std::size_t I) {
  const TensorSpec &Spec = TheModel->outputs()[I];
  at::Tensor &Output = Outputs[I] = Outputs[I].contiguous();
  TensorView &View = Views[I];
  View.Dims = Shape(
      Span<const std::int64_t>(Output.sizes().data(), Output.sizes().size()));
  View.Data = Output.const_data_ptr();
  View.NumBytes = Output.nbytes();
  bool Fits = Output.sizes().size() == Spec.Dims.rank() &&
              Output.scalar_type() == typeOf(Spec.Type) && Output.is_cpu();
  for (std::size_t D = 0; Fits && D < View.Dims.rank(); ++D)
    Fits = Spec.Dims[D] < 0 || Spec.Dims[D] == View.Dims[D];
  if (Fits)
    return Error::success();
  return {ErrorCode::SchemaMismatch, TheModel->name() + ": output '" +
                                         Spec.Name + "': expected " +
                                         Spec.typeStr() + ", found " +
                                         Output.toString() + View.Dims.str()};
}

static Expected<ModelSignature> signatureOf(const std::string &Name,
                                            Loader &Package) {
  auto Metadata = Package.get_metadata();
  auto Text = Metadata.find(SignatureKey);
  if (Text == Metadata.end())
    return Error(ErrorCode::Malformed,
                 Name + ": expected the metadata " + SignatureKey +
                     ", found none; create the package with "
                     "mlbridge.runtimes.aotinductor");
  return ModelSignature::parseNumeric(Text->second, Name, "PyTorch");
}

/// Returns whether a parent of this process used PyTorch before the fork. The
/// compiled code would wait forever for threads that exist only in the parent.
static bool wasUsedBeforeFork() {
  static const pid_t FirstUser = ::getpid();
  return FirstUser != ::getpid();
}

static Expected<std::shared_ptr<const Model>> load(const std::string &File,
                                                   const ModelSpec &Spec) {
  const std::string Name = Spec.Scheme + ":" + File;
  if (wasUsedBeforeFork())
    return Error(ErrorCode::Unsupported,
                 Name + ": PyTorch was used before this process was forked, "
                        "and cannot be used here; use such models in the "
                        "parent or in its children, not in both");
  return guarded(ErrorCode::Malformed, Name,
                 [&]() -> Expected<std::shared_ptr<const Model>> {
                   auto Package = std::make_unique<Loader>(
                       File, ModelInPackage, /*run_single_threaded=*/false,
                       std::max(1U, std::thread::hardware_concurrency()));
                   Expected<ModelSignature> Signature =
                       signatureOf(Name, *Package);
                   if (!Signature)
                     return Signature.takeError();
                   return std::make_shared<const AOTInductorModel>(
                       Name, std::move(*Signature), std::move(Package));
                 });
}

void MLBridge::addAOTInductor(RunnerFactory &Factory) {
  addModelFormat(Factory, {"aoti",
                           "aoti:PACKAGE.pt2: a model compiled by PyTorch's "
                           "AOTInductor",
                           load});
}
