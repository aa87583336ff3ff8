//===- ServerChannel.h - The model's end of one session ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerChannel: the model's end of a session's transport. Unlike the
/// compiler's end, it never waits for a message: a server waits for all of its
/// sessions at once.
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

/// No function here blocks. After an error, only destroy the channel.
class ServerChannel {
public:
  virtual ~ServerChannel();

  /// \name Requests
  /// @{

  /// Whether advance() has data to take. Cheap enough for spinning.
  virtual bool isReadable() const = 0;
  enum class Progress { Incomplete, Complete };
  /// Takes the available data. After Complete, message() is the message, and
  /// the next call begins the next one.
  virtual Expected<Progress> advance() = 0;
  virtual Span<const std::byte> message() const = 0;
  /// True if the peer can write to the memory of message(), and the memory that
  /// acquire() returns keeps its contents.
  virtual bool isShared() const { return false; }
  /// Shared ownership of the memory of message(). Hold it while using views of
  /// that memory.
  virtual std::shared_ptr<const void> memory() const = 0;
  /// Whether a message has been received in part.
  virtual bool isInsideMessage() const = 0;

  /// @}
  /// \name Replies
  /// @{

  /// Returns a region for a reply of up to \p Size bytes.
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends \p Size bytes of the region. Keeps the bytes that the compiler does
  /// not read at once for flush(). Whenever \p Within has passed, the compiler
  /// must have read more of them.
  virtual Error commit(std::size_t Size, Duration Within) = 0;
  /// Sends the concatenation of \p Pieces, which are not used after the call.
  /// The default copies them to a region.
  virtual Error send(Span<const Span<const std::byte>> Pieces, Duration Within);
  /// Whether a reply was sent in part and the rest is lost. Then no other reply
  /// can follow.
  virtual bool isInsideReply() const { return false; }
  /// Whether part of a reply is unsent. Then flush() must be called when
  /// poll(2) reports the channel, and when unsentUntil() has passed.
  virtual bool isSending() const { return false; }
  virtual Deadline unsentUntil() const { return Deadline::never(); }
  /// Sends more of the reply. Timeout if the compiler has stopped reading.
  virtual Error flush() { return Error::success(); }

  /// @}
  /// \name Polling
  /// @{

  /// The descriptors that poll(2) should watch.
  static constexpr std::size_t NumPollFDs = 3;
  virtual void fillPoll(pollfd *FDs) const = 0;
  /// Asks the peer to ring the doorbell, so that poll(2) returns. False if the
  /// channel already has data.
  virtual bool prepareToSleep() { return true; }
  /// Undoes prepareToSleep(), after poll(2).
  virtual void wakeUp(const pollfd *) {}
  /// Like isReadable(), after poll(2).
  virtual bool isReadable(const pollfd *FDs) const = 0;
  /// Whether poll(2) reported the end of the peer. Data that it sent before may
  /// still be available.
  virtual bool peerIsGone(const pollfd *FDs) const = 0;

  /// @}
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SERVERCHANNEL_H
