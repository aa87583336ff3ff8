//===- TFModel.h - One SavedModel, loaded -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TFModel: a session of TensorFlow, which any number of threads run at a time,
/// each by a TFCursor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_TFMODEL_H
#define MLBRIDGE_LIB_TF_TFMODEL_H

#include "TF/SignatureReader.h"
#include "TF/TFRuntime.h"

namespace MLBridge::tf {

class TFModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &Folder, const TFOptions &Options,
       std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// TensorFlow's sessions are run by many threads, though not const.
  TF_Session *session() const { return Session.get(); }
  /// In the order of inputs() and outputs().
  const std::vector<TF_Output> &inputPlaces() const { return InputPlaces; }
  const std::vector<TF_Output> &outputPlaces() const { return OutputPlaces; }

private:
  TFModel(std::string Name, const Signature &S,
          std::shared_ptr<const Runtime> Library, Handle<TF_Graph> Graph,
          Handle<TF_Session> Session);

  /// Finds the tensors of a signature in the graph.
  Error find(const std::vector<SignatureTensor> &Tensors,
             std::vector<TF_Output> &Places) const;

  std::shared_ptr<const Runtime> Library;
  Handle<TF_Graph> Graph;
  /// Of the graph, which it must not outlive.
  Handle<TF_Session> Session;
  std::vector<TF_Output> InputPlaces, OutputPlaces;
};

/// The tensors of one thread's questions: inputs that are kept as long as their
/// shapes stay, and the outputs of the last one.
class TFCursor final : public ModelCursor {
public:
  explicit TFCursor(std::shared_ptr<const TFModel> M);

  Expected<Span<const TensorView>>
  run(Span<const TensorView> Features) override;

private:
  struct Input {
    Handle<TF_Tensor> Value;
    Shape Dims;
  };

  Error set(std::size_t I, const TensorView &Feature);
  /// Says in Views what the output is.
  Error look(std::size_t I);

  const std::shared_ptr<const TFModel> M;
  const Runtime &API;
  const Handle<TF_Status> Status;

  std::vector<Input> Inputs;
  std::vector<Handle<TF_Tensor>> Outputs;
  /// The outputs as features' equals.
  std::vector<TensorView> Views;
  /// What TF_SessionRun takes.
  std::vector<TF_Tensor *> InputValues, OutputValues;
};

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_TFMODEL_H
