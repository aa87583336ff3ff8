//===- TFModel.cpp - A loaded SavedModel ----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TF/TFModel.h"

#include "Support/PrintableText.h"

#include <algorithm>
#include <cstring>

using namespace MLBridge;
using namespace MLBridge::tf;

/// A serialised tensorflow.ConfigProto that makes the calling thread run the
/// model. It sets intra_op_parallelism_threads (field 2) to 1 and
/// inter_op_parallelism_threads (field 5) to -1. Waking a thread pool would
/// take ten times as long (50 us).
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

/// Finds the tensors of a signature in the graph.
static Error find(const std::vector<SignatureTensor> &Tensors, TF_Graph *Graph,
                  const Runtime &API, const std::string &Name,
                  std::vector<TF_Output> &Places) {
  for (const SignatureTensor &T : Tensors) {
    TF_Operation *Operation =
        API.GraphOperationByName(Graph, T.Operation.c_str());
    if (!Operation)
      return {ErrorCode::Malformed,
              Name + ": '" + printable(T.Spec.Name) + "' is an output of '" +
                  printable(T.Operation) +
                  "', but the graph lacks that operation"};
    Places.push_back({Operation, T.Index});
  }
  return Error::success();
}

static Expected<std::shared_ptr<OpenModel>>
openFolder(const std::string &Folder, const TFOptions &Options,
           const Runtime &API, const std::string &Name) {
  const Release Give{&API};
  Handle<TF_Status> Status(API.NewStatus(), Give);
  Handle<TF_SessionOptions> Config(API.NewSessionOptions(), Give);
  API.SetConfig(Config.get(), InCallersThread, sizeof(InCallersThread),
                Status.get());
  if (Error E = API.check(Status.get(), Name, ErrorCode::Model))
    return E;

  auto Opened = std::make_shared<OpenModel>();
  Opened->Graph = Handle<TF_Graph>(API.NewGraph(), Give);
  Handle<TF_Buffer> MetaGraph(API.NewBuffer(), Give);
  const char *Tags[] = {"serve"};
  Opened->Session = Handle<TF_Session>(
      API.LoadSessionFromSavedModel(Config.get(), nullptr, Folder.c_str(), Tags,
                                    1, Opened->Graph.get(), MetaGraph.get(),
                                    Status.get()),
      Give);
  if (Error E = API.check(Status.get(), Name, ErrorCode::Model))
    return E;

  Expected<Signature> Found = readSignature(
      {static_cast<const char *>(MetaGraph->data), MetaGraph->length},
      Options.Signature, Name);
  if (!Found)
    return Found.takeError();
  Opened->TheSignature = std::move(*Found);
  if (Error E = find(Opened->TheSignature.Inputs, Opened->Graph.get(), API,
                     Name, Opened->InputPlaces))
    return E;
  if (Error E = find(Opened->TheSignature.Outputs, Opened->Graph.get(), API,
                     Name, Opened->OutputPlaces))
    return E;
  return Opened;
}

TFModel::TFModel(std::string Name, std::string Folder, TFOptions Options,
                 std::shared_ptr<const Runtime> Library,
                 std::shared_ptr<OpenModel> Opened)
    : Model(std::move(Name), specsOf(Opened->TheSignature.Inputs),
            specsOf(Opened->TheSignature.Outputs), {}),
      Folder(std::move(Folder)), Options(std::move(Options)),
      Library(std::move(Library)), Current(std::move(Opened)) {}

Expected<std::shared_ptr<const Model>>
TFModel::load(const std::string &Folder, const TFOptions &Options,
              std::shared_ptr<const Runtime> Library) {
  const std::string Name = "tf:" + printable(Folder);
  Expected<std::shared_ptr<OpenModel>> Opened =
      openFolder(Folder, Options, *Library, Name);
  if (!Opened)
    return Opened.takeError();
  return std::shared_ptr<const Model>(new TFModel(
      Name, Folder, Options, std::move(Library), std::move(*Opened)));
}

/// Returns true if \p Tensors equal \p Specs, which describe the model that was
/// loaded first.
static bool areSame(const std::vector<SignatureTensor> &Tensors,
                    Span<const TensorSpec> Specs) {
  return std::ranges::equal(
      Tensors, Specs, [](const SignatureTensor &T, const TensorSpec &S) {
        return T.Spec.Name == S.Name && T.Spec.Type == S.Type &&
               T.Spec.Dims == S.Dims;
      });
}

Expected<std::shared_ptr<OpenModel>> TFModel::opened() const {
  const std::scoped_lock Lock(Mutex);
  if (!Current->IsClosed)
    return Current;
  Expected<std::shared_ptr<OpenModel>> Again =
      openFolder(Folder, Options, *Library, name());
  if (!Again)
    return Again;
  if (!areSame((*Again)->TheSignature.Inputs, inputs()) ||
      !areSame((*Again)->TheSignature.Outputs, outputs()))
    return Error(ErrorCode::SchemaMismatch,
                 name() + ": the folder now contains a model with other inputs "
                          "or outputs; create a new runner for it");
  Current = std::move(*Again);
  return Current;
}

