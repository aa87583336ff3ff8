//===- InProcess.cpp - Models in this process, from Python ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The schemes of models in this process, for mlbridge.inprocess.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace MLBridge::Python {

/// Those that this build adds to a factory.
static nb::list inProcessSchemes([[maybe_unused]] std::string ONNXRuntime) {
  RunnerFactory Factory;
  const std::size_t NumOthers = Factory.schemes().size();
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory, {std::move(ONNXRuntime)});
#endif
  nb::list Added;
  for (const RunnerFactory::Scheme &S : Factory.schemes().subspan(NumOthers))
    Added.append(nb::cast(S));
  return Added;
}

void bindInProcess(nb::module_ &M) {
  M.def("in_process_schemes", inProcessSchemes, nb::arg("onnxruntime") = "",
        nb::sig("def in_process_schemes(onnxruntime: str = '') -> "
                "list[Scheme]"),
        "The schemes of models in this process. Runners that are made with "
        "the same ones share their models. onnxruntime: its library, unless "
        "a spec or the environment names one.");
}

} // namespace MLBridge::Python
