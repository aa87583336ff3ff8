//===- TFModel.cpp - One SavedModel, loaded -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TF/TFModel.h"

#include <algorithm>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::tf;

/// A serialised tensorflow.ConfigProto: intra_op_parallelism_threads (2) is 1,
/// inter_op_parallelism_threads (5) is -1. So a model is run by the thread that
/// asks; a pool would take ten times as long to wake up (50 us).
static constexpr std::uint8_t InCallersThread[] = {0x10, 0x01, 0x28, 0xff, 0xff,
                                                   0xff, 0xff, 0xff, 0xff, 0xff,
                                                   0xff, 0xff, 0x01};

//===----------------------------------------------------------------------===//
// TFModel
//===----------------------------------------------------------------------===//

static std::vector<TensorSpec>
specsOf(const std::vector<SignatureTensor> &Tensors) {
  std::vector<TensorSpec> Specs;
  Specs.reserve(Tensors.size());
  for (const SignatureTensor &T : Tensors)
    Specs.push_back(T.Spec);
  return Specs;
}

TFModel::TFModel(std::string Name, const Signature &S,
                 std::shared_ptr<const Runtime> Library, Handle<TF_Graph> Graph,
                 Handle<TF_Session> Session)
    : Model(std::move(Name), specsOf(S.Inputs), specsOf(S.Outputs), {}),
      Library(std::move(Library)), Graph(std::move(Graph)),
      Session(std::move(Session)) {}

Expected<std::shared_ptr<const Model>>
TFModel::load(const std::string &Folder, const TFOptions &Options,
              std::shared_ptr<const Runtime> Library) {
  const std::string Name = "tf:" + Folder;
  const Runtime &API = *Library;
  const Release Give{&API};
  Handle<TF_Status> Status(API.NewStatus(), Give);
  Handle<TF_SessionOptions> Config(API.NewSessionOptions(), Give);
  API.SetConfig(Config.get(), InCallersThread, sizeof(InCallersThread),
                Status.get());
  if (Error E = API.check(Status.get(), Name, ErrorCode::Model))
    return E;

  Handle<TF_Graph> Graph(API.NewGraph(), Give);
  Handle<TF_Buffer> MetaGraph(API.NewBuffer(), Give);
  const char *Tags[] = {"serve"};
  Handle<TF_Session> Session(API.LoadSessionFromSavedModel(
                                 Config.get(), nullptr, Folder.c_str(), Tags, 1,
                                 Graph.get(), MetaGraph.get(), Status.get()),
                             Give);
  if (Error E = API.check(Status.get(), Name, ErrorCode::Model))
    return E;

  Expected<Signature> Found = readSignature(
      {static_cast<const char *>(MetaGraph->data), MetaGraph->length},
      Options.Signature, Name);
  if (!Found)
    return Found.takeError();
  std::shared_ptr<TFModel> Loaded(new TFModel(
      Name, *Found, std::move(Library), std::move(Graph), std::move(Session)));
  if (Error E = Loaded->find(Found->Inputs, Loaded->InputPlaces))
    return E;
  if (Error E = Loaded->find(Found->Outputs, Loaded->OutputPlaces))
    return E;
  return std::shared_ptr<const Model>(std::move(Loaded));
}

Error TFModel::find(const std::vector<SignatureTensor> &Tensors,
                    std::vector<TF_Output> &Places) const {
  for (const SignatureTensor &T : Tensors) {
    TF_Operation *Operation =
        Library->GraphOperationByName(Graph.get(), T.Operation.c_str());
    if (!Operation)
      return {ErrorCode::Malformed,
              name() + ": '" + T.Spec.Name + "' is an output of '" +
                  T.Operation + "', and the graph has no such operation"};
    Places.push_back({Operation, T.Index});
  }
  return Error::success();
}

Expected<std::unique_ptr<ModelCursor>> TFModel::open() const {
  return std::unique_ptr<ModelCursor>(std::make_unique<TFCursor>(
      std::static_pointer_cast<const TFModel>(shared_from_this())));
}

