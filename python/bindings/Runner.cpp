//===- Runner.cpp - Model runners in Python ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The Python class mlbridge._core.Runner, which wraps an MLModelRunner.
///
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"
#include "Formats.h"
#include "FromPython.h"
#include "Signals.h"
#include "ToPython.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;

namespace MLBridge::Python {

namespace {

class Runner {
public:
  Runner(const nb::str &Spec, nb::handle Formats, const RunnerFactory &Factory)
      : Impl(make(toString(Spec), Formats, Factory)),
        Description(Impl->describe()) {}

  nb::object evaluate(const nb::dict &Features,
                      std::optional<std::string_view> Type, bool Many);
  void logOutcome(std::optional<nb::str> Name, nb::handle Value,
                  std::optional<double> Reward);
  void switchContext(const nb::str &Name);
  void flush();
  void close();

  nb::object describe() const { return toStr(Description); }
  double timeout();
  void setTimeout(std::optional<double> Seconds);

private:
  static std::unique_ptr<MLModelRunner>
  make(std::string_view Spec, nb::handle Formats, RunnerFactory Factory);
  MLModelRunner &open();

  std::unique_ptr<MLModelRunner> Impl;
  /// A copy of the runner's description, so that describe() works while the
  /// runner is in use or closed.
  std::string Description;
  TensorsFromPython Features{"feature"};
  UseMark InUse;
};

} // namespace

std::unique_ptr<MLModelRunner>
Runner::make(std::string_view Spec, nb::handle Formats, RunnerFactory Factory) {
  Factory.formats() = formatsWith(Formats);
  return valueOrRaise(Factory.create(Spec));
}

MLModelRunner &Runner::open() {
  if (!Impl)
    raise({ErrorCode::InvalidArgument, "this model runner is closed"});
  return *Impl;
}

double Runner::timeout() {
  ExclusiveUse Use(InUse, "this model runner");
  return std::chrono::duration<double>(open().timeout()).count();
}

void Runner::setTimeout(std::optional<double> Seconds) {
  ExclusiveUse Use(InUse, "this model runner");
  open().setTimeout(durationOf(Seconds));
}

void Runner::switchContext(const nb::str &Name) {
  ExclusiveUse Use(InUse, "this model runner");
  open().switchContext(toString(Name));
}

void Runner::flush() {
  ExclusiveUse Use(InUse, "this model runner");
  MLModelRunner &Model = open();
  Error Unwritten;
  {
    nb::gil_scoped_release Release;
    Unwritten = Model.flush();
  }
  if (Unwritten)
    raise(Unwritten);
}

void Runner::close() {
  ExclusiveUse Use(InUse, "this model runner");
  if (!Impl)
    return;
  std::unique_ptr<MLModelRunner> Closing = std::move(Impl);
  Error Unwritten;
  {
    nb::gil_scoped_release Release;
    Unwritten = Closing->flush();
    Closing.reset();
  }
  if (Unwritten)
    raise(Unwritten);
}

//===----------------------------------------------------------------------===//
// Advice
//===----------------------------------------------------------------------===//

/// Returns a scalar as a Python bool, float or int.
template <typename T> static nb::object numberObject(T Value) {
  if constexpr (std::is_same_v<T, bool>)
    return nb::bool_(Value);
  else if constexpr (std::is_floating_point_v<T>)
    return nb::float_(static_cast<double>(Value));
  else
    return nb::int_(Value);
}

template <typename T> static nb::object numbersObject(std::vector<T> Values) {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<std::uint8_t> Bytes(Values.begin(), Values.end());
    return copyArray({{},
                      ElementType::Bool,
                      {static_cast<std::int64_t>(Bytes.size())},
                      Bytes.data(),
                      Bytes.size(),
                      {}});
  } else {
    return copyArray({{},
                      *elementTypeOf<T>(),
                      {static_cast<std::int64_t>(Values.size())},
                      Values.data(),
                      Values.size() * sizeof(T),
                      {}});
  }
}

template <typename T>
static nb::object takeNumbers(const MLModelRunner &Runner, const Advice &Reply,
                              bool Many) {
  if (Many)
    return numbersObject(valueOrRaise(Runner.convert<std::vector<T>>(Reply)));
  return numberObject(valueOrRaise(Runner.convert<T>(Reply)));
}

/// Converts the advice with the functions that evaluate<T>() uses in C++.
static nb::object takeAs(const MLModelRunner &Runner, const Advice &Reply,
                         ElementType Type, bool Many) {
  switch (Type) {
  case ElementType::Int8:
    return takeNumbers<std::int8_t>(Runner, Reply, Many);
  case ElementType::Int16:
    return takeNumbers<std::int16_t>(Runner, Reply, Many);
  case ElementType::Int32:
    return takeNumbers<std::int32_t>(Runner, Reply, Many);
  case ElementType::Int64:
    return takeNumbers<std::int64_t>(Runner, Reply, Many);
  case ElementType::UInt8:
    return takeNumbers<std::uint8_t>(Runner, Reply, Many);
  case ElementType::UInt16:
    return takeNumbers<std::uint16_t>(Runner, Reply, Many);
  case ElementType::UInt32:
    return takeNumbers<std::uint32_t>(Runner, Reply, Many);
  case ElementType::UInt64:
    return takeNumbers<std::uint64_t>(Runner, Reply, Many);
  case ElementType::Float:
    return takeNumbers<float>(Runner, Reply, Many);
  case ElementType::Double:
    return takeNumbers<double>(Runner, Reply, Many);
  case ElementType::Bool:
    return takeNumbers<bool>(Runner, Reply, Many);
  case ElementType::String:
    break;
  }
  if (!Many)
    return toStr(valueOrRaise(Runner.convert<std::string>(Reply)));
  nb::list Strings;
  for (const std::string &S :
       valueOrRaise(Runner.convert<std::vector<std::string>>(Reply)))
    Strings.append(toStr(S));
  return Strings;
}

