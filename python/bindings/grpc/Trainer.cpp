//===- Trainer.cpp - The trainer's end over gRPC --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"

#include "../Bindings.h"
#include "../Errors.h"
#include "../FromPython.h"
#include "../Signals.h"
#include "../ToPython.h"

#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Training/gRPCTraining.h"
#include "Session/SendMessage.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;

using namespace MLBridge;
using namespace MLBridge::Python;

namespace {

/// The Python class mlbridge._grpc.Trainer. Only one thread at a time may use
/// an object.
class Trainer {
public:
  Trainer(const nb::str &Spec, nb::handle Formats);

  void connect(std::optional<double> Timeout);
  void send(const nb::dict &Message);
  /// Returns the next message, or None after \p Timeout seconds. A later call
  /// can still receive the message.
  nb::object receive(std::optional<double> Timeout);
  void close();
  bool isUnary() const {
    return Parts.Options.Style == gRPCOptions::Call::Unary;
  }

private:
  std::string Spec;
  gRPCParts Parts;
  std::unique_ptr<Transport> Channel;
  TensorsFromPython Tensors{"message"};
  UseMark InUse;
};

} // namespace

static constexpr std::string_view What = "this trainer's channel";

SerDesFactory Python::formatsOf(nb::handle Formats) {
  SerDesFactory All;
  for (nb::handle One : Formats)
    All.add(nb::cast<SerDesFactory::Format>(One));
  return All;
}

Trainer::Trainer(const nb::str &Text, nb::handle Formats)
    : Spec(toString(Text)),
      Parts(valueOrRaise(
          parseGRPC(Spec, formatsOf(Formats), SerDes::Side::Model))),
      Channel(createGRPCTrainerTransport(Parts.Address, Parts.Options)) {}

void Trainer::connect(std::optional<double> Timeout) {
  ExclusiveUse Use(InUse, What);
  Signals Heard;
  Deadline Until = Deadline::in(durationOf(Timeout)).unless(Heard);
  SessionRequest Request;
  Request.SerDes = Parts.Codec->name();
  Request.Peer = PeerRole::Compiler;
  Error Failure;
  {
    nb::gil_scoped_release Release;
    Failure = Channel->connect(Request, Until).takeError();
  }
  Heard.rethrow();
  if (Failure)
    raise(Failure);
}

void Trainer::send(const nb::dict &Message) {
  ExclusiveUse Use(InUse, What);
  Tensors.clear();
  for (auto [Name, Value] : Message) {
    nb::object Backing;
    Tensors.add(toText(Name, Backing), Value);
  }
  Signals Heard;
  Error Failure;
  {
    nb::gil_scoped_release Release;
    Failure = sendMessage(*Parts.Codec, *Channel, Tensors.features().tensors(),
                          Deadline::never().unless(Heard));
  }
  Tensors.clear();
  Heard.rethrow();
  if (Failure)
    raise(Failure);
}

nb::object Trainer::receive(std::optional<double> Timeout) {
  ExclusiveUse Use(InUse, What);
  Signals Heard;
  Deadline Until = Deadline::in(durationOf(Timeout)).unless(Heard);
  std::optional<Expected<Span<const std::byte>>> Message;
  {
    nb::gil_scoped_release Release;
    Message.emplace(Channel->receive(Until));
  }
  Heard.rethrow();
  if (Message->code() == ErrorCode::Timeout)
    return nb::none();
  Span<const std::byte> Bytes = valueOrRaise(std::move(*Message));
  nb::dict ByName;
  // Read the message as a request, so that an `_error` of the environment is
  // returned as a tensor and does not fail the decoding.
  for (const TensorView &Tensor :
       valueOrRaise(Parts.Codec->deserializeRequest(Bytes)))
    ByName[toStr(Tensor.Name)] = Tensor.Type == ElementType::String
                                     ? textObject(Tensor)
                                     : copyArray(Tensor);
  return ByName;
}

void Trainer::close() {
  ExclusiveUse Use(InUse, What);
  nb::gil_scoped_release Release;
  Channel->close();
}

void Python::bindTrainer(nb::module_ &M) {
  nb::class_<Trainer>(M, "Trainer",
                      "The trainer's end of a session with a compiler that "
                      "serves an environment. Used by one thread at a time.")
      .def(nb::init<const nb::str &, nb::handle>(), nb::arg("spec"),
           nb::arg("formats"),
           nb::sig("def __init__(self, spec: str, formats: "
                   "collections.abc.Sequence[mlbridge._core.Format]) -> None"))
      .def("connect", &Trainer::connect, nb::arg("timeout").none() = nb::none(),
           "Connects to the compiler within timeout seconds.")
      .def("send", &Trainer::send, nb::arg("message"),
           nb::sig("def send(self, message: dict[str, typing.Any]) -> None"),
           "Sends a message.")
      .def("receive", &Trainer::receive, nb::arg("timeout").none() = nb::none(),
           nb::sig("def receive(self, timeout: float | None = None) -> "
                   "dict[str, typing.Any] | None"),
           "Returns the tensors of the next message by name, or None after "
           "timeout seconds.")
      .def("close", &Trainer::close, "Ends the session.")
      .def_prop_ro("unary", &Trainer::isUnary,
                   "True if the compiler sends messages only as replies.");
}
