//===- TrainingLog.h - Writes LLVM's training logs --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines TrainingLog, which writes the file of `record:`. The file consists
/// of lines of JSON and raw tensors:
/// \code
///   {"features":[<tensor>,...],"score":<tensor>,"advice":<tensor>,
///    "metadata":{"a key":"a value"}}
///   {"context":"a function"}
///   {"observation":0}
///   <the features' bytes, in the header's order, and a newline>
///   {"outcome":0}
///   <the reward's bytes and a newline>
/// \endcode
/// A tensor is `{"name":"x","type":"float","port":0,"shape":[3]}`. The advice
/// also appears as the last feature. If the header has no "score", the file has
/// no outcomes. Each context numbers its observations from 0. If a context
/// occurs again, its numbers continue, as in LLVM's Logger.
///
/// "metadata" contains the model's metadata that the compiler has requested.
/// Without such metadata, the header lacks this key, as LLVM's headers do.
///
/// LLVM lacks the types bool, string and list of strings. A tensor of one of
/// these types has the type uint8_t and the additional key "semantics". LLVM's
/// readers ignore unknown keys.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_RUNNERS_TRAININGLOG_H
#define MLBRIDGE_LIB_RUNNERS_TRAININGLOG_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"
#include "Support/Posix.h"

#include <map>
#include <string>
#include <vector>

namespace MLBridge {

/// The description of a tensor in the header.
struct LoggedTensor {
  std::string Name;
  ElementType Type = ElementType::UInt8;
  /// The shape. A scalar has the shape [1], as in LLVM's logs.
  Shape Dims;
  std::size_t NumBytes = 0;
  /// For a list of strings, the length of each string in bytes.
  std::vector<std::uint64_t> Lengths;
  bool IsStringList = false;

  /// Copies the description of \p Tensor to this object. Returns
  /// InvalidArgument if the tensor's name is not UTF-8.
  Error assign(const TensorView &Tensor);
  /// Returns a SchemaMismatch if \p Tensor does not match this description.
  Error check(const TensorView &Tensor) const;
  /// Returns the type and shape for messages, such as "float[3]" or "string of
  /// 5 bytes".
  std::string typeStr() const;
  void appendJSON(std::string &Out) const;
};

/// Returns a SchemaMismatch if the names, types or shapes of \p Features, or
/// their order, differ from the features \p Logged of a log.
Error checkFeatures(Span<const LoggedTensor> Logged,
                    Span<const TensorView> Features);

/// A log that is open for writing. After a failed write, the file still ends
/// with a complete observation.
class TrainingLog {
public:
  struct Observation {
    std::string_view Context;
    /// The concatenated bytes of all features.
    Span<const std::byte> Features;
    Span<const std::byte> Advice;
    double Reward = 0;
  };

  /// Maps keys to values of the model's metadata.
  using Metadata = std::map<std::string, std::string, std::less<>>;

  /// Opens or creates the file \p Path, and keeps its content. Returns System
  /// if the file cannot be written, or another RecordModelRunner or
  /// ReplayModelRunner uses it. Returns InvalidArgument if \p Path is neither a
  /// regular file nor a character device.
  static Expected<TrainingLog> create(std::string Path);
  /// Removes the content that the file had before create(). Later calls have no
  /// effect. Call this function before writeHeader().
  Error removeOldLog();

  const std::string &path() const { return Path; }
  bool hasHeader() const { return HasHeader; }
  /// Returns whether observations have a reward.
  bool hasScore() const { return HasScore; }
  /// Returns the error of the first failed write, or success. After a failed
  /// write, every call returns this error.
  const Error &failure() const { return Failure; }

  void writeHeader(Span<const LoggedTensor> Features,
                   const LoggedTensor &Advice, bool WithScore,
                   const Metadata &Model);
  Error write(const Observation &O);
  Error flush();
  /// Unlocks the file, so that another RecordModelRunner can write to it.
  /// Closing the file is not enough, because a forked child shares the lock.
  void unlock();

private:
  TrainingLog(std::string Path, posix::UniqueFD File);
  void writeContext(std::string_view Context);

  std::string Path;
  posix::UniqueFD File;
  /// True if the file is a regular file that removeOldLog() has not truncated.
  bool MayHaveOldLog = false;
  bool HasHeader = false;
  bool HasScore = false;
  /// The number of observations in each context.
  std::map<std::string, std::uint64_t, std::less<>> Counts;
  /// The entry of the current context, or null before the first observation.
  decltype(Counts)::value_type *Context = nullptr;
  std::string Buffer;
  /// The number of bytes of complete observations in the file.
  std::uint64_t Written = 0;
  Error Failure;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_RUNNERS_TRAININGLOG_H