/// Converts a tensor to Python and keeps its type and shape.
static nb::object objectOf(const TensorView &Tensor) {
  return Tensor.Type == ElementType::String ? textObject(Tensor)
                                            : copyArray(Tensor);
}

nb::object Runner::evaluate(const nb::dict &Named,
                            std::optional<std::string_view> Type, bool Many) {
  ExclusiveUse Use(InUse, "this model runner");
  MLModelRunner &Model = open();
  AdviceSpec Wanted = adviceSpecOf(Type, Many);
  Features.clear();
  for (auto [Name, Value] : Named) {
    nb::object Backing;
    Features.add(toText(Name, Backing), Value);
  }
  Signals Heard;
  std::optional<Expected<Advice>> Reply;
  {
    nb::gil_scoped_release Release;
    Reply.emplace(Model.ask(Features.features(), Wanted,
                            Deadline::in(Model.timeout()).unless(Heard)));
  }
  Features.clear();
  // Rethrow even if there is a reply, because a `fallback|` runner replies
  // after an interrupt too.
  Heard.rethrow();
  Advice Outputs = valueOrRaise(std::move(*Reply));
  if (Type)
    return takeAs(Model, Outputs, Wanted.Type, Many);
  nb::dict ByName;
  for (const TensorView &Tensor : Outputs.tensors())
    ByName[toStr(Tensor.Name)] = objectOf(Tensor);
  return ByName;
}

void Runner::logOutcome(std::optional<nb::str> Name, nb::handle Value,
                        std::optional<double> Reward) {
  ExclusiveUse Use(InUse, "this model runner");
  MLModelRunner &Model = open();
  const TensorView *Decision = nullptr;
  TensorsFromPython Decided("outcome");
  nb::object Backing;
  if (Name) {
    Decided.add(toText(*Name, Backing), Value);
    Decision = &Decided.features().tensors().front();
  }
  if (Error E = Model.logOutcomeUntyped(Decision, Reward))
    raise(E);
}

//===----------------------------------------------------------------------===//
// The binding
//===----------------------------------------------------------------------===//

void bindRunner(nb::module_ &M) {
  using Scheme = RunnerFactory::Scheme;
  nb::class_<Scheme>(M, "Scheme",
                     "A scheme of model specs from an optional part of the "
                     "library.")
      .def_prop_ro("name", [](const Scheme &S) { return S.Name; })
      .def_prop_ro(
          "help", [](const Scheme &S) { return S.Help; }, "One line of help.");
  nb::class_<RunnerFactory>(M, "Factory",
                            "Makes runners, which share the in-process models "
                            "that they load.")
      .def(
          "__init__",
          [](RunnerFactory *Self, nb::handle Schemes) {
            RunnerFactory Made;
            for (nb::handle S : Schemes)
              Made.add(nb::cast<Scheme>(S));
            new (Self) RunnerFactory(std::move(Made));
          },
          nb::arg("schemes") = nb::tuple(),
          nb::sig("def __init__(self, schemes: "
                  "collections.abc.Sequence[Scheme] = ()) -> None"));
  nb::class_<Runner>(M, "Runner",
                     "Asks a model for advice. Used by one thread at a time.")
      .def(nb::init<const nb::str &, nb::handle, const RunnerFactory &>(),
           nb::arg("spec"), nb::arg("formats"), nb::arg("factory"),
           nb::sig("def __init__(self, spec: str, formats: "
                   "collections.abc.Sequence[Format], factory: Factory) -> "
                   "None"))
      .def("evaluate", &Runner::evaluate, nb::arg("features"),
           nb::arg("type").none() = nb::none(), nb::arg("many") = false,
           nb::sig("def evaluate(self, features: dict[str, typing.Any], type: "
                   "str | None = None, many: bool = False) -> typing.Any"),
           "Returns the advice for these features. Without a type, returns "
           "all outputs by name. With a type, returns the only output, or the "
           "output called 'out', as one element of this type. If many is "
           "true, returns any number of elements.")
      .def("log_outcome", &Runner::logOutcome, nb::arg("name").none(),
           nb::arg("value").none(), nb::arg("reward").none(),
           nb::sig("def log_outcome(self, name: str | None, value: object, "
                   "reward: float | None) -> None"),
           "Logs the decision that was finally made, and its reward.")
      .def("switch_context", &Runner::switchContext, nb::arg("name"),
           "Names the context of the next requests.")
      .def("flush", &Runner::flush,
           "Writes the buffered records of a recording runner.")
      .def("close", &Runner::close,
           "Flushes and ends the session. Raises the errors of flushing.")
      .def("describe", &Runner::describe, nb::sig("def describe(self) -> str"))
      .def_prop_rw("timeout", &Runner::timeout, &Runner::setTimeout,
                   nb::arg("seconds").none(),
                   "The time limit of one evaluate in seconds.");
}

} // namespace MLBridge::Python
