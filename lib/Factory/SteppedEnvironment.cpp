//===- SteppedEnvironment.cpp - Episodes inside a running pass ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the switching between the two threads. The threads share one
/// lock, and a variable states which thread may run.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/SteppedEnvironment.h"

#include "MLCompilerBridge/Training/EnvironmentServer.h"

#include <condition_variable>
#include <mutex>
#include <pthread.h>

using namespace MLBridge;

struct SteppedEnvironment::State {
  /// Lets the other thread run, and waits for this thread's next turn.
  void yieldTo(std::unique_lock<std::mutex> &Lock, bool ToCompiler) {
    CompilersTurn = ToCompiler;
    Changed.notify_all();
    Changed.wait(Lock, [&] { return CompilersTurn != ToCompiler || IsOver(); });
  }
  bool IsOver() const { return TrainerLeft || Stopped; }

  std::mutex Mutex;
  std::condition_variable Changed;
  bool CompilersTurn = true;
  /// True if the trainer has sent reset but the compiler has not begun the
  /// episode.
  bool ResetPending = false;
  bool InEpisode = false;
  bool TrainerLeft = false;
  /// If this is an error, all further commands return it.
  Error Stopped;
  /// The trainer's current command: where to write the observation, the action
  /// to execute, and the reward and the error to return.
  FeatureSet *Into = nullptr;
  const Advice *Action = nullptr;
  double Reward = 0;
  Error Failure;

  std::string Spec;
  bool HasThread = false;
  pthread_t Thread{};
  Error Result;
};

SteppedEnvironment::SteppedEnvironment() : S(std::make_unique<State>()) {}

SteppedEnvironment::~SteppedEnvironment() {
  if (!S->HasThread)
    return;
  stop({ErrorCode::PeerClosed, "the compiler has finished"});
  ::pthread_join(S->Thread, nullptr);
}

Error SteppedEnvironment::serve(std::string_view Spec) {
  S->Spec = Spec;
  const int Why = ::pthread_create(
      &S->Thread, nullptr,
      [](void *Self) -> void * {
        auto &Env = *static_cast<SteppedEnvironment *>(Self);
        Error Result = serveEnvironment(Env, std::string_view(Env.S->Spec));
        const std::scoped_lock Lock(Env.S->Mutex);
        Env.S->Result = std::move(Result);
        Env.S->TrainerLeft = true;
        Env.S->CompilersTurn = true;
        Env.S->Changed.notify_all();
        return nullptr;
      },
      this);
  if (Why != 0)
    return Error::fromErrno(Why, "cannot start the thread of an environment");
  S->HasThread = true;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The compiler's thread
//===----------------------------------------------------------------------===//

bool SteppedEnvironment::waitForReset() {
  std::unique_lock Lock(S->Mutex);
  S->InEpisode = false;
  S->Changed.wait(Lock, [&] { return S->ResetPending || S->IsOver(); });
  if (S->IsOver())
    return false;
  S->ResetPending = false;
  S->InEpisode = true;
  return true;
}

const Advice *SteppedEnvironment::act(const Observer &Observe,
                                      std::string Agent, double Reward) {
  std::unique_lock Lock(S->Mutex);
  if (!S->InEpisode || S->IsOver())
    return nullptr;
  Observe(*S->Into);
  setNextAgent(std::move(Agent));
  S->Reward = Reward;
  S->Action = nullptr;
  S->yieldTo(Lock, /*ToCompiler=*/false);
  if (S->ResetPending || S->IsOver()) {
    S->InEpisode = false;
    return nullptr;
  }
  return S->Action;
}

void SteppedEnvironment::endEpisode(double Reward, const Observer &Observe,
                                    std::string Info) {
  const std::scoped_lock Lock(S->Mutex);
  if (!S->InEpisode || S->IsOver())
    return;
  Observe(*S->Into);
  S->Reward = Reward;
  setInfo(std::move(Info));
  setDone();
  S->InEpisode = false;
  S->CompilersTurn = false;
  S->Changed.notify_all();
}

void SteppedEnvironment::failEpisode(Error Why) {
  const std::scoped_lock Lock(S->Mutex);
  if (!S->InEpisode || S->IsOver())
    return;
  S->Failure = std::move(Why);
  S->InEpisode = false;
  S->CompilersTurn = false;
  S->Changed.notify_all();
}

void SteppedEnvironment::stop(Error Why) {
  const std::scoped_lock Lock(S->Mutex);
  if (!S->Stopped)
    S->Stopped = std::move(Why);
  S->Changed.notify_all();
}

Error SteppedEnvironment::result() const {
  const std::scoped_lock Lock(S->Mutex);
  return S->Result;
}

//===----------------------------------------------------------------------===//
// The thread that serves the trainer
//===----------------------------------------------------------------------===//

Error SteppedEnvironment::reset(FeatureSet &Observation) {
  std::unique_lock Lock(S->Mutex);
  if (S->Stopped)
    return S->Stopped;
  S->ResetPending = true;
  S->Into = &Observation;
  S->Failure = Error::success();
  S->yieldTo(Lock, /*ToCompiler=*/true);
  return S->Stopped ? S->Stopped : S->Failure;
}

Error SteppedEnvironment::step(const Advice &Action, FeatureSet &Observation) {
  std::unique_lock Lock(S->Mutex);
  if (S->Stopped)
    return S->Stopped;
  S->Action = &Action;
  S->Into = &Observation;
  S->Failure = Error::success();
  S->yieldTo(Lock, /*ToCompiler=*/true);
  return S->Stopped ? S->Stopped : S->Failure;
}

double SteppedEnvironment::reward() const {
  const std::scoped_lock Lock(S->Mutex);
  return S->Reward;
}
