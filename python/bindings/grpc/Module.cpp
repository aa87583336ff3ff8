//===- Module.cpp - mlbridge._grpc ----------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the module mlbridge._grpc. It is separate from mlbridge._core, so
/// that gRPC's library is loaded only when a spec names gRPC. _core defines the
/// classes Listener and Scheme.
///
//===----------------------------------------------------------------------===//

#define MLBRIDGE_IMPORTS_NUMPY
#include "../Bindings.h"
#include "../Errors.h"
#include "../FromPython.h"
#include "../NumPy.h"
#include "../Signals.h"
#include "Trainer.h"

#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"

namespace nb = nanobind;

using namespace MLBridge;
using namespace MLBridge::Python;

static ListenerInPython listener(const nb::str &Spec, double PeerTimeout,
                                 nb::handle Formats) {
  ListenerOptions Options;
  Options.Formats = formatsOf(Formats);
  Options.PeerTimeout = durationOf(PeerTimeout);
  return {valueOrRaise(openGRPCListener(toString(Spec), std::move(Options)))};
}

/// Returns the schemes that gRPC adds to a factory.
static nb::list schemes() {
  RunnerFactory Factory;
  const std::size_t NumOthers = Factory.schemes().size();
  addGRPC(Factory);
  nb::list Added;
  for (const RunnerFactory::Scheme &S : Factory.schemes().subspan(NumOthers))
    Added.append(nb::cast(S));
  return Added;
}

NB_MODULE(_grpc, M) {
  if (_import_array() < 0)
    throw nb::python_error();
  M.doc() = "gRPC for mlbridge; see mlbridge.grpc.";
  nb::module_::import_("mlbridge._core");
  M.def("listener", listener, nb::arg("spec"), nb::kw_only(),
        nb::arg("peer_timeout"), nb::arg("formats"),
        nb::sig("def listener(spec: str, *, peer_timeout: float, formats: "
                "collections.abc.Sequence[mlbridge._core.Format]) -> "
                "mlbridge._core.Listener"),
        "Listens at grpc://HOST:PORT or grpc+unix:PATH.");
  M.def("schemes", schemes,
        nb::sig("def schemes() -> list[mlbridge._core.Scheme]"),
        "The schemes of model specs that this module adds.");
  bindSignals(M);
  bindTrainer(M);
}
