//===- GRPCFloor.h - What a call by gRPC costs ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The floor that the gRPC runner is held against: the same bytes by gRPC's
/// synchronous API and its default settings, and nothing else, as a user's own
/// stub would send them. Messages are bytes, so that no time goes into
/// Protobuf. The client's end is used by RttClient.cpp, the model's by
/// GRPCFloorServer.cpp and, in Python, by mlbridge_benchmarks.rtt.peers.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_GRPCFLOOR_H
#define MLCOMPILERBRIDGE_BENCHMARKS_GRPCFLOOR_H

#include "MLCompilerBridge/Span.h"

#include <memory>
#include <string>

namespace MLBridge::bench {

namespace GRPCFloorMethod {
inline constexpr char Stream[] = "/floor.Floor/stream";
inline constexpr char Unary[] = "/floor.Floor/unary";
} // namespace GRPCFloorMethod

class GRPCFloor {
public:
  virtual ~GRPCFloor() = default;
  /// Sends \p Features, and returns the answer to them; false when there is
  /// none.
  virtual bool ask(Span<const float> Features, float &Reply) = 0;

  /// A floor whose server listens at \p Address, by one stream or by unary
  /// calls; null where none does within a minute.
  static std::unique_ptr<GRPCFloor> connect(const std::string &Address,
                                            bool IsStream);
};

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_GRPCFLOOR_H
