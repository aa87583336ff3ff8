//===- BindServer.cpp - The binding of Server -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the signatures and docstrings of mlbridge._core.Server.
///
//===----------------------------------------------------------------------===//

#include "Server.h"
#include "ToPython.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace MLBridge::Python {

void bindServer(nb::module_ &M) {
  nb::class_<Server>(
      M, "Server",
      "Serves compilers. Only one thread at a time may use a server, but any "
      "thread may call stop() and latencies().")
      .def(nb::init<const nb::sequence &, nb::object>(), nb::arg("listeners"),
           nb::kw_only(), nb::arg("on_warning").none(),
           nb::sig("def __init__(self, listeners: "
                   "collections.abc.Sequence[Listener], *, on_warning: "
                   "collections.abc.Callable[[str, Exception], object] | None) "
                   "-> None"),
           "Takes over the listeners. Failures and refusals are passed to "
           "on_warning.")
      .def("exchange", &Server::exchange,
           nb::arg("timeout").none() = nb::none(),
           nb::sig("def exchange(self, timeout: float | None = None) -> "
                   "dict[str, typing.Any] | None"),
           "Sends the replies that are set and waits for the next request. "
           "Returns the request's features by name, or None after timeout "
           "seconds or after stop(). If a reply could not be sent, raises an "
           "exception with the attribute `session`. The attribute `others` "
           "contains the exceptions for the batch's other unsent replies.")
      .def("exchange_batch", &Server::exchangeBatch, nb::arg("max_size"),
           nb::arg("max_delay"), nb::arg("timeout").none() = nb::none(),
           nb::sig("def exchange_batch(self, max_size: int, max_delay: float, "
                   "timeout: float | None = None) -> list[dict[str, "
                   "typing.Any]] | None"),
           "Does the same as exchange(), but returns all requests that are "
           "waiting, at most one per compiler. The first request waits at "
           "most max_delay seconds for further requests.")
      .def("set_reply", &Server::setReply, nb::arg("value").none(),
           nb::arg("index") = 0,
           nb::sig("def set_reply(self, value: object, index: int = 0) -> "
                   "None"),
           "Sets the reply to the request at this index of the batch. None "
           "leaves the decision to the compiler. An array is not copied "
           "before it is sent.")
      .def("set_message", &Server::setMessage, nb::arg("tensors"),
           nb::sig("def set_message(self, tensors: dict[str, typing.Any]) -> "
                   "None"),
           "Sets a training message, which may contain reserved names.")
      .def("set_error", &Server::setError, nb::arg("message"),
           nb::arg("index") = 0,
           "Sets a reply that reports a failure of the model.")
      .def("set_deferred", &Server::setDeferred, nb::arg("why"),
           nb::arg("index") = 0,
           "Sets a reply that leaves the decision to the compiler.")
      .def("send", &Server::send,
           "Sends the replies that are set, without waiting for a request.")
      .def("stop", &Server::stop,
           "Makes exchange() return None soon. Any thread may call this "
           "function.")
      .def("close", &Server::close,
           "Ends all sessions and removes the server's files.")
      .def_prop_ro("closed", &Server::isClosed)
      .def_prop_ro(
          "name", [](const Server &S) { return toStr(S.name()); },
          nb::sig("def name(self) -> str"))
      .def("client", &Server::client, nb::arg("index"),
           nb::sig("def client(self, index: int) -> tuple[int, int]"),
           "The session and the process ID of one request of the batch.")
      .def_prop_ro(
          "session", &Server::session,
          "The number of the request's session, from 1, or 0 if there is no "
          "request.")
      .def_prop_ro("pid", &Server::pid,
                   "The compiler's process ID, or 0 if it is unknown, as for a "
                   "compiler that connects without the handshake (bare mode).")
      .def_prop_ro("advice_type", &Server::adviceType,
                   "The type of advice that the session's first request "
                   "expects, or ''.")
      .def_prop_ro("bare", &Server::bare,
                   "True if the compiler uses bare mode.")
      .def_prop_ro("sessions", &Server::sessions,
                   "The number of sessions since the server started.")
      .def_prop_ro("open", &Server::open, "The number of open sessions.")
      .def_prop_ro("requests", &Server::requests,
                   "The number of requests since the server started.")
      .def_prop_ro(
          "batches", &Server::batches,
          "The number of batches of requests since the server started.")
      .def_prop_ro("refused_compilers", &Server::refusedCompilers,
                   "The number of compilers that got no session.")
      .def_prop_ro("refused_requests", &Server::refusedRequests,
                   "The number of requests that were refused because Python "
                   "cannot represent them.")
      .def_prop_ro("mistyped", &Server::mistyped,
                   "The number of replies whose type differs from the "
                   "session's advice_type.")
      .def("measure_latencies", &Server::measureLatencies,
           "Starts to measure how long requests take.")
      .def("latencies", &Server::latencies, nb::arg("quantiles"),
           nb::sig("def latencies(self, quantiles: "
                   "collections.abc.Sequence[float]) -> list[float]"),
           "Returns quantiles (0 to 1) of the time from the arrival of a "
           "request until its reply is sent, in seconds. Any thread may call "
           "this function.");
}

} // namespace MLBridge::Python
