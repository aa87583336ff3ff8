//===- GRPCCompletions.h - What a caller waits for --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Completions: the operations that the compiler's end has under way, and the
/// one place where it waits for them. The thread that waits is the one that
/// polls the connection: handing an answer over from a thread of gRPC's own
/// would cost another wake-up a request.
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
  /// Each is under way once at most.
  enum Operation : unsigned { Watch, Start, Read, Write, Finish };

  ~Completions();

  grpc::CompletionQueue *queue() { return &Queue; }
  /// The tag of an operation that is started with it.
  void *begin(Operation Which) {
    Pending |= bit(Which);
    Well &= ~bit(Which);
    // A tag is any number, which gRPC has as a pointer.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void *>(std::uintptr_t(Which));
  }
  bool isPending(Operation Which) const { return (Pending & bit(Which)) != 0; }
  /// Whether it went well, once it is not pending.
  bool wentWell(Operation Which) const { return (Well & bit(Which)) != 0; }

  /// Waits until it is not pending; false when \p Until passes before.
  bool wait(Operation Which, Deadline Until);
  /// The same, spinning for a while where that has paid of late.
  bool waitForPeer(Operation Which, Deadline Until);
  /// Takes what has completed, without waiting.
  void poll();
  /// Waits until none is pending; false when \p Until passes before. What has
  /// been cancelled completes on this side, whatever the network does; but one
  /// that gRPC is writing to a full connection waits for its peer.
  bool drain(Deadline Until);

private:
  static unsigned bit(Operation Which) { return 1U << Which; }
  /// Waits for the next one that completes.
  bool take(gpr_timespec Until);

  grpc::CompletionQueue Queue;
  unsigned Pending = 0;
  unsigned Well = 0;
  AdaptiveWait Spin;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCOMPLETIONS_H
