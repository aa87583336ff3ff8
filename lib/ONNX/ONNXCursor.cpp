//===- ONNXCursor.cpp - Evaluates an ONNX model for one thread ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXCursor.h"

#include "Support/PrintableText.h"

#include <algorithm>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::onnx;

/// The largest size in bytes for which copying a feature is faster than
/// creating a tensor around its memory. ONNX Runtime needs 0.07 us and three
/// allocations to create such a tensor.
static constexpr std::size_t MostCopied = std::size_t(16) << 10;

Expected<std::unique_ptr<ModelCursor>>
ONNXCursor::open(std::shared_ptr<const ONNXModel> M) {
  const Runtime &Library = M->runtime();
  // Create run options once. Otherwise, each evaluation would create its own
  // options.
  auto Options = Library.make<OrtRunOptions>(
      M->name(), ErrorCode::Model, [&](OrtRunOptions **Made) {
        return Library.api().CreateRunOptions(Made);
      });
  if (!Options)
    return Options.takeError();
  return std::unique_ptr<ModelCursor>(
      new ONNXCursor(std::move(M), std::move(*Options)));
}

ONNXCursor::ONNXCursor(std::shared_ptr<const ONNXModel> TheModel,
                       Handle<OrtRunOptions> Options)
    : M(std::move(TheModel)), API(M->runtime().api()),
      Options(std::move(Options)), Inputs(M->sessionInputs().size()),
      Outputs(M->outputs().size()), Views(M->outputs().size()),
      InputValues(M->sessionInputs().size()) {
  for (const SessionInput &In : M->sessionInputs())
    InputNames.push_back(In.Name.c_str());
  for (std::size_t I = 0; I < Outputs.size(); ++I) {
    const std::string &Name = M->outputs()[I].Name;
    Views[I].Name = Name;
    for (std::size_t From = 0; From < M->inputs().size(); ++From)
      if (M->inputs()[From].Name == Name)
        Outputs[I].From = From;
    if (Outputs[I].From)
      continue;
    Computed.push_back(I);
    OutputNames.push_back(Name.c_str());
  }
  OutputValues.resize(Computed.size());
}

Expected<Span<const TensorView>>
ONNXCursor::run(Span<const TensorView> Features) {
  return runUntil(Features, Deadline::never());
}

Expected<Span<const TensorView>>
ONNXCursor::runUntil(Span<const TensorView> Features, Deadline When) {
  Until = When;
  for (std::size_t I = 0; I < Inputs.size(); ++I) {
    Input &In = Inputs[I];
    const SessionInput &What = M->sessionInputs()[I];
    if (What.Parts.size() > 1) {
      Error E = merge(In, What, Features);
      InputValues[I] = In.Value.get();
      if (E)
        return E;
      continue;
    }
    const TensorView &Feature = Features[What.Parts.front()];
    // Handle the common case first. The shape is usually the same as in the
    // last request.
    if (In.Copy && In.Dims == Feature.Dims) {
      if (Feature.NumBytes != 0)
        std::memcpy(In.Copy, Feature.Data, Feature.NumBytes);
      continue;
    }
    Error E = set(In, Feature);
    InputValues[I] = In.Value.get();
    if (E)
      return E;
  }
  if (!Computed.empty())
    if (Error E = evaluate())
      return E;
  for (std::size_t I = 0; I < Outputs.size(); ++I)
    if (Outputs[I].From)
      copyToOutput(Features[*Outputs[I].From], Outputs[I], Views[I]);
  return Span<const TensorView>(Views);
}

//===----------------------------------------------------------------------===//
// Deadlines
//===----------------------------------------------------------------------===//

void ONNXCursor::interrupt() {
  // Ignore the status, because this call cannot fail.
  static_cast<void>(check(API.RunOptionsSetTerminate(Options.get())));
}

