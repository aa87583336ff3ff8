//===- SharedRegion.h - One direction of a shared memory --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SharedRegion: memory that one side writes one message at a time to and the
/// other reads it from, in place. It is a sealed memfd, so that it has no name
/// to be left behind, and none can make it smaller under the other's feet.
/// The bytes: docs/wire-format.md, section Shared memory.
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
  /// A new region for messages of up to \p Capacity bytes.
  static Expected<SharedRegion> create(std::size_t Capacity);
  /// The region behind a descriptor that \p Peer has sent. Malformed if it is
  /// anything else.
  static Expected<SharedRegion> open(posix::UniqueFD Memory,
                                     const std::string &Peer);

  bool isSameAs(const SharedRegion &Other) const { return Held == Other.Held; }
  int descriptor() const { return Held->Memory.get(); }
  /// Of a message.
  std::size_t capacity() const { return Capacity; }
  std::byte *message() const;
  std::shared_ptr<const void> share() const { return Held; }

  /// The message's length, or Moved.
  std::uint64_t length() const;
  /// In place of a length: the message is in another region, whose descriptor
  /// lies in the session's socket.
  static constexpr std::uint64_t Moved = ~std::uint64_t(0);

  /// Which message this is. Set by post(), last of all.
  std::uint32_t sequence() const {
    return words().Sequence.load(std::memory_order_seq_cst);
  }
  /// Publishes \p Length bytes at message() as number \p Sequence. True when
  /// the reader sleeps and has to be woken.
  bool post(std::uint64_t Length, std::uint32_t Sequence);
  /// Wakes a reader that sleeps in sleep().
  void wake();

  /// Says whether the reader is going to sleep.
  void setSleeping(bool Sleeps) {
    words().Sleeps.store(Sleeps ? 1 : 0, std::memory_order_seq_cst);
  }
  /// Sleeps until sequence() is no longer \p Last, at most for \p AtMost. May
  /// return before, such as when the thread handles a signal.
  void sleep(std::uint32_t Last, Duration AtMost) const;
  /// Whether the writer, when it last wrote, ran on the core that the caller
  /// runs on: then it cannot answer while the caller spins.
  bool isWrittenOnThisCore() const;

private:
  struct Words {
    char Magic[8];
    std::uint32_t Version;
    std::uint32_t HeaderSize;
    std::uint64_t Capacity;
    /// What the writer changes and what the reader changes, each on a cache
    /// line of its own.
    alignas(64) std::atomic<std::uint32_t> Sequence;
    std::atomic<std::uint32_t> WriterCore;
    alignas(64) std::atomic<std::uint32_t> Sleeps;
    /// The frame begins here: its length, and 8 bytes on, the message.
    alignas(64) std::uint64_t Length;
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  /// A memfd that is mapped.
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
