//===- SharedRegion.h - One direction of a session --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SharedRegion: shared memory for one message at a time. One side writes the
/// message and the other side reads it in place. The memory is a sealed memfd.
/// A memfd has no name, so it leaves no file behind. The seal ensures that
/// neither side can shrink the memory. The layout is specified in
/// docs/reference/wire-format.md, section Shared memory.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_SHAREDREGION_H
#define MLBRIDGE_LIB_TRANSPORT_SHAREDREGION_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Extend/MessagePlacement.h"
#include "Support/Posix.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace MLBridge {

class SharedRegion {
public:
  /// Creates a region for messages of up to \p Capacity bytes.
  static Expected<SharedRegion> create(std::size_t Capacity);
  /// Maps the region of a descriptor that \p Peer sent. Returns a Malformed
  /// error if the descriptor is not a valid region.
  static Expected<SharedRegion> open(posix::UniqueFD Memory,
                                     const std::string &Peer);

  bool isSameAs(const SharedRegion &Other) const { return Held == Other.Held; }
  int descriptor() const { return Held->Memory.get(); }
  /// Returns the size of the largest message, in bytes.
  std::size_t capacity() const { return Capacity; }
  std::byte *message() const;
  std::shared_ptr<const void> share() const { return Held; }

  /// Returns the message's length in bytes, or Moved.
  std::uint64_t length() const;
  /// The result of length() if the message is in another region. The descriptor
  /// of that region was sent through the session's socket.
  static constexpr std::uint64_t Moved = ~std::uint64_t(0);

  /// Returns the number of the message. post() sets the number last.
  std::uint32_t sequence() const {
    return words().Sequence.load(std::memory_order_seq_cst);
  }
  /// Publishes \p Length bytes at message() as the message with number \p
  /// Sequence. Returns true if the reader sleeps and must be woken.
  bool post(std::uint64_t Length, std::uint32_t Sequence);
  /// Wakes a reader that sleeps in sleep().
  void wake();

  /// Records whether the reader is about to sleep.
  void setSleeping(bool Sleeps) {
    words().Sleeps.store(Sleeps ? 1 : 0, std::memory_order_seq_cst);
  }
  /// Sleeps until sequence() differs from \p Last, but at most for \p AtMost.
  /// The function may return early, for example after a signal.
  void sleep(std::uint32_t Last, Duration AtMost) const;
  /// Returns true if the writer's last post() ran on the caller's current core.
  /// In this case, the writer cannot reply while the caller spins.
  bool isWrittenOnThisCore() const;

private:
  struct Words {
    char Magic[8];
    std::uint32_t Version;
    std::uint32_t HeaderSize;
    std::uint64_t Capacity;
    /// The words that the writer changes share a cache line. The word that the
    /// reader changes is in another cache line.
    alignas(64) std::atomic<std::uint32_t> Sequence;
    std::atomic<std::uint32_t> WriterCore;
    alignas(64) std::atomic<std::uint32_t> Sleeps;
    /// The message's length in bytes. The message begins 8 bytes later.
    alignas(64) std::uint64_t Length;
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  /// A memfd and its mapping into this process.
  struct Mapping {
    posix::UniqueFD Memory;
    void *Address = nullptr;
    std::size_t Size = 0;

    static Expected<std::shared_ptr<Mapping>> make(posix::UniqueFD Memory,
                                                   std::size_t Size);
    Mapping() = default;
    Mapping(const Mapping &) = delete;
    Mapping &operator=(const Mapping &) = delete;
    ~Mapping();
  };

  SharedRegion(std::shared_ptr<Mapping> Held, std::size_t Capacity)
      : Held(std::move(Held)), Capacity(Capacity) {}
  Words &words() const { return *static_cast<Words *>(Held->Address); }

  std::shared_ptr<Mapping> Held;
  std::size_t Capacity;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SHAREDREGION_H