void ONNXCursor::resume() {
  static_cast<void>(check(API.RunOptionsUnsetTerminate(Options.get())));
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Error ONNXCursor::set(Input &In, const TensorView &Feature) {
  // Reset the members first. If creating the tensor fails, the next request
  // then tries again.
  if (!In.Value || In.Dims != Feature.Dims) {
    In.Value.reset();
    In.Copy = nullptr;
    In.Dims = Feature.Dims;
    ShapesChanged = true;
  }
  return Feature.Type == ElementType::String ? setStrings(In, Feature)
                                             : setNumbers(In, Feature);
}

Error ONNXCursor::make(Input &In, const TensorView &Feature, const void *Data) {
  const ONNXTensorElementDataType Type = toONNX(Feature.Type);
  const Runtime &Library = M->runtime();
  auto Made = Library.make<OrtValue>(
      M->name(), ErrorCode::Model, [&](OrtValue **Value) {
        return Data ? API.CreateTensorWithDataAsOrtValue(
                          Library.memory(), const_cast<void *>(Data),
                          Feature.NumBytes, Feature.Dims.begin(),
                          Feature.Dims.rank(), Type, Value)
                    : API.CreateTensorAsOrtValue(
                          Library.allocator(), Feature.Dims.begin(),
                          Feature.Dims.rank(), Type, Value);
      });
  if (!Made)
    return Made.takeError();
  In.Value = std::move(*Made);
  In.Borrowed = Data;
  In.Copy = nullptr;
  return Error::success();
}

/// Returns true if the first \p Count extents are equal. The tensors then have
/// the same number of rows.
static bool haveSameRows(const Shape &A, const Shape &B, std::size_t Count) {
  return A.rank() >= Count && B.rank() >= Count &&
         std::equal(A.begin(), A.begin() + Count, B.begin());
}

Error ONNXCursor::merge(Input &In, const SessionInput &What,
                        Span<const TensorView> Features) {
  const TensorView &First = Features[What.Parts.front()];
  std::size_t NumRows = 1, RowBytes = 0;
  for (std::size_t D = 0; D < What.Axis; ++D)
    NumRows *= static_cast<std::size_t>(First.Dims[D]);
  for (std::size_t Bytes : What.PartBytes)
    RowBytes += Bytes;
  if (!In.Copy || In.Dims != First.Dims) {
    TensorView Merged = First;
    Merged.Dims =
        Shape(Span<const std::int64_t>(First.Dims.begin(), What.Axis));
    for (std::size_t D = What.Axis; D < What.Dims.rank(); ++D)
      Merged.Dims.push(What.Dims[D]);
    In.Copy = nullptr;
    In.Dims = First.Dims;
    ShapesChanged = true;
    if (Error E = make(In, Merged, nullptr))
      return E;
    if (Error E = check(API.GetTensorMutableData(In.Value.get(), &In.Copy)))
      return E;
  }
  // The pointer is null if there are no rows. In this case, the loop does not
  // use it.
  char *const Rows = static_cast<char *>(In.Copy);
  std::size_t Column = 0;
  for (std::size_t P = 0; P < What.Parts.size(); ++P) {
    const TensorView &Part = Features[What.Parts[P]];
    const std::size_t Bytes = What.PartBytes[P];
    if (!haveSameRows(Part.Dims, First.Dims, What.Axis) ||
        Part.NumBytes != NumRows * Bytes)
      return {ErrorCode::SchemaMismatch,
              M->name() + ": feature '" + printable(Part.Name) +
                  "': expected as many rows as '" + printable(First.Name) +
                  "' " + First.typeStr() + ", found " + Part.typeStr()};
    const char *From = static_cast<const char *>(Part.Data);
    for (std::size_t Row = 0; Row < NumRows; ++Row)
      std::memcpy(Rows + Row * RowBytes + Column, From + Row * Bytes, Bytes);
    Column += Bytes;
  }
  return Error::success();
}

Error ONNXCursor::setNumbers(Input &In, const TensorView &Feature) {
  const bool IsAligned = reinterpret_cast<std::uintptr_t>(Feature.Data) %
                             elementSize(Feature.Type) ==
                         0;
  if (Feature.NumBytes > MostCopied && IsAligned)
    return In.Value && In.Borrowed == Feature.Data
               ? Error::success()
               : make(In, Feature, Feature.Data);
  if (Error E = make(In, Feature, nullptr))
    return E;
  if (Error E = check(API.GetTensorMutableData(In.Value.get(), &In.Copy)))
    return E;
  if (Feature.NumBytes != 0)
    std::memcpy(In.Copy, Feature.Data, Feature.NumBytes);
  return Error::success();
}

Error ONNXCursor::setStrings(Input &In, const TensorView &Feature) {
  if (!In.Value)
    if (Error E = make(In, Feature, nullptr))
      return E;
  const std::uint64_t Whole = Feature.NumBytes;
  Span<const std::uint64_t> Lengths =
      Feature.isStringList() ? Feature.Lengths
                             : Span<const std::uint64_t>(&Whole, 1);
  const char *From = static_cast<const char *>(Feature.Data);
  for (std::size_t I = 0; I < Lengths.size(); ++I) {
    char *To = nullptr;
    if (Error E = check(API.GetResizedStringTensorElementBuffer(
            In.Value.get(), I, Lengths[I], &To)))
      return E;
    if (Lengths[I] != 0)
      std::memcpy(To, From, Lengths[I]);
    From += Lengths[I];
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void ONNXCursor::forgetOutputs() {
  for (Output &Out : Outputs) {
    Out.Value.reset();
    Out.IsKnown = false;
  }
}

void ONNXCursor::copyToOutput(const TensorView &Feature, Output &Out,
                              TensorView &View) {
  // Allocate at least one unit, so that the pointer is not null.
  const std::size_t Units = Feature.NumBytes / sizeof(std::max_align_t) + 1;
  if (Out.Copy.size() < Units)
    Out.Copy.resize(Units);
  if (Feature.NumBytes != 0)
    std::memcpy(Out.Copy.data(), Feature.Data, Feature.NumBytes);
  Out.Lengths.assign(Feature.Lengths.begin(), Feature.Lengths.end());
  View.Type = Feature.Type;
  View.Dims = Feature.Dims;
  View.Data = Out.Copy.data();
  View.NumBytes = Feature.NumBytes;
  View.Lengths = Out.Lengths;
}

Error ONNXCursor::run() {
  for (std::size_t I = 0; I < Computed.size(); ++I)
    OutputValues[I] = Outputs[Computed[I]].Value.get();
  if (Error E = Clock.begin(Until))
    return {E.code(), M->name() + ": " + E.message()};
  const WithoutNewHandler Guard;
  OrtStatus *Status = API.Run(
      M->session(), Options.get(), InputNames.data(), InputValues.data(),
      Inputs.size(), OutputNames.data(), Computed.size(), OutputValues.data());
  const bool WasLate = Clock.end();
  if (Status) {
    Error Why = check(Status);
    if (!WasLate)
      return Why;
  }
  // Take ownership of all outputs before checking one of them, because a check
  // may fail.
  for (std::size_t I = 0; I < Computed.size(); ++I)
    if (Output &Out = Outputs[Computed[I]]; !Out.Value)
      Out.Value = Handle<OrtValue>(OutputValues[I], Release{&API});
  // If the evaluation was interrupted, its result is late even if it succeeded.
  if (WasLate)
    return {ErrorCode::Timeout,
            M->name() + " did not answer before the deadline"};
  return Error::success();
}

Error ONNXCursor::evaluate() {
  // Reuse the outputs' tensors if possible. ONNX Runtime allocates them in the
  // first evaluation.
  if (ShapesChanged || !KeepOutputs)
    forgetOutputs();
  ShapesChanged = false;
  const bool HadOutputs = Outputs[Computed.front()].Value != nullptr;
  Error E = run();
  if (E && HadOutputs && E.code() != ErrorCode::Timeout) {
    // The outputs' shapes may depend on values, so the old tensors may not fit.
    // Try again with new tensors.
    forgetOutputs();
    E = run();
    KeepOutputs &= bool(E);
  }
  if (E) {
    forgetOutputs();
    return E;
  }
  for (std::size_t I : Computed) {
    Output &Out = Outputs[I];
    if (!Out.IsKnown) {
      if (Error Why = updateView(Out, Views[I])) {
        forgetOutputs();
        return Why;
      }
      Out.IsKnown = true;
    }
    if (Views[I].Type == ElementType::String)
      if (Error Why = readStrings(Out, Views[I]))
        return Why;
  }
  return Error::success();
}

Error ONNXCursor::updateView(Output &Out, TensorView &View) {
  auto Info = M->runtime().make<OrtTensorTypeAndShapeInfo>(
      M->name(), ErrorCode::Model, [&](OrtTensorTypeAndShapeInfo **Made) {
        return API.GetTensorTypeAndShape(Out.Value.get(), Made);
      });
  if (!Info)
    return Info.takeError();
  ONNXTensorElementDataType Type;
  std::size_t Rank = 0;
  if (Error E = check(API.GetTensorElementType(Info->get(), &Type)))
    return E;
  if (Error E = check(API.GetDimensionsCount(Info->get(), &Rank)))
    return E;
  std::optional<ElementType> Known = fromONNX(Type);
  if (!Known)
    return {ErrorCode::Unsupported, M->name() + ": output '" +
                                        printable(View.Name) +
                                        "': " + unknownType(Type)};
  if (Rank > Shape::MaxRank)
    return {ErrorCode::Unsupported, M->name() + ": output '" +
                                        printable(View.Name) +
                                        "': expected a rank of at most " +
                                        std::to_string(Shape::MaxRank) +
                                        ", found " + std::to_string(Rank)};
  std::int64_t Extents[Shape::MaxRank];
  if (Error E = check(API.GetDimensions(Info->get(), Extents, Rank)))
    return E;
  View.Type = *Known;
  View.Dims = Shape(Span<const std::int64_t>(Extents, Rank));
  View.Lengths = {};
  if (*Known == ElementType::String)
    return Error::success();
  void *Data = nullptr;
  if (Error E = check(API.GetTensorMutableData(Out.Value.get(), &Data)))
    return E;
  View.Data = Data;
  View.NumBytes = View.Dims.numElements().value_or(0) * elementSize(View.Type);
  return Error::success();
}

Error ONNXCursor::readStrings(Output &Out, TensorView &View) {
  const std::size_t Count = View.Dims.numElements().value_or(0);
  std::size_t NumBytes = 0;
  if (Error E =
          check(API.GetStringTensorDataLength(Out.Value.get(), &NumBytes)))
    return E;
  // Allocate at least one byte, so that the pointer is not null.
  Out.Text.resize(std::max<std::size_t>(NumBytes, 1));
  Out.Offsets.resize(Count);
  if (Error E = check(API.GetStringTensorContent(Out.Value.get(),
                                                 Out.Text.data(), NumBytes,
                                                 Out.Offsets.data(), Count)))
    return E;
  View.Data = Out.Text.data();
  View.NumBytes = NumBytes;
  if (View.Dims.isScalar())
    return Error::success();
  Out.Lengths.resize(Count);
  for (std::size_t I = 0; I < Count; ++I)
    Out.Lengths[I] =
        (I + 1 < Count ? Out.Offsets[I + 1] : NumBytes) - Out.Offsets[I];
  View.Lengths = Out.Lengths;
  return Error::success();
}
