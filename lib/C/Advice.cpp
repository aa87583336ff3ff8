//===- Advice.cpp - Tensors that C reads ----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"
#include "C/Elements.h"
#include "C/Handles.h"

#include "Core/TensorForm.h"

using namespace MLBridge;
using namespace MLBridge::C;

/// Calls \p Do with the tensor \p Name.
template <typename Function>
static MLBridgeStatus readBy(MLBridgeAdviceRef Advice, const char *Name,
                             Function &&Do) {
  return call([&]() -> Error {
    if (!Advice)
      return isNull("Advice");
    Expected<const TensorView *> Tensor =
        Name ? Advice->Tensors.named(Name) : Advice->Tensors.only();
    if (!Tensor) {
      Error E = Tensor.takeError();
      if (Name || Advice->Tensors.size() == 0)
        return E;
      return {E.code(), E.message() + "; pass an output's name, for example to "
                                      "mlbridgeGetBool() after "
                                      "mlbridgeEvaluate()"};
    }
    return Do(**Tensor);
  });
}

static void describe(const TensorView &Tensor, AdviceCopies &Copies,
                     MLBridgeTensor &Out) {
  Out.Name = Copies.name(Tensor);
  Out.Type = static_cast<MLBridgeElementType>(Tensor.Type);
  Out.Rank = static_cast<uint32_t>(Tensor.Dims.rank());
  Out.Extents = Tensor.Dims.begin();
  Out.Data = Tensor.Data;
  Out.NumBytes = Tensor.NumBytes;
  Out.NumElements = Tensor.numElements();
  Out.Lengths = Tensor.isStringList() ? Tensor.Lengths.data() : nullptr;
}

size_t mlbridgeGetNumTensors(MLBridgeAdviceRef Advice) {
  return Advice ? Advice->Tensors.size() : 0;
}

MLBridgeStatus mlbridgeGetTensorAt(MLBridgeAdviceRef Advice, size_t Index,
                                   MLBridgeTensor *Tensor) {
  return call([&]() -> Error {
    if (!Advice)
      return isNull("Advice");
    if (!Tensor)
      return isNull("Tensor");
    if (Index >= Advice->Tensors.size())
      return {ErrorCode::InvalidArgument,
              "expected an index below " +
                  std::to_string(Advice->Tensors.size()) + ", found " +
                  std::to_string(Index)};
    describe(Advice->Tensors.tensors()[Index], Advice->Copies, *Tensor);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetTensor(MLBridgeAdviceRef Advice, const char *Name,
                                 MLBridgeTensor *Tensor) {
  return readBy(Advice, Name, [&](const TensorView &Found) -> Error {
    if (!Tensor)
      return isNull("Tensor");
    describe(Found, Advice->Copies, *Tensor);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetScalar(MLBridgeAdviceRef Advice, const char *Name,
                                 MLBridgeElementType Type, void *Value) {
  return readBy(Advice, Name, [&](const TensorView &Found) -> Error {
    Expected<ElementType> Wanted = numberType(Type);
    if (!Wanted)
      return Wanted.takeError();
    if (!Value)
      return isNull("Value");
    if (Found.Type == ElementType::String || Found.numElements() != 1)
      return detail::adviceMismatch(Found, elementTypeName(*Wanted));
    // Convert to a temporary, because a failed conversion must not change
    // *Value.
    alignas(8) std::byte Converted[8];
    if (Error E = detail::convertElements(Found, *Wanted, Converted))
      return E;
    std::copy_n(Converted, elementSize(*Wanted),
                static_cast<std::byte *>(Value));
    return Error::success();
  });
}

/// Returns the address of the elements of \p Found if C can read them in place
/// as \p Type. Otherwise returns null. Also returns null for bools, because
/// their bytes must be checked first.
static const void *inPlace(const TensorView &Found, ElementType Type) {
  const bool IsAligned =
      reinterpret_cast<std::uintptr_t>(Found.Data) % elementSize(Type) == 0;
  return Found.Type == Type && Type != ElementType::Bool && IsAligned
             ? Found.Data
             : nullptr;
}

MLBridgeStatus mlbridgeGetVector(MLBridgeAdviceRef Advice, const char *Name,
                                 MLBridgeElementType Type, const void **Values,
                                 size_t *Count) {
  return readBy(Advice, Name, [&](const TensorView &Found) -> Error {
    Expected<ElementType> Wanted = numberType(Type);
    if (!Wanted)
      return Wanted.takeError();
    if (!Values)
      return isNull("Values");
    if (!Count)
      return isNull("Count");
    const void *Elements = inPlace(Found, *Wanted);
    if (!Elements) {
      Expected<const void *> Copy = Advice->Copies.elements(Found, *Wanted);
      if (!Copy)
        return Copy.takeError();
      Elements = *Copy;
    }
    *Values = Elements;
    *Count = Found.numElements();
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetString(MLBridgeAdviceRef Advice, const char *Name,
                                 const char **Text, size_t *Length) {
  return readBy(Advice, Name, [&](const TensorView &Found) -> Error {
    if (!Text)
      return isNull("Text");
    if (Found.Type != ElementType::String || Found.isStringList())
      return detail::adviceMismatch(Found, "string");
    *Text = Advice->Copies.text(Found);
    if (Length)
      *Length = Found.NumBytes;
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetStringVector(MLBridgeAdviceRef Advice,
                                       const char *Name,
                                       const char *const **Texts,
                                       size_t *Count) {
  return readBy(Advice, Name, [&](const TensorView &Found) -> Error {
    if (!Texts)
      return isNull("Texts");
    if (!Count)
      return isNull("Count");
    if (Found.Type != ElementType::String)
      return detail::adviceMismatch(Found, "a list of strings");
    if (std::string Why = detail::contradiction(Found); !Why.empty())
      return {ErrorCode::Malformed,
              "advice '" + std::string(Found.Name) + "': " + Why};
    *Texts = Advice->Copies.texts(Found);
    *Count = Found.numElements();
    return Error::success();
  });
}
