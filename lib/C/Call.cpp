//===- Call.cpp - Statuses and messages -----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"

#include "MLCompilerBridge/Version.h"

#include <string>

using namespace MLBridge;

static_assert(int(ErrorCode::Success) == MLBridgeStatusSuccess &&
              int(ErrorCode::Timeout) == MLBridgeStatusTimeout &&
              int(ErrorCode::PeerClosed) == MLBridgeStatusPeerClosed &&
              int(ErrorCode::Malformed) == MLBridgeStatusMalformed &&
              int(ErrorCode::SchemaMismatch) == MLBridgeStatusSchemaMismatch &&
              int(ErrorCode::Model) == MLBridgeStatusModel &&
              int(ErrorCode::Unsupported) == MLBridgeStatusUnsupported &&
              int(ErrorCode::System) == MLBridgeStatusSystem &&
              int(ErrorCode::InvalidArgument) ==
                  MLBridgeStatusInvalidArgument &&
              int(ErrorCode::Deferred) == MLBridgeStatusDeferred);

static C::LastMessage &ofThisThread() {
  static thread_local C::LastMessage Last;
  return Last;
}

const char *C::lastMessage() noexcept {
  const LastMessage &Last = ofThisThread();
  return Last.NoMemory ? "memory has run out" : Last.Text.c_str();
}

void C::setLastMessage(const char *Message) noexcept {
  LastMessage &Last = ofThisThread();
  try {
    // Copy Message before Text changes, because Message may point into Text.
    Last.Text = std::string(Message ? Message : "");
    Last.NoMemory = false;
  } catch (...) {
    Last.NoMemory = true;
  }
}

C::LastMessage C::takeLastMessage() noexcept {
  return std::exchange(ofThisThread(), {});
}

void C::giveBack(LastMessage Earlier) noexcept {
  if (LastMessage &Last = ofThisThread(); Last.Text.empty() && !Last.NoMemory)
    Last = std::move(Earlier);
}

MLBridgeStatus C::report(const Error &E) noexcept {
  if (E)
    setLastMessage(E.message().c_str());
  return static_cast<MLBridgeStatus>(E.code());
}

MLBridgeStatus C::reportNoMemory() noexcept {
  ofThisThread().NoMemory = true;
  return MLBridgeStatusSystem;
}

Error C::isNull(const char *Parameter) {
  return {ErrorCode::InvalidArgument,
          "'" + std::string(Parameter) + "' is null"};
}

Error C::checkSize(std::size_t Found, std::size_t Known) {
  if (Found == Known)
    return Error::success();
  return {Found < Known ? ErrorCode::InvalidArgument : ErrorCode::Unsupported,
          "expected Callbacks->Size to be " + std::to_string(Known) +
              " (sizeof in this library's header), found " +
              std::to_string(Found)};
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

const char *mlbridgeGetVersion(void) { return MLBRIDGE_VERSION; }

const char *mlbridgeGetStatusName(MLBridgeStatus Status) {
  // The names are string literals, so they end with a NUL.
  return errorCodeName(static_cast<ErrorCode>(Status)).data();
}

const char *mlbridgeGetLastErrorMessage(void) { return C::lastMessage(); }

MLBridgeStatus mlbridgeFail(MLBridgeStatus Status, const char *Message) {
  C::setLastMessage(Message);
  return Status;
}
