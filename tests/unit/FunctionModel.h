//===- FunctionModel.h - A model that calls a function ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FunctionModel: a loaded model that calls a function from tensors to tensors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_UNIT_FUNCTIONMODEL_H
#define MLBRIDGE_TESTS_UNIT_FUNCTIONMODEL_H

#include "MLCompilerBridge/Extend/Model.h"
#include "MLCompilerBridge/FeatureSet.h"

#include <functional>
#include <unistd.h>

namespace MLBridge::test {

class FunctionModel final : public Model {
public:
  /// Writes the outputs in the model's order, or fails.
  using Function = std::function<Error(Span<const TensorView>, FeatureSet &)>;

  FunctionModel(std::string Name, std::vector<TensorSpec> Inputs,
                std::vector<TensorSpec> Outputs, Function Reply,
                Metadata About = {})
      : Model(std::move(Name), std::move(Inputs), std::move(Outputs),
              std::move(About)),
        Reply(std::move(Reply)) {}
  /// Ends the process if another process made the model. A runtime could hang
  /// here, because its threads exist only in the process that made it.
  ~FunctionModel() override {
    if (::getpid() != Maker)
      ::_exit(9);
  }

  Expected<std::unique_ptr<ModelCursor>> open() const override {
    return std::make_unique<Cursor>(
        std::static_pointer_cast<const FunctionModel>(shared_from_this()));
  }

private:
  class Cursor final : public ModelCursor {
  public:
    explicit Cursor(std::shared_ptr<const FunctionModel> M) : M(std::move(M)) {}
    Expected<Span<const TensorView>>
    run(Span<const TensorView> Inputs) override {
      Out.clear();
      if (Error E = M->Reply(Inputs, Out))
        return E;
      return Out.tensors();
    }

  private:
    std::shared_ptr<const FunctionModel> M;
    FeatureSet Out;
  };

  Function Reply;
  const pid_t Maker = ::getpid();
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_UNIT_FUNCTIONMODEL_H
