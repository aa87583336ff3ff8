//===- MLModelRunner.cpp - A request to a model ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the parts that all runners share: requests, fatal errors, and
/// default implementations of virtual functions.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/MLModelRunner.h"

#include <cstdio>
#include <cstdlib>

using namespace MLBridge;

MLModelRunner::~MLModelRunner() = default;

Expected<Advice> MLModelRunner::ask(const FeatureSet &Features,
                                    const AdviceSpec &Wanted, Deadline Until) {
  if (Features.error())
    return Features.error();
  return evaluateUntyped(Features, Wanted, Until);
}

Expected<Advice> MLModelRunner::ask(const FeatureSet &Features,
                                    const AdviceSpec &Wanted) {
  return ask(Features, Wanted, Deadline::in(Timeout));
}

void MLModelRunner::switchContext(std::string_view) {}

Expected<std::optional<std::string>> MLModelRunner::metadata(std::string_view) {
  return std::optional<std::string>();
}

Error MLModelRunner::loadBeforeFork() { return Error::success(); }

Error MLModelRunner::logOutcomeUntyped(const TensorView *,
                                       std::optional<double>) {
  return Error::success();
}

Error MLModelRunner::flush() { return Error::success(); }

void MLModelRunner::setErrorHandler(ErrorHandler Handler) {
  OnError = std::move(Handler);
}

Error MLModelRunner::withName(const Error &E) const {
  return {E.code(), describe() + ": " + E.message()};
}

void MLModelRunner::fail(const Error &E) const {
  // Print the name only if the message does not begin with it. For example,
  // convert() has already added the name to its errors.
  const std::string Name = describe() + ": ";
  if (OnError)
    OnError(E);
  else
    std::fprintf(stderr, "error: %s%s\n",
                 E.message().starts_with(Name) ? "" : Name.c_str(),
                 E.str().c_str());
  std::exit(1);
}
