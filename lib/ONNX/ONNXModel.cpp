//===- ONNXModel.cpp - A loaded ONNX model --------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXModel.h"

#include "ONNX/InputMerge.h"
#include "ONNX/ONNXCursor.h"
#include "ONNX/ONNXFile.h"
#include "ONNX/ONNXSession.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <iterator>

using namespace MLBridge;
using namespace MLBridge::onnx;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// ONNX Runtime's element types, in the order of ElementType.
static constexpr ONNXTensorElementDataType ElementTypes[] = {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,   ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,   ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
};
static_assert(std::size(ElementTypes) == std::size_t(ElementType::String) + 1);

ONNXTensorElementDataType onnx::toONNX(ElementType Type) {
  return ElementTypes[static_cast<std::size_t>(Type)];
}

std::optional<ElementType> onnx::fromONNX(ONNXTensorElementDataType Type) {
  for (std::size_t I = 0; I < std::size(ElementTypes); ++I)
    if (ElementTypes[I] == Type)
      return static_cast<ElementType>(I);
  return std::nullopt;
}

std::string onnx::unknownType(ONNXTensorElementDataType Type) {
  return "expected a type that features have, found number " +
         std::to_string(Type) +
         " of ONNX's element types, such as float16 or complex";
}

//===----------------------------------------------------------------------===//
// Reading a session's description
//===----------------------------------------------------------------------===//

namespace {

/// Reads the inputs, outputs and metadata of a session.
class SessionReader {
public:
  SessionReader(const Runtime &Library, const OrtSession *Session,
                std::string Name)
      : Library(Library), API(Library.api()), Session(Session),
        Name(std::move(Name)) {}

  Error read();
  /// Replaces the merged inputs by the original inputs, in the original order.
  void unmerge(const MergedModel &Merged);

  std::vector<TensorSpec> Inputs;
  std::vector<SessionInput> SessionInputs;
  std::vector<TensorSpec> Outputs;
  Model::Metadata About;

private:
  /// The types of ONNX Runtime's functions that read a name or a type. They are
  /// the same for inputs and outputs.
  using GetName = decltype(OrtApi::SessionGetInputName);
  using GetTypeInfo = decltype(OrtApi::SessionGetInputTypeInfo);

  Error readInputs();
  Error readOutputs();
  Error readMetadata();
  Expected<TensorSpec> readName(GetName Get, std::size_t I);
  /// Reads the type of an input or output. Returns an Unsupported error if this
  /// library has no tensors of that type.
  Error readType(GetTypeInfo Get, std::size_t I, TensorSpec &Spec);
  Error readDims(const OrtTensorTypeAndShapeInfo &Info, TensorSpec &Spec);
  /// Returns the negative number that represents the extent \p Symbol. Equal
  /// names have the same number.
  std::int64_t symbol(std::string_view Symbol);
  /// Converts \p Text, which ONNX Runtime allocated, to a string. Releases \p
  /// Text.
  std::string take(char *Text) const;
  Error check(OrtStatus *Status) const {
    return Library.check(Status, Name, ErrorCode::Model);
  }

  const Runtime &Library;
  const OrtApi &API;
  const OrtSession *Session;
  const std::string Name;
  std::vector<std::string> Symbols;
};

} // namespace

std::string SessionReader::take(char *Text) const {
  std::string Copy(Text);
  Library.allocator()->Free(Library.allocator(), Text);
  return Copy;
}

std::int64_t SessionReader::symbol(std::string_view Symbol) {
  if (Symbol.empty())
    return TensorSpec::AnyExtent;
  std::size_t Index = 0;
  while (Index < Symbols.size() && Symbols[Index] != Symbol)
    ++Index;
  if (Index == Symbols.size())
    Symbols.emplace_back(Symbol);
  return TensorSpec::AnyExtent - 1 - static_cast<std::int64_t>(Index);
}