//===----------------------------------------------------------------------===//
// TFCursor
//===----------------------------------------------------------------------===//

TFCursor::TFCursor(std::shared_ptr<const TFModel> TheModel)
    : M(std::move(TheModel)), API(M->runtime()),
      Status(API.NewStatus(), Release{&API}), Inputs(M->inputs().size()),
      Outputs(M->outputs().size()), Views(M->outputs().size()),
      InputValues(M->inputs().size()), OutputValues(M->outputs().size()) {
  for (std::size_t I = 0; I < Views.size(); ++I)
    Views[I].Name = M->outputs()[I].Name;
}

Error TFCursor::set(std::size_t I, const TensorView &Feature) {
  Input &In = Inputs[I];
  if (!In.Value || In.Dims != Feature.Dims) {
    In.Value = Handle<TF_Tensor>(
        API.AllocateTensor(
            static_cast<TF_DataType>(toTF(Feature.Type)), Feature.Dims.begin(),
            static_cast<int>(Feature.Dims.rank()), Feature.NumBytes),
        Release{&API});
    if (!In.Value || API.TensorByteSize(In.Value.get()) != Feature.NumBytes) {
      In.Value.reset();
      return {ErrorCode::System, M->name() + ": '" + std::string(Feature.Name) +
                                     "': no memory for a tensor of " +
                                     std::to_string(Feature.NumBytes) +
                                     " bytes"};
    }
    In.Dims = Feature.Dims;
    InputValues[I] = In.Value.get();
  }
  if (Feature.NumBytes != 0)
    std::memcpy(API.TensorData(In.Value.get()), Feature.Data, Feature.NumBytes);
  return Error::success();
}

Expected<Span<const TensorView>>
TFCursor::run(Span<const TensorView> Features) {
  for (Handle<TF_Tensor> &Out : Outputs)
    Out.reset();
  for (std::size_t I = 0; I < Inputs.size(); ++I)
    if (Error E = set(I, Features[I]))
      return E;
  std::ranges::fill(OutputValues, nullptr);
  API.SessionRun(M->session(), /*run_options=*/nullptr, M->inputPlaces().data(),
                 InputValues.data(), static_cast<int>(Inputs.size()),
                 M->outputPlaces().data(), OutputValues.data(),
                 static_cast<int>(Outputs.size()),
                 /*target_opers=*/nullptr, /*ntargets=*/0,
                 /*run_metadata=*/nullptr, Status.get());
  for (std::size_t I = 0; I < Outputs.size(); ++I)
    Outputs[I] = Handle<TF_Tensor>(OutputValues[I], Release{&API});
  if (Error E = API.check(Status.get(), M->name(), ErrorCode::Model))
    return E;
  for (std::size_t I = 0; I < Outputs.size(); ++I)
    if (Error E = look(I))
      return E;
  return Span<const TensorView>(Views);
}

Error TFCursor::look(std::size_t I) {
  const TF_Tensor *Value = Outputs[I].get();
  TensorView &View = Views[I];
  Shape Dims;
  for (int D = 0, Rank = API.NumDims(Value); D < Rank; ++D)
    if (!Dims.push(API.Dim(Value, D)))
      return {ErrorCode::Unsupported, M->name() + ": output '" +
                                          std::string(View.Name) +
                                          "': expected a rank of at most 8, "
                                          "found " +
                                          std::to_string(Rank)};
  const ElementType Type = M->outputs()[I].Type;
  if (API.TensorType(Value) != toTF(Type))
    return {ErrorCode::Model,
            M->name() + ": output '" + std::string(View.Name) + "': expected " +
                std::string(elementTypeName(Type)) + ", found another type"};
  View.Type = Type;
  View.Dims = Dims;
  View.Data = API.TensorData(Value);
  View.NumBytes = API.TensorByteSize(Value);
  return Error::success();
}
