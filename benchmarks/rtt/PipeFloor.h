//===- PipeFloor.h - The floor of a round trip over pipes -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The floors of the pipe runner, that is, the fastest possible round trips
/// through pipes. They send the same bytes as the runner, through the same kind
/// of pipe. Both ends block while they wait, and all memory is allocated at the
/// start. RttClient.cpp uses the client's end, and FloorModule.cpp uses the
/// model's end.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_PIPEFLOOR_H
#define MLCOMPILERBRIDGE_BENCHMARKS_PIPEFLOOR_H

#include "MLCompilerBridge/Span.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <new>
#include <sys/uio.h>
#include <unistd.h>

namespace MLBridge::bench {

/// The two pipe ends that one side uses. The caller owns the descriptors.
class FloorPipe {
public:
  FloorPipe(int Read, int Write) : Read(Read), Write(Write) {}

  /// Sends a frame. Returns false if the other side has ended.
  bool send(Span<const std::byte> Bytes) const {
    return sendBy(
        [&](Span<const std::byte> Left) {
          return ::write(Write, Left.data(), Left.size());
        },
        Bytes);
  }

  /// Sends a frame as lib/Transport/PipeWriter.h does: without the kernel's
  /// copy if this is faster for the frame's size.
  bool lend(Span<const std::byte> Bytes) const {
    constexpr std::size_t WorthLending = std::size_t(16) << 10;
    if (Bytes.size() < WorthLending)
      return send(Bytes);
    return sendBy(
        [&](Span<const std::byte> Left) {
          iovec Piece{const_cast<std::byte *>(Left.data()), Left.size()};
          return ::vmsplice(Write, &Piece, 1, 0);
        },
        Bytes);
  }

  /// Reads a frame to the start of \p Into. A frame is an 8-byte length
  /// followed by this number of bytes. Returns the size of the frame including
  /// the length field, or 0 if no complete frame could be read.
  std::size_t receive(Span<std::byte> Into) const {
    std::size_t Got = 0;
    std::size_t Wanted = sizeof(std::uint64_t);
    while (Got < Wanted) {
      ssize_t Count = ::read(Read, Into.data() + Got, Into.size() - Got);
      if (Count < 0 && errno == EINTR)
        continue;
      if (Count <= 0)
        return 0;
      Got += static_cast<std::size_t>(Count);
      if (Got >= sizeof(std::uint64_t)) {
        std::uint64_t Length = 0;
        std::memcpy(&Length, Into.data(), sizeof(Length));
        Wanted = sizeof(Length) + Length;
        if (Wanted > Into.size())
          return 0;
      }
    }
    return Got;
  }

private:
  template <typename F> static bool sendBy(F Put, Span<const std::byte> Bytes) {
    while (!Bytes.empty()) {
      ssize_t Count = Put(Bytes);
      if (Count < 0 && errno == EINTR)
        continue;
      if (Count <= 0)
        return false;
      Bytes = Bytes.subspan(static_cast<std::size_t>(Count));
    }
    return true;
  }

  int Read;
  int Write;
};

/// The frames of a round trip. The request has the same size as the library's
/// request. It consists of 128 bytes for the length and the header line, the
/// features, and a newline. The reply has the smallest possible size.
struct FloorFrames {
  static constexpr std::size_t MaxLength = 1 << 20;
  static constexpr std::size_t HeaderSize = 128;
  static constexpr std::size_t ReplySize = sizeof(std::uint64_t) + 4;

  static constexpr std::size_t requestSize(std::size_t Length) {
    return HeaderSize + Length * sizeof(float) + 1;
  }
  static void setLength(std::byte *Frame, std::size_t Size) {
    std::uint64_t Length = Size - sizeof(std::uint64_t);
    std::memcpy(Frame, &Length, sizeof(Length));
  }
};

/// A page-aligned buffer for a request of any length. The constructor writes to
/// all pages, so that they are in memory before anything is timed.
class FloorRequest {
public:
  FloorRequest()
      : Memory(static_cast<std::byte *>(::operator new(Size, Alignment))) {
    std::memset(Memory.get(), 0, Size);
  }
  std::byte *data() const { return Memory.get(); }
  Span<std::byte> region() const { return {Memory.get(), Size}; }

private:
  static constexpr std::align_val_t Alignment{4096};
  static constexpr std::size_t Size =
      FloorFrames::requestSize(FloorFrames::MaxLength);
  struct Release {
    void operator()(std::byte *P) const { ::operator delete(P, Alignment); }
  };
  std::unique_ptr<std::byte, Release> Memory;
};

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_PIPEFLOOR_H
