//===- EmbeddingVocabulary.h - A vector for each IR entity ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EmbeddingVocabulary: an IR2Vec vocabulary as a matrix, read from LLVM's JSON
/// form of it, and the hash by which models say which one they were trained
/// with. docs/ir2vec.md has the form and the definition of the hash.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_EMBEDDINGVOCABULARY_H
#define MLBRIDGE_LLVM_IR2VEC_EMBEDDINGVOCABULARY_H

#include "IR2Vec/EntityHistogram.h"

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace MLBridge {

/// What becomes of the sum over all instructions, which grows with the program.
enum class Normalization : std::uint8_t {
  /// Nothing.
  None,
  /// Divided by the number of instructions: what a program is like, whatever
  /// its size. Of no instruction: zero.
  PerInstruction,
  /// sign(x) * log(1 + |x|) of each element: size stays visible, in numbers
  /// that a network can take.
  Logarithmic,
};

/// "none", "per-instruction" or "logarithmic".
llvm::StringRef normalizationName(Normalization How);

/// Immutable; a value that many threads may use at once.
class EmbeddingVocabulary {
public:
  /// A file past this is not read.
  static constexpr std::uint64_t MaxFileSize = std::uint64_t(1) << 28;

  /// Reads the file at \p Path. Errors: System, when it cannot be read;
  /// Malformed, when it is no JSON, too large, or its vectors are not all of
  /// one dimension; SchemaMismatch, when it is another kind of JSON.
  static Expected<EmbeddingVocabulary> load(llvm::StringRef Path);
  /// The same of the file's text. \p Name is its name in errors and metadata.
  static Expected<EmbeddingVocabulary> parse(llvm::StringRef Text,
                                             llvm::StringRef Name);

  /// How many numbers an embedding is made of.
  unsigned dimension() const { return Dimension; }
  /// The file's name, without its folder.
  const std::string &name() const { return Name; }
  /// "sha256:..." of what it means: however it is spelt, and whichever entities
  /// this LLVM knows.
  const std::string &hash() const { return Hash; }
  /// The entities that the file has no vector for, by name; theirs is zero.
  const std::vector<std::string> &missing() const { return Missing; }
  /// The names in the file that are none of this LLVM's, and without effect.
  const std::vector<std::string> &unknown() const { return Unknown; }

  /// What a model's file says of it, as the value of `mlbridge.vocabulary`.
  std::string metadata() const;
  /// Whether a model, here called \p Model, that says \p Metadata of its
  /// vocabulary was trained with this one; SchemaMismatch if with another, and
  /// Malformed if \p Metadata is no such value.
  Error check(llvm::StringRef Metadata, llvm::StringRef Model) const;

  /// The vector of \p Entity: the file's, times the weight that IR2Vec gives
  /// its section.
  llvm::ArrayRef<double> operator[](unsigned Entity) const {
    return llvm::ArrayRef(Matrix).slice(std::size_t(Entity) * Dimension,
                                        Dimension);
  }

  /// The histogram times the vocabulary. \p Into has the vocabulary's
  /// dimension. Sums are made in double.
  void embed(const EntityHistogram &Histogram, Normalization How,
             llvm::MutableArrayRef<float> Into) const;

private:
  EmbeddingVocabulary() = default;

  std::string Name;
  std::string Hash;
  unsigned Dimension = 0;
  /// A row an entity.
  std::vector<double> Matrix;
  std::vector<std::string> Missing, Unknown;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_EMBEDDINGVOCABULARY_H
