//===- AdvisorModel.cpp - A model that advises greedy ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opens the session of an advisor's model and counts the model's decisions.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AdvisorModel.h"

#include "RegAlloc/AdvisorFeatures.h"
#include "Support/ModelRunnerAdapter.h"
#include "Support/Options.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {

static StringRef nameOf(AdvisorKind Kind) {
  return Kind == AdvisorKind::Eviction ? "mlbridge-eviction"
                                       : "mlbridge-priority";
}

std::unique_ptr<AdvisorModel> AdvisorModel::open(AdvisorKind Kind,
                                                 StringRef Spec, Module &M) {
  std::unique_ptr<ModelSession> Session =
      ModelSession::open(nameOf(Kind), Spec, M);
  if (!Session)
    return nullptr;
  return std::unique_ptr<AdvisorModel>(
      new AdvisorModel(Kind, M, std::move(Session)));
}

AdvisorModel::AdvisorModel(AdvisorKind Kind, Module &M,
                           std::unique_ptr<ModelSession> Opened)
    : Session(std::move(Opened)),
      Adapter(std::make_unique<ModelRunnerAdapter>(
          M.getContext(), Session->runner(),
          Kind == AdvisorKind::Eviction ? EvictionFeatures::specs()
                                        : PriorityFeatures::specs(),
          Kind == AdvisorKind::Eviction ? EvictionFeatures::advice()
                                        : PriorityFeatures::advice(),
          M.getModuleIdentifier())) {}

AdvisorModel::~AdvisorModel() {
  if (!printStatistics())
    return;
  using Microseconds = std::chrono::duration<double, std::micro>;
  const std::uint64_t Requests = Session->requests();
  std::string Line = Session->statistics();
  if (Compared != 0)
    Line += formatv(" compared={0} differing={1}", Compared, Differing);
  if (Requests != 0)
    Line += formatv(" first_us={0:F1}", Microseconds(First).count());
  if (Requests > 1)
    Line += formatv(" mean_us={0:F2}",
                    Microseconds(Others).count() / double(Requests - 1));
  printLine(Line);
}

bool AdvisorModel::comparesWithDefault() const {
  return OnlyCompares || printStatistics();
}

void AdvisorModel::load() {
  if (Error E = Session->runner().loadBeforeFork())
    Session->countUndecided(E);
}

template <typename T> std::optional<T> AdvisorModel::request() {
  const auto Begin = std::chrono::steady_clock::now();
  Expected<T> Reply = Adapter->tryEvaluate<T>();
  (Session->requests() == 0 ? First : Others) +=
      std::chrono::steady_clock::now() - Begin;
  Session->countRequest();
  if (Reply)
    return *Reply;
  Session->countUndecided(Reply.takeError());
  return std::nullopt;
}

template <typename T>
void AdvisorModel::decided(T Decision, std::optional<T> Default) {
  if (Default) {
    ++Compared;
    Differing += *Default != Decision;
    Agrees &= *Default == Decision;
  }
  if (Error E = Adapter->logOutcome<T>(Decision))
    Session->fail(E);
}

void AdvisorModel::refuse(const std::string &Why) {
  Session->countUndecided(
      {ErrorCode::Model, Session->runner().describe() + ": " + Why});
}

template std::optional<std::int64_t> AdvisorModel::request();
template std::optional<float> AdvisorModel::request();
template void AdvisorModel::decided(std::int64_t, std::optional<std::int64_t>);
template void AdvisorModel::decided(float, std::optional<float>);

} // namespace MLBridge
