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

#include "InProcess/Watchdog.h"
#include "TF/SignatureReader.h"
#include "TF/TFRuntime.h"

#include <atomic>
#include <mutex>

namespace MLBridge::tf {

/// A SavedModel, open.
struct OpenModel {
  Handle<TF_Graph> Graph;
  /// Of the graph, which it must not outlive. TensorFlow's sessions are run by
  /// many threads, though not const.
  Handle<TF_Session> Session;
  Signature Said;
  /// In the order of Said.Inputs and Said.Outputs.
  std::vector<TF_Output> InputPlaces, OutputPlaces;
  /// Whether the session was closed, which is how an evaluation is interrupted:
  /// TensorFlow's C API has no other way. It ends those of other threads, too.
  std::atomic<bool> IsClosed = false;
};

class TFModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &Folder, const TFOptions &Options,
       std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// The model with an open session: the one that is there, or where that was
  /// closed another of the same folder.
  Expected<std::shared_ptr<OpenModel>> opened() const;

private:
  TFModel(std::string Name, std::string Folder, TFOptions Options,
          std::shared_ptr<const Runtime> Library,
          std::shared_ptr<OpenModel> Opened);

  const std::string Folder;
  const TFOptions Options;
  const std::shared_ptr<const Runtime> Library;
  mutable std::mutex Mutex;
  mutable std::shared_ptr<OpenModel> Current;
};

/// The tensors of one thread's requests: inputs that are kept as long as their
/// shapes stay, and the outputs of the last one.
class TFCursor final : public ModelCursor, inprocess::Interruptible {
public:
  TFCursor(std::shared_ptr<const TFModel> M, std::shared_ptr<OpenModel> Opened);

  Expected<Span<const TensorView>>
  run(Span<const TensorView> Features) override;
  Expected<Span<const TensorView>> runUntil(Span<const TensorView> Features,
                                            Deadline Until) override;

private:
  struct Input {
    Handle<TF_Tensor> Value;
    Shape Dims;
  };

  void interrupt() override;
  void resume() override {}

  Error set(std::size_t I, const TensorView &Feature);
  /// Evaluates until there is an answer that no other thread has interrupted.
  Error evaluate(Deadline Until);
  /// Runs the session, and owns what comes of it. Says in \p WasLate whether
  /// the deadline was first.
  Error runSession(Deadline Until, bool &WasLate);
  /// Says in Views what the output is.
  Error look(std::size_t I);

  const std::shared_ptr<const TFModel> M;
  const Runtime &API;
  /// The second is for the thread that interrupts.
  const Handle<TF_Status> Status, ClosingStatus;
  std::shared_ptr<OpenModel> Opened;

  std::vector<Input> Inputs;
  std::vector<Handle<TF_Tensor>> Outputs;
  /// The outputs as features' equals.
  std::vector<TensorView> Views;
  /// What TF_SessionRun takes.
  std::vector<TF_Tensor *> InputValues, OutputValues;
  /// Last, so that nothing is interrupted any more when the rest goes.
  inprocess::Watch Clock{*this};
};

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_TFMODEL_H
