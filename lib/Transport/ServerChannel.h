//===- ServerChannel.h - The model's end of one session ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerChannel: what a server needs of a session's transport. Unlike the
/// compiler's end, it never waits for a message by itself: a server waits for
/// all of its sessions at once.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_SERVERCHANNEL_H
#define MLBRIDGE_LIB_TRANSPORT_SERVERCHANNEL_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"

#include <cstddef>
#include <memory>
#include <poll.h>

namespace MLBridge {

/// Nothing here waits. After an error the channel is broken: destroy it.
class ServerChannel {
public:
  virtual ~ServerChannel();

  /// \name The request
  /// @{

  /// Whether advance() has something to take. Cheap, for those who ask often.
  virtual bool isReadable() const = 0;
  enum class Progress { Incomplete, Complete };
  /// Takes what has arrived. After Complete, message() is the message, and the
  /// next call begins the next one.
  virtual Expected<Progress> advance() = 0;
  virtual Span<const std::byte> message() const = 0;
  /// Whether message() lies in memory that the peer can write to; and what
  /// acquire() returns, in memory that keeps what was written there.
  virtual bool isShared() const { return false; }
  /// Keeps the memory of message() alive for those who hold views of it.
  virtual std::shared_ptr<const void> memory() const = 0;
  /// Whether a message has begun to arrive and not ended.
  virtual bool isInsideMessage() const = 0;

  /// @}
  /// \name The answer
  /// @{

  /// Room for it.
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends \p Size bytes of it. What the compiler does not take at once is
  /// kept for flush() to send; it has to take more of it \p Within that time,
  /// again and again.
  virtual Error commit(std::size_t Size, Duration Within) = 0;
  /// Sends one that lies in pieces, which are not used after the call. Unless
  /// overridden, this copies them to the region.
  virtual Error send(Span<const Span<const std::byte>> Pieces, Duration Within);
  /// Whether an answer was sent in part and its rest is lost: no other may
  /// follow it.
  virtual bool isInsideAnswer() const { return false; }
  /// Whether something is kept: then flush() has to be called as often as
  /// poll(2) wakes, and when unsentUntil() has passed.
  virtual bool isSending() const { return false; }
  virtual Deadline unsentUntil() const { return Deadline::never(); }
  virtual Error flush() { return Error::success(); }

  /// @}
  /// \name Sleep
  /// @{

  /// What poll(2) should watch while nothing happens.
  static constexpr std::size_t NumPollFDs = 3;
  virtual void fillPoll(pollfd *FDs) const = 0;
  /// Asks the peer to ring, so that poll(2) returns. False when there is no
  /// need to sleep: something is there.
  virtual bool prepareToSleep() { return true; }
  /// Undoes it, after poll(2).
  virtual void wakeUp(const pollfd *) {}
  /// As isReadable(), after poll(2).
  virtual bool isReadable(const pollfd *FDs) const = 0;
  /// Whether the peer is gone for good, as far as poll could tell; what it
  /// sent before may still be there.
  virtual bool peerIsGone(const pollfd *FDs) const = 0;

  /// @}
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SERVERCHANNEL_H
