//===- GRPCCompletions.h - The pending operations of a client ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Completions: the compiler's pending gRPC operations. The thread that waits
/// for an operation polls the connection itself. If another thread polled it
/// and passed the reply on, each request would need one more wake-up.
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
  /// The kinds of operations. At most one operation of each kind can be
  /// pending.
  enum Operation : unsigned { Watch, Start, Read, Write, Finish };

  ~Completions();

  grpc::CompletionQueue *queue() { return &Queue; }
  /// Marks the operation \p Which as pending. Returns the tag with which the
  /// caller must start it.
  void *begin(Operation Which) {
    Pending |= bit(Which);
    Succeeded &= ~bit(Which);
    // gRPC passes tags as pointers but does not interpret them.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void *>(std::uintptr_t(Which));
  }
  bool isPending(Operation Which) const { return (Pending & bit(Which)) != 0; }
  /// Returns true if the operation \p Which succeeded. Call this only when the
  /// operation is no longer pending.
  bool hasSucceeded(Operation Which) const {
    return (Succeeded & bit(Which)) != 0;
  }

  /// Waits until the operation \p Which is complete. Returns false if \p Until
  /// passes first.
  bool wait(Operation Which, Deadline Until);
  /// Waits like wait(), but first polls without sleeping if polling has been
  /// successful lately.
  bool waitForPeer(Operation Which, Deadline Until);
  /// Processes completed operations without waiting.
  void poll();
  /// Waits until all operations are complete. Returns false if \p Until passes
  /// first. A cancelled operation usually completes without the network.
  /// However, if gRPC is writing a message to a full connection, the operation
  /// completes only when the peer reads.
  bool drain(Deadline Until);

private:
  static unsigned bit(Operation Which) { return 1U << Which; }
  /// Processes the next completion. Returns false if \p Until passes first.
  bool take(gpr_timespec Until);

  grpc::CompletionQueue Queue;
  unsigned Pending = 0;
  unsigned Succeeded = 0;
  AdaptiveWait Spin;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCOMPLETIONS_H
