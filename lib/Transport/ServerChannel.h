//===- ServerChannel.h - The model's end of one session ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerChannel: the model's end of a session's transport. The compiler's end
/// blocks until a message arrives. A ServerChannel never blocks, because a
/// server waits for all of its sessions at the same time.
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
#include <string_view>

namespace MLBridge {

/// No function of this class blocks. After an error, the only valid operation
/// is to destroy the channel.
class ServerChannel {
public:
  virtual ~ServerChannel();

  /// \name Requests
  /// @{

  /// Returns true if advance() has data to read. The call is cheap enough for a
  /// spin loop.
  virtual bool isReadable() const = 0;
  enum class Progress { Incomplete, Complete };
  /// Reads the available data. Returns Complete if message() now holds a whole
  /// message. The next call then begins the next message.
  virtual Expected<Progress> advance() = 0;
  virtual Span<const std::byte> message() const = 0;
  /// Returns true if the peer shares the memory of the session. In this case,
  /// the peer can change message() at any time, and the region of acquire()
  /// keeps its contents between replies.
  virtual bool isShared() const { return false; }
  /// Returns shared ownership of the memory of message(). Hold the pointer
  /// while you use views of that memory.
  virtual std::shared_ptr<const void> memory() const = 0;
  /// Returns true if a message has been received in part.
  virtual bool isInsideMessage() const = 0;

  /// @}
  /// \name Replies
  /// @{

  /// Returns a region for a reply of up to \p Size bytes.
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends \p Size bytes of the region. If some bytes do not fit into the
  /// transport, flush() sends them later. If the compiler reads none of these
  /// bytes for \p Within, flush() fails.
  virtual Error commit(std::size_t Size, Duration Within) = 0;
  /// Sends the concatenation of \p Pieces. The pieces are not used after the
  /// call. The default implementation copies them to a region.
  virtual Error send(Span<const Span<const std::byte>> Pieces, Duration Within);
  /// Sends the reply \p Name, one of ReplyNames, with the text \p Text in the
  /// channel's own form. Returns false if the channel has no such form. The
  /// SerDes then encodes the reply.
  virtual bool sendFailure(std::string_view /*Name*/,
                           std::string_view /*Text*/) {
    return false;
  }
  /// Returns true if a reply was sent in part and the rest is lost. In this
  /// case, no other reply can follow.
  virtual bool isInsideReply() const { return false; }
  /// Returns true if part of a reply is unsent. In this case, call flush() when
  /// poll(2) reports the channel and when unsentUntil() has passed.
  virtual bool isSending() const { return false; }
  virtual Deadline unsentUntil() const { return Deadline::never(); }
  /// Sends more of the reply. Returns a Timeout error if the compiler has
  /// stopped reading.
  virtual Error flush() { return Error::success(); }

  /// @}
  /// \name Polling
  /// @{

  /// The number of descriptors that fillPoll() writes for poll(2).
  static constexpr std::size_t NumPollFDs = 3;
  virtual void fillPoll(pollfd *FDs) const = 0;
  /// Prepares for sleeping in poll(2). From now on, data from the peer ends the
  /// sleep. Returns false if the channel already has data.
  virtual bool prepareToSleep() { return true; }
  /// Undoes prepareToSleep(). Call this after poll(2).
  virtual void wakeUp(const pollfd *) {}
  /// Returns the same as isReadable(), but may use the results of poll(2) in \p
  /// FDs.
  virtual bool isReadable(const pollfd *FDs) const = 0;
  /// Returns true if the peer has ended or closed the channel, by the results
  /// of poll(2) in \p FDs. Data that the peer sent before may still be
  /// available.
  virtual bool peerIsGone(const pollfd *FDs) const = 0;

  /// @}
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SERVERCHANNEL_H
