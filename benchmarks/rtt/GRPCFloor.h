//===- GRPCFloor.h - The floor of a call by gRPC ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GRPCFloor makes the fastest possible calls through gRPC, for comparison with
/// the gRPC runner. It sends the same bytes as the runner and, like a user's
/// own stub, uses gRPC's synchronous API with default settings. Messages are
/// plain bytes, so no time is spent in Protobuf. RttClient.cpp uses the
/// client's end. GRPCFloorServer.cpp and the Python module
/// mlbridge_benchmarks.rtt.peers implement the model's end.
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
  /// Sends \p Features and receives \p Reply. Returns false if the call fails.
  virtual bool ask(Span<const float> Features, float &Reply) = 0;

  /// Connects to a server at \p Address. If \p IsStream is true, all requests
  /// use one stream. Otherwise, each request is a unary call. Returns null if
  /// no server listens within a minute.
  static std::unique_ptr<GRPCFloor> connect(const std::string &Address,
                                            bool IsStream);
};

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_GRPCFLOOR_H
