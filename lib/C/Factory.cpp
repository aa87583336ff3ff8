//===- Factory.cpp - Factories, and runners written in C ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"
#include "C/CreateRunner.h"
#include "C/Handles.h"
#include "C/Schemes.h"
#include "Core/InvalidSpec.h"
#include "MLCompilerBridge/Extend/AOTSchemes.h"
#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;
using namespace MLBridge::C;

struct MLBridgeOpaqueRunnerFactory {
  RunnerFactory Factory;
  /// The models of the scheme `builtin`.
  std::vector<const MLBridgeAOTModel *> Models;
};

//===----------------------------------------------------------------------===//
// A runner written in C
//===----------------------------------------------------------------------===//

namespace {

class CallbackModelRunner final : public MLModelRunner {
public:
  CallbackModelRunner(const MLBridgeRunnerCallbacks &Callbacks, void *User,
                      std::string Name)
      : Callbacks(Callbacks), Self(User), Name(std::move(Name)) {}
  ~CallbackModelRunner() override {
    if (Callbacks.Dispose && IsOpen)
      Callbacks.Dispose(Self);
  }

  /// Calls the user's Create. The constructor does not call Create, because an
  /// exception in a constructor would skip the destructor, which calls Dispose.
  Error open(const ModelSpec &Spec) {
    if (Callbacks.Create) {
      void *User = Self;
      Error E = callUser("Create", [&] {
        return Callbacks.Create(User, Spec.Path.c_str(), &Self);
      });
      if (E)
        return {E.code(), Name + ": " + E.message()};
    }
    IsOpen = true;
    return Error::success();
  }

  std::string describe() const override { return Name; }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &,
                                   Deadline Until) override {
    Request.reset(Advice(Features.tensors()));
    Reply.clear();
    Error E = callUser("Evaluate", [&] {
      return Callbacks.Evaluate(Self, &Request, Until.remaining().count(),
                                &Reply);
    });
    if (E || Reply.Misuse) {
      const Error &Why = E ? E : Reply.Misuse;
      return Error(Why.code(), Name + ": " + Why.message());
    }
    return Advice(ReplySet.tensors());
  }

private:
  MLBridgeRunnerCallbacks Callbacks;
  void *Self;
  bool IsOpen = false;
  std::string Name;
  MLBridgeOpaqueAdvice Request;
  FeatureSet ReplySet;
  MLBridgeOpaqueFeatureSet Reply{ReplySet, {}};
};

/// The scheme that mlbridgeAddScheme() adds for Callbacks.
struct CallbackScheme {
  MLBridgeRunnerCallbacks Callbacks;
  void *User;

  Error check(const ModelSpec &Spec) const {
    if (!Callbacks.Create && !Spec.Path.empty())
      return invalidSpec(Spec, "'" + Spec.Scheme + "' takes no path");
    return Spec.checkOptions({});
  }

  Expected<std::unique_ptr<MLModelRunner>> make(const ModelSpec &Spec) const {
    std::string Name =
        Spec.Path.empty() ? Spec.Scheme : Spec.Scheme + ":" + Spec.Path;
    auto Runner =
        std::make_unique<CallbackModelRunner>(Callbacks, User, std::move(Name));
    if (Error E = Runner->open(Spec))
      return E;
    return Runner;
  }
};

} // namespace

/// Returns whether \p Name can precede the colon of a spec.
static bool isSchemeName(std::string_view Name) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Name);
  return Spec && !Name.empty() && Spec->Scheme == Name;
}

MLBridgeStatus mlbridgeAddScheme(MLBridgeRunnerFactoryRef Factory,
                                 const char *Name, const char *Help,
                                 const MLBridgeRunnerCallbacks *Callbacks,
                                 void *User) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    if (!Name)
      return isNull("Name");
    if (!Callbacks)
      return isNull("Callbacks");
    if (Error E = checkSize(Callbacks->Size, sizeof(*Callbacks)))
      return E;
    if (!Callbacks->Evaluate)
      return isNull("Callbacks->Evaluate");
    if (!isSchemeName(Name))
      return {ErrorCode::InvalidArgument,
              "'" + std::string(Name) + "' is not a valid scheme name"};
    const CallbackScheme Scheme{*Callbacks, User};
    Factory->Factory.add(
        {Name, Help ? Help : "",
         [Scheme](const ModelSpec &Spec, const RunnerFactory &) {
           return Scheme.make(Spec);
         },
         /*IsDecorator=*/false,
         [Scheme](const ModelSpec &Spec) { return Scheme.check(Spec); }});
    return Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Factories
//===----------------------------------------------------------------------===//

MLBridgeStatus mlbridgeCreateRunnerFactory(MLBridgeRunnerFactoryRef *Factory) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    *Factory = new MLBridgeOpaqueRunnerFactory{makeRunnerFactory(), {}};
    return Error::success();
  });
}

void mlbridgeDisposeRunnerFactory(MLBridgeRunnerFactoryRef Factory) {
  delete Factory;
}

MLBridgeStatus mlbridgeAddBuiltinModel(MLBridgeRunnerFactoryRef Factory,
                                       const MLBridgeAOTModel *Model) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    if (!Model)
      return isNull("Model");
    if (Error E = wrapAOTModel(*Model, "'Model'").takeError())
      return E;
    const std::string_view Name = Model->name;
    if (std::ranges::find(Factory->Models, Name, &MLBridgeAOTModel::name) !=
        Factory->Models.end())
      return {ErrorCode::InvalidArgument,
              "expected each builtin model once, found '" + printable(Name) +
                  "' again"};
    std::vector<const MLBridgeAOTModel *> Models = Factory->Models;
    Models.push_back(Model);
    Factory->Factory.add(builtinScheme(Models));
    Factory->Models = std::move(Models);
    return Error::success();
  });
}

size_t mlbridgeGetNumSchemes(MLBridgeRunnerFactoryRef Factory) {
  return Factory ? Factory->Factory.schemes().size() : 0;
}

MLBridgeStatus mlbridgeGetSchemeAt(MLBridgeRunnerFactoryRef Factory,
                                   size_t Index, const char **Name,
                                   const char **Help) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    const Span<const RunnerFactory::Scheme> Schemes =
        Factory->Factory.schemes();
    if (Index >= Schemes.size())
      return {ErrorCode::InvalidArgument,
              "expected an index below " + std::to_string(Schemes.size()) +
                  ", found " + std::to_string(Index)};
    if (Name)
      *Name = Schemes[Index].Name.c_str();
    if (Help)
      *Help = Schemes[Index].Help.c_str();
    return Error::success();
  });
}

MLBridgeStatus mlbridgeSetConnectTimeout(MLBridgeRunnerFactoryRef Factory,
                                         int64_t Nanoseconds) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    if (Nanoseconds < 0)
      return negativeTime(Nanoseconds);
    Factory->Factory.setConnectTimeout(Duration(Nanoseconds));
    return Error::success();
  });
}

MLBridgeStatus
mlbridgeCreateModelRunnerWithFactory(MLBridgeRunnerFactoryRef Factory,
                                     const char *Spec,
                                     MLBridgeModelRunnerRef *Runner) {
  return call([&]() -> Error {
    return Factory ? createRunner(Factory->Factory, Spec, Runner)
                   : isNull("Factory");
  });
}

MLBridgeStatus
mlbridgeCheckModelSpecWithFactory(MLBridgeRunnerFactoryRef Factory,
                                  const char *Spec) {
  return call([&]() -> Error {
    if (!Factory)
      return isNull("Factory");
    return Spec ? Factory->Factory.check(Spec) : isNull("Spec");
  });
}
