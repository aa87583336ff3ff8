//===- RawModel.h - A misbehaving model side --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RawModel: a model side that shakes hands like ModelServer. It then gives
/// access to the raw ends of the session, to send arbitrary bytes.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FAULTS_RAWMODEL_H
#define MLBRIDGE_TESTS_FAULTS_RAWMODEL_H

#include "Transport/Handshake.h"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace MLBridge::test {

/// Waits until \p FD is readable, for as long as a test may take. The end of a
/// test kills the child anyway.
void awaitReadable(int FD);

/// Returns \p Value. If it is an error, prints it and ends the process.
template <typename T> T must(Expected<T> Value) {
  if (Value)
    return std::move(*Value);
  std::fprintf(stderr, "raw model: %s\n", Value.takeError().str().c_str());
  ::_exit(3);
}

class RawModel {
public:
  /// Replies to every hello in protocol version \p Version.
  explicit RawModel(const std::string &Name,
                    int Version = ProtocolVersions::Newest);

  /// The following functions are the steps of a session. If a step fails, it
  /// ends the process, so a RawModel must run in a Child.
  void awaitConnection();
  Hello awaitHello();
  void sendTerms();
  /// Reads the next \p Bytes bytes of a request.
  std::string readRequest(std::size_t Bytes);
  /// Reads a whole request.
  std::string readRequest();
  /// Writes \p Bytes as they are.
  void write(std::string_view Bytes);
  /// Writes the frame of a reply to the last request. The frame consists of the
  /// 8-byte length \p Announced and \p Message.
  void writeFrame(std::string_view Message,
                  std::optional<std::uint64_t> Announced = std::nullopt);
  /// Writes the same frame, as the reply to request \p Number.
  void writeFrameAs(std::uint64_t Number, std::string_view Message,
                    std::optional<std::uint64_t> Announced = std::nullopt);
  /// Returns the number of the last request.
  std::uint64_t request() const { return Request; }
  /// Does all steps above, and returns the first request.
  std::string acceptAndReadRequest();
  /// True if a process still holds the read end of the pipe to which write()
  /// writes.
  bool hasReader() const;

  /// The compiler's ends of the session. keepCompilersEnds() keeps them open in
  /// this process, too.
  int compilersReadEnd() const { return ToCompiler.Read.get(); }
  int compilersWriteEnd() const { return FromCompiler.Write.get(); }
  void keepCompilersEnds() { KeepsCompilersEnds = true; }

private:
  bool isNumbered() const {
    return Version >= ProtocolVersions::NumberedFrames;
  }

  int Version;
  bool KeepsCompilersEnds = false;
  std::uint64_t Request = 0;
  UnixListener Listener;
  posix::UniqueFD Accepted;
  posix::Pipe ToCompiler, FromCompiler;
};

/// Makes NAME.in and NAME.out and opens them in the same order as the reference
/// implementation's model side.
class RawBareModel {
public:
  static void makeFifos(const std::string &Name);
  explicit RawBareModel(const std::string &Name);
  std::string readRequest();
  void writeFrame(std::string_view Message);

private:
  posix::UniqueFD In, Out;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_FAULTS_RAWMODEL_H
