//===- TestEnvironment.cpp - A compiler that fails on demand --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler of tests/python/test_envs*.py. An observation consists of the
/// tensors of the last action and the number of steps. An episode ends after
/// ten steps. The episode's options, `{"at": STEP, "do": WHAT}`, determine at
/// which step the compiler fails, and how. Step 0 is the reset. With
/// `--start=WHAT`, the compiler fails before the handshake.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/EnvironmentServer.h"
#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Training/gRPCTraining.h"
#endif
#ifdef MLBRIDGE_HAS_PROTOBUF
#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"
#include "steps.pb.h"
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

using namespace MLBridge;

/// Makes the process fork, hang, spin, crash or exit.
static void misbehave(const std::string &What) {
  if (What == "fork" && ::fork() == 0)
    for (;;)
      ::pause();
  if (What == "hang" || What == "fork")
    for (;;)
      ::pause();
  if (What == "spin")
    for (volatile bool Forever = true; Forever;)
      ;
  if (What == "crash")
    (void)std::raise(SIGSEGV);
  if (What == "exit")
    std::_Exit(3);
}

namespace {

class TestEnvironment final : public Environment {
public:
  Error reset(FeatureSet &Observation) override {
    Steps = 0;
    At = -1;
    char Word[16] = "";
    if (std::sscanf(options().c_str(), R"({"at": %d, "do": "%15[^"]"})", &At,
                    Word) == 2)
      What = Word;
    if (seed())
      Seed = *seed();
    return observe({}, Observation);
  }

  Error step(const Advice &Action, FeatureSet &Observation) override {
    ++Steps;
    return observe(Action, Observation);
  }

  double reward() const override { return Steps; }

private:
  Error observe(const Advice &Action, FeatureSet &Observation) {
    if (Steps == At) {
      misbehave(What);
      if (What == "fail")
        return {ErrorCode::Model, "the pass has failed"};
      if (What == "mismatch")
        return {ErrorCode::SchemaMismatch, "no such register"};
      if (What == "nap")
        ::usleep(300'000);
      if (What == "truncate")
        setTruncated();
      if (What == "done")
        setDone();
      if (What == "underscore")
        Observation.set("_mine", 1);
      if (What == "wordy")
        Observation.set("count", "many");
      if (What == "noise")
        setInfo("not JSON");
    }
    if (Steps == 10)
      setDone();
    Observation.set("count", std::int64_t(Steps));
    Observation.set("seed", Seed);
    for (const TensorView &Tensor : Action.tensors())
      Observation.set(Tensor.Name, Tensor);
    if (Steps != At || What != "noise")
      setInfo("{\"count\": " + std::to_string(Steps) + "}");
    return Error::success();
  }

  int Steps = 0;
  int At = -1;
  std::string What;
  std::int64_t Seed = -1;
};

} // namespace

int main(int argc, char **argv) {
  const char *Spec = std::getenv("MLBRIDGE_SPEC");
  for (int I = 1; I < argc; ++I) {
    std::string Argument = argv[I];
    if (Argument.starts_with("--start="))
      misbehave(Argument.substr(8));
    else
      Spec = argv[I];
  }
  if (!Spec)
    return 2;
  TestEnvironment Env;
  EnvironmentServer Server;
#ifdef MLBRIDGE_HAS_GRPC
  addGRPC(Server);
#endif
#ifdef MLBRIDGE_HAS_PROTOBUF
  addProtobuf<::test::StepObservation, ::test::StepAction>(Server.formats());
#endif
  if (Error E = Server.serve(Env, Spec)) {
    std::fprintf(stderr, "test environment: %s\n", E.str().c_str());
    return 1;
  }
}
