//===- RawModel.h - A misbehaving model side --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RawModel: a model side that meets a compiler as ModelServer does, and then
/// has the bare ends of the session in its hands, to send what it likes.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FAULTS_RAWMODEL_H
#define MLBRIDGE_TESTS_FAULTS_RAWMODEL_H

#include "Transport/Handshake.h"

#include <optional>
#include <string>
#include <string_view>

namespace MLBridge::test {

class RawModel {
public:
  /// Answers every hello in \p Version of the protocol.
  explicit RawModel(const std::string &Name,
                    int Version = ProtocolVersions::Newest);

  /// The steps of a session, one by one. Each ends the process when it fails:
  /// a RawModel runs in a Child.
  void awaitConnection();
  Hello awaitHello();
  void sendTerms();
  /// Reads until \p Bytes of a request are there; returns them.
  std::string readRequest(std::size_t Bytes);
  /// Reads a whole request.
  std::string readRequest();
  /// Writes these very bytes.
  void write(std::string_view Bytes);
  /// Writes the frame of a reply to the last request: an 8-byte length of
  /// \p Announced, then \p Message.
  void writeFrame(std::string_view Message,
                  std::optional<std::uint64_t> Announced = std::nullopt);
  /// The same as the reply to the request \p Number.
  void writeFrameAs(std::uint64_t Number, std::string_view Message,
                    std::optional<std::uint64_t> Announced = std::nullopt);
  /// The number of the last request that was read.
  std::uint64_t request() const { return Request; }
  /// All of the above up to a request.
  std::string meetAndReadRequest();
  /// Whether anybody still holds the end that write() writes to.
  bool hasReader() const;

  /// The ends that the compiler was given, which stay open here too.
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

/// Makes NAME.in and NAME.out and opens them as the reference
/// implementation's model side does.
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
