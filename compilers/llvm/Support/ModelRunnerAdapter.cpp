//===- ModelRunnerAdapter.cpp - Any runner as an llvm::MLModelRunner ------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts LLVM's tensor specs to the bridge's tensor views, and LLVM's
/// untyped evaluation to a typed request.
///
//===----------------------------------------------------------------------===//

#include "Support/ModelRunnerAdapter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/LLVMContext.h"

using namespace llvm;

namespace MLBridge {

static ElementType elementTypeOf(TensorType Type) {
  switch (Type) {
#define TENSOR_TYPE(T, Name)                                                   \
  case TensorType::Name:                                                       \
    return ElementType::Name;
    SUPPORTED_TENSOR_TYPES(TENSOR_TYPE)
#undef TENSOR_TYPE
  default:
    llvm_unreachable("a TensorSpec has one of the supported types");
  }
}

TensorView ModelRunnerAdapter::viewOf(const TensorSpec &Spec,
                                      const void *Data) {
  TensorView View;
  View.Name = Spec.name();
  View.Type = elementTypeOf(Spec.type());
  View.Dims = Shape(Span<const std::int64_t>(Spec.shape()));
  View.Data = Data;
  View.NumBytes = Spec.getTotalTensorBufferSize();
  return View;
}

ModelRunnerAdapter::ModelRunnerAdapter(LLVMContext &Ctx,
                                       MLBridge::MLModelRunner &Runner,
                                       ArrayRef<TensorSpec> Inputs,
                                       TensorSpec Advice, std::string Subject)
    : llvm::MLModelRunner(Ctx, Kind::Interactive, Inputs.size()),
      Runner(Runner), AdviceTensor(std::move(Advice)),
      Subject(std::move(Subject)),
      AdviceBuffer(
          divideCeil(AdviceTensor.getTotalTensorBufferSize(), sizeof(double))) {
  for (const auto &[Index, Spec] : enumerate(Inputs)) {
    setUpBufferForTensor(Index, Spec, /*Buffer=*/nullptr);
    Features.set(Spec.name(), viewOf(Spec, getTensorUntyped(Index)));
  }
}

void ModelRunnerAdapter::switchContext(StringRef Name) {
  Runner.switchContext(Name.empty() ? Subject : Subject + ":" + Name.str());
}

template <typename T> Error ModelRunnerAdapter::readAdvice() {
  T *Out = reinterpret_cast<T *>(AdviceBuffer.data());
  const std::size_t Count = AdviceTensor.getElementCount();
  if (Count == 1) {
    Expected<T> Reply = tryEvaluate<T>();
    if (!Reply)
      return Reply.takeError();
    *Out = *Reply;
    return Error::success();
  }
  Expected<std::vector<T>> Reply = tryEvaluate<std::vector<T>>();
  if (!Reply)
    return Reply.takeError();
  if (Reply->size() != Count)
    return Error(ErrorCode::SchemaMismatch,
                 Runner.describe() + ": advice '" + AdviceTensor.name() +
                     "': expected " + std::to_string(Count) +
                     " elements, found " + std::to_string(Reply->size()));
  llvm::copy(*Reply, Out);
  return Error::success();
}

void *ModelRunnerAdapter::evaluateUntyped() {
  auto Read = [&] {
    switch (AdviceTensor.type()) {
#define TENSOR_TYPE(T, Name)                                                   \
  case TensorType::Name:                                                       \
    return readAdvice<T>();
      SUPPORTED_TENSOR_TYPES(TENSOR_TYPE)
#undef TENSOR_TYPE
    default:
      llvm_unreachable("a TensorSpec has one of the supported types");
    }
  };
  if (Error E = Read()) {
    Ctx.emitError(Subject + ": " + E.str());
    llvm::fill(AdviceBuffer, 0);
  }
  return AdviceBuffer.data();
}

} // namespace MLBridge
