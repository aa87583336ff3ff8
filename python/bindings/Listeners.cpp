//===- Listeners.cpp - Listeners on this machine, in Python -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "Formats.h"
#include "FromPython.h"
#include "ToPython.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;

namespace MLBridge::Python {

static nb::tuple serverSpec(const nb::str &Given) {
  const std::string Text = toString(Given);
  ModelSpec Spec = valueOrRaise(ModelSpec::parse(Text));
  const bool IsPipe = Spec.Scheme == "pipe";
  if (!IsPipe && Spec.Scheme != "shm")
    raise(
        {ErrorCode::Unsupported,
         "a model is served at pipe:NAME or shm:NAME, not at '" + Text + "'"});
  // Accept the first two options only for pipes, because bare mode uses only
  // pipes.
  const std::string_view Known[] = {"serdes", "bare", "max-message",
                                    "max-sessions"};
  if (Error E = Spec.checkOptions(Span(Known).subspan(IsPipe ? 0 : 2)))
    raise(E);
  std::string_view Bare = Spec.option("bare", IsPipe ? "yes" : "no");
  if (Bare != "yes" && Bare != "no")
    raise({ErrorCode::InvalidArgument,
           "option 'bare': expected yes or no, found '" + std::string(Bare) +
               "'"});
  std::size_t MaxMessage =
      valueOrRaise(Spec.bytes("max-message", TransportOptions().MaxMessage));
  std::size_t MaxSessions =
      valueOrRaise(Spec.number("max-sessions", ListenerOptions().MaxSessions));
  return nb::make_tuple(toStr(Spec.Path),
                        toStr(Spec.option("serdes", "bitstream")),
                        Bare == "yes", MaxMessage, MaxSessions);
}

static ListenerInPython localListener(const nb::str &Name,
                                      std::string BareFormat,
                                      std::size_t MaxMessage,
                                      std::size_t MaxSessions,
                                      double PeerTimeout, nb::handle Formats) {
  ListenerOptions Options;
  Options.Formats = formatsWith(Formats);
  Options.MaxMessage = MaxMessage;
  Options.MaxSessions = MaxSessions;
  Options.PeerTimeout = durationOf(PeerTimeout);
  return {valueOrRaise(openLocalListener(toString(Name), std::move(BareFormat),
                                         std::move(Options)))};
}

void bindListeners(nb::module_ &M) {
  M.def("server_spec", serverSpec, nb::arg("spec"),
        nb::sig("def server_spec(spec: str) -> tuple[str, str, bool, int, "
                "int]"),
        "Parses a spec of an address on this machine. Returns the name, the "
        "SerDes in bare mode, whether compilers in bare mode are accepted, the "
        "maximum message size in bytes and the maximum number of sessions.");
  nb::class_<ListenerInPython> Bound(
      M, "Listener",
      "Accepts compilers at one address. Belongs to one Server.");
  M.def(
      "local_listener", localListener, nb::arg("name"), nb::kw_only(),
      nb::arg("bare_format"), nb::arg("max_message"), nb::arg("max_sessions"),
      nb::arg("peer_timeout"), nb::arg("formats") = nb::tuple(),
      nb::sig("def local_listener(name: str, *, bare_format: str, max_message: "
              "int, max_sessions: int, peer_timeout: float, formats: "
              "collections.abc.Sequence[Format] = ()) -> Listener"),
      "Listens at NAME.sock and, with a bare_format, at NAME.in and NAME.out.");
}

} // namespace MLBridge::Python
