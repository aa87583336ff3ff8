//===- TrainingLog.h - Writes LLVM's training logs --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The file behind `record:`. It is made of lines of JSON and of raw tensors:
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
/// Observations are counted per context; a context that comes again goes on
/// counting, as LLVM's own Logger has it.
///
/// Where LLVM has no such type (bool, string, list of strings), the tensor is
/// of uint8_t, and our "semantics" says what it is; LLVM's readers skip keys
/// that they do not know.
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

/// What the header says of a tensor.
struct LoggedTensor {
  std::string Name;
  ElementType Type = ElementType::UInt8;
  /// Never of rank 0: LLVM writes a scalar as [1].
  Shape Dims;
  std::size_t NumBytes = 0;
  /// Of a list of strings.
  std::vector<std::uint64_t> Lengths;
  bool IsStringList = false;

  /// Becomes what \p Tensor is; reuses its memory.
  Error assign(const TensorView &Tensor);
  /// A SchemaMismatch unless \p Tensor is such a tensor.
  Error check(const TensorView &Tensor) const;
  /// "float[3]", "string of 5 bytes".
  std::string typeStr() const;
  void appendJSON(std::string &Out) const;
};

/// One log, open for writing. Everything is written in whole observations: a
/// log that could not be written to its end is a shorter one, not a broken one.
class TrainingLog {
public:
  struct Observation {
    std::string_view Context;
    /// Of all features, one after another.
    Span<const std::byte> Features;
    Span<const std::byte> Advice;
    double Reward = 0;
  };

  /// Creates \p Path, or truncates it, for this log alone: another one that is
  /// being written to the same file is an error.
  static Expected<TrainingLog> create(std::string Path);

  const std::string &path() const { return Path; }
  bool hasHeader() const { return HasHeader; }
  /// Whether observations have a reward.
  bool hasScore() const { return HasScore; }
  /// The first failure to write, which every later call returns too.
  const Error &failure() const { return Failure; }

  void writeHeader(Span<const LoggedTensor> Features,
                   const LoggedTensor &Advice, bool WithScore);
  Error write(const Observation &O);
  Error flush();
  /// Lets another recorder have the file. The lock is one that children of this
  /// process share: it would stay as long as one of them lives.
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
  /// The entry of the context that the last context line named.
  decltype(Counts)::value_type *Context = nullptr;
  std::string Buffer;
  /// How much of the file is whole observations.
  std::uint64_t Written = 0;
  Error Failure;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_RUNNERS_TRAININGLOG_H