Error SessionReader::readDims(const OrtTensorTypeAndShapeInfo &Info,
                              TensorSpec &Spec) {
  std::size_t Rank = 0;
  if (Error E = check(API.GetDimensionsCount(&Info, &Rank)))
    return E;
  if (Rank > Shape::MaxRank)
    return {ErrorCode::Unsupported, Name + ": '" + printable(Spec.Name) +
                                        "': expected a rank of at most " +
                                        std::to_string(Shape::MaxRank) +
                                        ", found " + std::to_string(Rank)};
  std::int64_t Extents[Shape::MaxRank];
  const char *Names[Shape::MaxRank];
  if (Error E = check(API.GetDimensions(&Info, Extents, Rank)))
    return E;
  if (Error E = check(API.GetSymbolicDimensions(&Info, Names, Rank)))
    return E;
  for (std::size_t I = 0; I < Rank; ++I)
    Spec.Dims.push(Extents[I] >= 0 ? Extents[I] : symbol(Names[I]));
  return Error::success();
}

Error SessionReader::readType(GetTypeInfo Get, std::size_t I,
                              TensorSpec &Spec) {
  auto Type = Library.make<OrtTypeInfo>(
      Name, ErrorCode::Model,
      [&](OrtTypeInfo **Made) { return Get(Session, I, Made); });
  if (!Type)
    return Type.takeError();
  // Info stays null, without an error, if the value is not a tensor.
  const OrtTensorTypeAndShapeInfo *Info = nullptr;
  if (Error E = check(API.CastTypeInfoToTensorInfo(Type->get(), &Info)))
    return E;
  if (!Info)
    return {ErrorCode::Unsupported,
            Name + ": '" + printable(Spec.Name) +
                "': expected a tensor, found a map, a sequence or an optional "
                "value"};
  ONNXTensorElementDataType Element;
  if (Error E = check(API.GetTensorElementType(Info, &Element)))
    return E;
  std::optional<ElementType> Known = fromONNX(Element);
  if (!Known)
    return {ErrorCode::Unsupported,
            Name + ": '" + printable(Spec.Name) + "': " + unknownType(Element)};
  Spec.Type = *Known;
  return readDims(*Info, Spec);
}

Expected<TensorSpec> SessionReader::readName(GetName Get, std::size_t I) {
  char *Text = nullptr;
  if (Error E = check(Get(Session, I, Library.allocator(), &Text)))
    return E;
  TensorSpec Spec;
  Spec.Name = take(Text);
  return Spec;
}

Error SessionReader::readInputs() {
  std::size_t Count = 0;
  if (Error E = check(API.SessionGetInputCount(Session, &Count)))
    return E;
  for (std::size_t I = 0; I < Count; ++I) {
    Expected<TensorSpec> Spec = readName(API.SessionGetInputName, I);
    if (!Spec)
      return Spec.takeError();
    if (Error E = readType(API.SessionGetInputTypeInfo, I, *Spec))
      return E;
    SessionInputs.push_back({Spec->Name, {I}, 0, Spec->Dims, {}});
    Inputs.push_back(std::move(*Spec));
  }
  return Error::success();
}

void SessionReader::unmerge(const MergedModel &Merged) {
  std::vector<TensorSpec> Known = std::exchange(Inputs, {});
  for (const MergedInput &M : Merged.Merged)
    for (const FileInput &Part : M.Parts) {
      TensorSpec Spec{
          Part.Name,
          *fromONNX(static_cast<ONNXTensorElementDataType>(Part.Type)),
          {}};
      for (const FileExtent &E : Part.Dims)
        Spec.Dims.push(E.Name.empty() ? E.Number : symbol(E.Name));
      Known.push_back(std::move(Spec));
    }
  auto Find = [](const std::vector<TensorSpec> &In, const std::string &Name) {
    return std::ranges::find(In, Name, &TensorSpec::Name);
  };
  for (const std::string &Name : Merged.Inputs)
    if (auto Spec = Find(Known, Name); Spec != Known.end())
      Inputs.push_back(*Spec);
  auto Index = [&](const std::string &Name) {
    return static_cast<std::size_t>(Find(Inputs, Name) - Inputs.begin());
  };
  for (SessionInput &In : SessionInputs) {
    auto Found = std::ranges::find(Merged.Merged, In.Name, &MergedInput::Name);
    if (Found == Merged.Merged.end()) {
      In.Parts = {Index(In.Name)};
      continue;
    }
    In.Axis = Found->Axis;
    In.Parts.clear();
    for (const FileInput &Part : Found->Parts) {
      In.Parts.push_back(Index(Part.Name));
      const TensorSpec &Spec = Inputs[In.Parts.back()];
      std::size_t Bytes = elementSize(Spec.Type);
      for (std::size_t D = In.Axis; D < Spec.Dims.rank(); ++D)
        Bytes *= static_cast<std::size_t>(Spec.Dims[D]);
      In.PartBytes.push_back(Bytes);
    }
  }
}

