//===- RawModel.h - A misbehaving model side --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RawModel: a model side that shakes hands as ModelServer does and then
/// exposes the raw ends of the session, to send arbitrary bytes.
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

/// Waits as long as a test may take; the test's end kills the child anyway.
void awaitReadable(int FD);

/// Returns \p Value; if it is an error, prints it and ends the process.
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

  /// The steps of a session. A step that fails ends the process, so a RawModel
  /// must run in a Child.
  void awaitConnection();
  Hello awaitHello();
  void sendTerms();
  /// Reads the next \p Bytes bytes of a request.
  std::string readRequest(std::size_t Bytes);
  /// Reads a whole request.
  std::string readRequest();
  /// Writes \p Bytes as they are.
  void write(std::string_view Bytes);
  /// Writes the frame of a reply to the last request: \p Announced as the
  /// 8-byte length, then \p Message.
  void writeFrame(std::string_view Message,
                  std::optional<std::uint64_t> Announced = std::nullopt);
  /// The same, as the reply to request \p Number.
  void writeFrameAs(std::uint64_t Number, std::string_view Message,
                    std::optional<std::uint64_t> Announced = std::nullopt);
  /// The number of the last request.
  std::uint64_t request() const { return Request; }
  /// All of the above, up to the first request.
  std::string acceptAndReadRequest();
  /// True if any process still holds the read end of write()'s pipe.
  bool hasReader() const;

  /// The compiler's ends; keepCompilersEnds() keeps them open here, too.
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
