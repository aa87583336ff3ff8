//===- GRPCCompletions.h - The pending operations of a client ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Completions: the pending operations of the compiler's end, and how it waits
/// for them. The waiting thread itself polls the connection: passing the reply
/// from another thread would cost one more wake-up per request.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCCOMPLETIONS_H
#define MLBRIDGE_LIB_GRPC_GRPCCOMPLETIONS_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Transport/AdaptiveWait.h"

#include <cstdint>
#include <grpcpp/completion_queue.h>

namespace MLBridge::GRPC {

class Completions {
public:
  /// The operations. Each can be pending at most once.
  enum Operation : unsigned { Watch, Start, Read, Write, Finish };

  ~Completions();

  grpc::CompletionQueue *queue() { return &Queue; }
  /// Marks \p Which as pending, and returns the tag to start it with.
  void *begin(Operation Which) {
    Pending |= bit(Which);
    Succeeded &= ~bit(Which);
    // gRPC passes tags as pointers but does not interpret them.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void *>(std::uintptr_t(Which));
  }
  bool isPending(Operation Which) const { return (Pending & bit(Which)) != 0; }
  /// Whether \p Which succeeded. Call this once it is no longer pending.
  bool hasSucceeded(Operation Which) const {
    return (Succeeded & bit(Which)) != 0;
  }

  /// Waits until \p Which is complete; false if \p Until passes first.
  bool wait(Operation Which, Deadline Until);
  /// The same, but spins first if that has lately been successful.
  bool waitForPeer(Operation Which, Deadline Until);
  /// Processes completed operations without waiting.
  void poll();
  /// Waits until all operations are complete; false if \p Until passes first.
  /// Cancelled operations complete locally, independent of the network, except
  /// for one that gRPC is writing to a full connection: it waits for the peer.
  bool drain(Deadline Until);

private:
  static unsigned bit(Operation Which) { return 1U << Which; }
  /// Processes the next completion; false if \p Until passes first.
  bool take(gpr_timespec Until);

  grpc::CompletionQueue Queue;
  unsigned Pending = 0;
  unsigned Succeeded = 0;
  AdaptiveWait Spin;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCOMPLETIONS_H
