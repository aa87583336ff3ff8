//===- LayoutTracker.cpp - Detects whether views can be reused ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Protobuf/LayoutTracker.h"

namespace MLBridge::protobuf {

Error LayoutTracker::update(Span<const TensorView> Views,
                            std::string_view Message) {
  Expected<bool> IsNew = Last.update(Views);
  if (!IsNew) {
    ++Layout;
    Places.clear();
    Error E = IsNew.takeError();
    return {ErrorCode::Malformed, E.message()};
  }
  bool Changed = *IsNew || Places.size() != Views.size();
  Places.resize(Views.size());
  const auto Start = reinterpret_cast<std::uintptr_t>(Message.data());
  for (std::size_t I = 0; I < Views.size(); ++I) {
    auto Where = reinterpret_cast<std::uintptr_t>(Views[I].Data);
    bool IsInMessage = Where - Start < Message.size();
    Place Current{IsInMessage, IsInMessage ? Where - Start : Where,
                  Views[I].Lengths.data()};
    Changed |= !(Places[I] == Current);
    Places[I] = Current;
  }
  Layout += Changed;
  return Error::success();
}

} // namespace MLBridge::protobuf
