//===- TrainingLog.h - Writes LLVM's training logs --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The file of `record:`, which consists of lines of JSON and raw tensors:
/// \code
///   {"features":[<tensor>,...],"score":<tensor>,"advice":<tensor>}
///   {"context":"a function"}
///   {"observation":0}
///   <the features' bytes, in the header's order, and a newline>
///   {"outcome":0}
///   <the reward's bytes and a newline>
/// \endcode
/// A tensor is `{"name":"x","type":"float","port":0,"shape":[3]}`. The advice
/// is the last of the features. Without "score" there are no outcomes.
/// Observations are numbered per context; a repeated context continues its
/// numbers, as in LLVM's Logger.
///
/// For types that LLVM lacks (bool, string, list of strings), the tensor has
/// type uint8_t and the additional key "semantics"; LLVM's readers skip unknown
/// keys.
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

/// A tensor as described in the header.
struct LoggedTensor {
  std::string Name;
  ElementType Type = ElementType::UInt8;
  /// Never of rank 0: LLVM writes a scalar as [1].
  Shape Dims;
  std::size_t NumBytes = 0;
  /// The size of each string in a list of strings, in bytes.
  std::vector<std::uint64_t> Lengths;
  bool IsStringList = false;

  /// Copies the description of \p Tensor, reusing memory. InvalidArgument if
  /// the name is not UTF-8.
  Error assign(const TensorView &Tensor);
  /// A SchemaMismatch if \p Tensor does not match this description.
  Error check(const TensorView &Tensor) const;
  /// "float[3]", "string of 5 bytes".
  std::string typeStr() const;
  void appendJSON(std::string &Out) const;
};

/// A log, open for writing. After a failed write, the file still ends with a
/// complete observation.
class TrainingLog {
public:
  struct Observation {
    std::string_view Context;
    /// The concatenated bytes of all features.
    Span<const std::byte> Features;
    Span<const std::byte> Advice;
    double Reward = 0;
  };

  /// Creates or truncates \p Path. System if it cannot be written or another
  /// recorder is writing to it; InvalidArgument if it is neither a regular file
  /// nor a character device.
  static Expected<TrainingLog> create(std::string Path);

  const std::string &path() const { return Path; }
  bool hasHeader() const { return HasHeader; }
  /// Whether observations have a reward.
  bool hasScore() const { return HasScore; }
  /// The first failed write, whose error every later call returns.
  const Error &failure() const { return Failure; }

  void writeHeader(Span<const LoggedTensor> Features,
                   const LoggedTensor &Advice, bool WithScore);
  Error write(const Observation &O);
  Error flush();
  /// Unlocks the file for other recorders. Forked children share the lock, so
  /// closing the file would not release it while one of them lives.
  void unlock();

private:
  TrainingLog(std::string Path, posix::UniqueFD File);
  void writeContext(std::string_view Context);

  std::string Path;
  posix::UniqueFD File;
  bool HasHeader = false;
  bool HasScore = false;
  /// The number of observations in each context.
  std::map<std::string, std::uint64_t, std::less<>> Counts;
  /// The entry of the last context line.
  decltype(Counts)::value_type *Context = nullptr;
  std::string Buffer;
  /// The size of the complete observations in the file, in bytes.
  std::uint64_t Written = 0;
  Error Failure;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_RUNNERS_TRAININGLOG_H
