//===- TrainingLogReader.h - Reads LLVM's training logs ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines TrainingLogReader, which reads the observations of a log one by one.
/// TrainingLog.h describes the format.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_RUNNERS_TRAININGLOGREADER_H
#define MLBRIDGE_LIB_RUNNERS_TRAININGLOGREADER_H

#include "Runners/TrainingLog.h"
#include "SerDes/BitstreamHeader.h"
#include "Support/ForkDetector.h"
#include "Support/RegularFile.h"

#include <memory>
#include <optional>

namespace MLBridge {

/// A log that is open for reading. Its errors contain the file's path and, if
/// the file does not follow the format, the offset in bytes.
class TrainingLogReader {
public:
  /// Opens a log and reads its header. ReplayModelRunner::create() lists the
  /// errors. The file stays locked, so that no RecordModelRunner truncates it.
  static Expected<std::unique_ptr<TrainingLogReader>> open(std::string Path);
  ~TrainingLogReader();
  TrainingLogReader(const TrainingLogReader &) = delete;
  TrainingLogReader &operator=(const TrainingLogReader &) = delete;

  /// Reads the next observation. Returns false at the end of the file.
  Expected<bool> next();

  /// Returns the descriptions of the features. Empty if the file is empty.
  Span<const LoggedTensor> featureTypes() const { return Types; }
  /// Returns the features of the current observation. Their data are valid
  /// until the next call of next(), and may be unaligned.
  Span<const TensorView> features() const {
    return {Tensors.data(), Types.size()};
  }
  /// Returns the decision of the current observation. Its data are aligned, and
  /// valid until the next call of next().
  const TensorView &decision() const { return Tensors.back(); }
  /// Returns the name of the current observation for messages, such as
  /// "observation 3 of 'main'".
  std::string describe() const;

  const std::string &path() const { return Path; }
  /// Returns the value of \p Key in the recorded model's metadata, or null.
  const std::string *metadata(std::string_view Key) const;

private:
  TrainingLogReader(std::string Path, RegularFile File);
  Error readHeader();
  Error readHeaderKeys();
  Error readOutcome();

  bool isAtEnd() const { return Offset() == Size; }
  /// Returns the offset of the next byte in the file.
  std::uint64_t Offset() const { return BufferEnd - (Buffer.size() - Used); }
  /// Reads the next piece of the file into the buffer.
  Error readPiece();
  /// Reads a line into Line, followed by the padding of simdjson. Returns its
  /// text without the newline.
  Expected<std::string_view> readLine(const std::string &What);
  /// Reads \p NumBytes bytes and a newline.
  Expected<const std::byte *> readBytes(std::size_t NumBytes,
                                        const std::string &What);
  /// Parses a line such as {"observation":3}. Sets \p Key to its only key.
  Error readMark(std::string_view &Key, std::uint64_t &Number);
  Error malformed(const std::string &What) const;

  const std::string Path;
  const posix::UniqueFD File;
  const std::uint64_t Size;
  const ForkDetector Fork;

  std::string Buffer;
  /// The number of bytes of the buffer that have been read.
  std::size_t Used = 0;
  /// The offset of the buffer's end in the file.
  std::uint64_t BufferEnd = 0;
  std::string Line;

  serdes::BitstreamHeader::Tools Tools;
  /// The features and, at the end, the decision.
  serdes::BitstreamHeader Header;
  std::vector<LoggedTensor> Types;
  std::vector<TensorView> Tensors;
  std::vector<std::pair<std::string, std::string>> Metadata;
  /// The size of the reward, or nullopt if the log has no rewards.
  std::optional<std::size_t> ScoreSize;

  std::vector<std::byte> Record;
  std::vector<std::byte> Decision;
  std::string Context;
  std::uint64_t Index = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_RUNNERS_TRAININGLOGREADER_H
