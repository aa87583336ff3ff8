//===- EnvironmentServer.cpp - Serves an environment at a spec ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/EnvironmentServer.h"

#include "Core/AddByName.h"
#include "Core/InvalidSpec.h"
#include "Factory/ComponentSchemes.h"
#include "Factory/InterProcessSpec.h"
#include "Factory/ModuleLoader.h"
#include "Support/PrintableText.h"

using namespace MLBridge;

Error MLBridge::serveEnvironment(Environment &Env, std::string_view Spec) {
  return EnvironmentServer().serve(Env, Spec);
}

Error MLBridge::serveEnvironment(Environment &Env, const char *Spec) {
  return EnvironmentServer().serve(Env, Spec);
}

static Error serveInterProcess(Environment &Env, std::string_view Text,
                               const SerDesFactory &Formats) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();
  if (Error E = checkInterProcess(*Spec))
    return E;
  Expected<InterProcessParts> Parts = makeInterProcess(*Spec, Formats);
  if (!Parts)
    return Parts.takeError();
  EnvironmentOptions Options;
  Options.ConnectTimeout = Parts->Options.ConnectTimeout;
  Expected<Duration> Timeout =
      Spec->duration("timeout", Options.CommandTimeout);
  if (!Timeout)
    return Timeout.takeError();
  Options.CommandTimeout = *Timeout;
  return serveEnvironment(Env, *Parts->Channel, *Parts->Codec, Options);
}

EnvironmentServer::EnvironmentServer() {
  for (const InterProcessScheme &Known : interProcessSchemes())
    add({std::string(Known.Name), serveInterProcess});
}

void EnvironmentServer::add(Scheme NewScheme) {
  addByName(Schemes, std::move(NewScheme));
}

const EnvironmentServer::Scheme *
EnvironmentServer::find(std::string_view Name) const {
  for (const Scheme &S : Schemes)
    if (S.Name == Name)
      return &S;
  return nullptr;
}

/// Returns the error for a missing or empty spec. The message explains how to
/// start a program that serves an environment.
static Error noTrainer(const char *Found) {
  return {
      ErrorCode::InvalidArgument,
      std::string("the spec of the trainer is ") + Found +
          ": the trainer starts this program, and sets MLBRIDGE_SPEC for it "
          "(Python: mlbridge.envs.CompilerEnv([PROGRAM], ...)); to start it "
          "by hand, set MLBRIDGE_SPEC to the spec of a trainer that "
          "listens, such as shm:/tmp/trainer"};
}

Error EnvironmentServer::serve(Environment &Env, const char *Text) const {
  if (!Text)
    return noTrainer("missing");
  return serve(Env, std::string_view(Text));
}

Error EnvironmentServer::serve(Environment &Env, std::string_view Text) const {
  if (Text.empty())
    return noTrainer("empty");
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();
  if (!Spec->Inner.empty())
    return invalidSpec(Text, "expected only a trainer, found '|" +
                                 printable(Spec->Inner) + "'");
  if (const Scheme *Found = find(Spec->Scheme))
    return Found->Serve(Env, Text, Formats);
  Expected<const RunnerModule *> Module = modules::loadModule(Spec->Scheme);
  if (!Module)
    return Module.takeError();
  if (*Module && (*Module)->AddTraining) {
    EnvironmentServer WithModule = *this;
    (*Module)->AddTraining(WithModule);
    if (const Scheme *Found = WithModule.find(Spec->Scheme))
      return Found->Serve(Env, Text, Formats);
  }
  std::string Known;
  for (const Scheme &S : Schemes)
    Known += (Known.empty() ? "" : ", ") + S.Name;
  Error Unknown =
      invalidSpec(Text, "expected a trainer at " + Known + ", found '" +
                            printable(Spec->Scheme) + "'");
  if (*Module || !isComponentScheme(Spec->Scheme))
    return Unknown;
  return {ErrorCode::Unsupported, std::string(Unknown.message()) + "; found " +
                                      modules::describeMissing(Spec->Scheme)};
}