Error SessionReader::readOutputs() {
  std::size_t Count = 0;
  if (Error E = check(API.SessionGetOutputCount(Session, &Count)))
    return E;
  Error Why;
  for (std::size_t I = 0; I < Count; ++I) {
    Expected<TensorSpec> Spec = readName(API.SessionGetOutputName, I);
    if (!Spec)
      return Spec.takeError();
    Error E = readType(API.SessionGetOutputTypeInfo, I, *Spec);
    if (!E)
      Outputs.push_back(std::move(*Spec));
    else if (E.code() == ErrorCode::Unsupported)
      Why = std::move(E);
    else
      return E;
  }
  // Ignore unsupported outputs if the model has supported outputs. For example,
  // classifiers return a label and a map, and callers rarely need the map.
  return Outputs.empty() ? Why : Error::success();
}

Error SessionReader::readMetadata() {
  auto Meta = Library.make<OrtModelMetadata>(
      Name, ErrorCode::Model, [&](OrtModelMetadata **Made) {
        return API.SessionGetModelMetadata(Session, Made);
      });
  if (!Meta)
    return Meta.takeError();
  char **Keys = nullptr;
  std::int64_t Count = 0;
  if (Error E = check(API.ModelMetadataGetCustomMetadataMapKeys(
          Meta->get(), Library.allocator(), &Keys, &Count)))
    return E;
  Error First;
  for (std::int64_t I = 0; I < Count; ++I) {
    const std::string Key = take(Keys[I]);
    char *Value = nullptr;
    Error E = check(API.ModelMetadataLookupCustomMetadataMap(
        Meta->get(), Library.allocator(), Key.c_str(), &Value));
    if (Value)
      About.emplace_back(Key, take(Value));
    if (E && !First)
      First = std::move(E);
  }
  if (Keys)
    Library.allocator()->Free(Library.allocator(), static_cast<void *>(Keys));
  return First;
}

Error SessionReader::read() {
  if (Error E = readInputs())
    return E;
  if (Error E = readOutputs())
    return E;
  return readMetadata();
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<const Model>>
ONNXModel::load(const std::string &File, const FileSurvey &Facts,
                const ONNXOptions &Chosen,
                std::shared_ptr<const Runtime> Library) {
  const std::string Name = "onnx:" + printable(File);
  std::optional<MergedModel> Merged;
  if (Facts.ExternalFiles.empty())
    Merged = mergeInputs(File);
  Expected<Handle<OrtSessionOptions>> Options =
      makeSessionOptions(Chosen, Name, *Library);
  if (!Options)
    return Options.takeError();
  Expected<Handle<OrtSession>> Session = makeSession(
      File, Merged ? Merged->Bytes : std::string(), **Options, Name, *Library);
  if (!Session && Merged) {
    // Load the original file instead, so that errors refer to it.
    Merged.reset();
    Session = makeSession(File, {}, **Options, Name, *Library);
  }
  if (!Session)
    return Session.takeError();
  SessionReader Reader(*Library, Session->get(), Name);
  if (Error E = Reader.read())
    return E;
  if (Merged)
    Reader.unmerge(*Merged);
  for (TensorSpec &Output : Reader.Outputs)
    Output.HasAnyRank = Facts.OutputsOfAnyRank.contains(Output.Name);
  for (const TensorSpec &Input : Reader.Inputs)
    if (Facts.InputsOfAnyRank.contains(Input.Name))
      return Error(ErrorCode::Unsupported,
                   Name + ": '" + printable(Input.Name) +
                       "': expected an input with a fixed rank, found " +
                       std::string(elementTypeName(Input.Type)) +
                       " of any rank");
  return std::shared_ptr<const Model>(
      new ONNXModel(Name, std::move(Reader.Inputs), std::move(Reader.Outputs),
                    std::move(Reader.About), std::move(Library),
                    std::move(*Session), std::move(Reader.SessionInputs)));
}

Expected<std::unique_ptr<ModelCursor>> ONNXModel::open() const {
  return ONNXCursor::open(
      std::static_pointer_cast<const ONNXModel>(shared_from_this()));
}