Expected<std::unique_ptr<ModelCursor>> TFModel::open() const {
  Expected<std::shared_ptr<OpenModel>> Opened = opened();
  if (!Opened)
    return Opened.takeError();
  return std::unique_ptr<ModelCursor>(std::make_unique<TFCursor>(
      std::static_pointer_cast<const TFModel>(shared_from_this()),
      std::move(*Opened)));
}

//===----------------------------------------------------------------------===//
// TFCursor
//===----------------------------------------------------------------------===//

TFCursor::TFCursor(std::shared_ptr<const TFModel> TheModel,
                   std::shared_ptr<OpenModel> TheOpened)
    : M(std::move(TheModel)), API(M->runtime()),
      Status(API.NewStatus(), Release{&API}),
      ClosingStatus(API.NewStatus(), Release{&API}),
      Opened(std::move(TheOpened)), Inputs(M->inputs().size()),
      Outputs(M->outputs().size()), Views(M->outputs().size()),
      InputValues(M->inputs().size()), OutputValues(M->outputs().size()) {
  for (std::size_t I = 0; I < Views.size(); ++I)
    Views[I].Name = M->outputs()[I].Name;
}

void TFCursor::interrupt() {
  Opened->IsClosed = true;
  API.CloseSession(Opened->Session.get(), ClosingStatus.get());
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
      return {ErrorCode::System, M->name() + ": '" + printable(Feature.Name) +
                                     "': out of memory for a tensor of " +
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
  return runUntil(Features, Deadline::never());
}

Expected<Span<const TensorView>>
TFCursor::runUntil(Span<const TensorView> Features, Deadline Until) {
  for (Handle<TF_Tensor> &Out : Outputs)
    Out.reset();
  for (std::size_t I = 0; I < Inputs.size(); ++I)
    if (Error E = set(I, Features[I]))
      return E;
  if (Error E = evaluate(Until))
    return E;
  for (std::size_t I = 0; I < Outputs.size(); ++I)
    if (Error E = updateView(I))
      return E;
  return Span<const TensorView>(Views);
}

Error TFCursor::evaluate(Deadline Until) {
  // A late request in one thread interrupts the requests of all threads.
  // Therefore, try several times.
  constexpr int MostTries = 8;
  Error Failure;
  for (int Tries = 0; Tries < MostTries; ++Tries) {
    if (Opened->IsClosed) [[unlikely]] {
      Expected<std::shared_ptr<OpenModel>> Again = M->opened();
      if (!Again)
        return Again.takeError();
      Opened = std::move(*Again);
    }
    bool WasLate = false;
    Failure = runSession(Until, WasLate);
    if (WasLate)
      return {ErrorCode::Timeout,
              M->name() + " did not answer before the deadline"};
    if (!Failure || !Opened->IsClosed)
      break;
  }
  return Failure;
}

Error TFCursor::runSession(Deadline Until, bool &WasLate) {
  std::ranges::fill(OutputValues, nullptr);
  if (Error E = Clock.begin(Until))
    return {E.code(), M->name() + ": " + E.message()};
  API.SessionRun(Opened->Session.get(), /*run_options=*/nullptr,
                 Opened->InputPlaces.data(), InputValues.data(),
                 static_cast<int>(Inputs.size()), Opened->OutputPlaces.data(),
                 OutputValues.data(), static_cast<int>(Outputs.size()),
                 /*target_opers=*/nullptr, /*ntargets=*/0,
                 /*run_metadata=*/nullptr, Status.get());
  WasLate = Clock.end();
  for (std::size_t I = 0; I < Outputs.size(); ++I)
    Outputs[I] = Handle<TF_Tensor>(OutputValues[I], Release{&API});
  return API.check(Status.get(), M->name(), ErrorCode::Model);
}

Error TFCursor::updateView(std::size_t I) {
  const TF_Tensor *Value = Outputs[I].get();
  TensorView &View = Views[I];
  Shape Dims;
  for (int D = 0, Rank = API.NumDims(Value); D < Rank; ++D)
    if (!Dims.push(API.Dim(Value, D)))
      return {ErrorCode::Unsupported, M->name() + ": output '" +
                                          printable(View.Name) +
                                          "': expected a rank of at most 8, "
                                          "found " +
                                          std::to_string(Rank)};
  const ElementType Type = M->outputs()[I].Type;
  if (API.TensorType(Value) != toTF(Type))
    return {ErrorCode::Model,
            M->name() + ": output '" + printable(View.Name) + "': expected " +
                std::string(elementTypeName(Type)) + ", found another type"};
  View.Type = Type;
  View.Dims = Dims;
  View.Data = API.TensorData(Value);
  View.NumBytes = API.TensorByteSize(Value);
  return Error::success();
}
