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
/// format, and its hash, by which models identify the vocabulary that they were
/// trained with. docs/reference/ir2vec.md defines the format and the hash.
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

/// The scaling of the sum over all instructions, which grows with the program.
enum class Normalization : std::uint8_t {
  /// No scaling.
  None,
  /// Divides by the number of instructions, so that embeddings do not depend on
  /// program size. Zero if there are no instructions.
  PerInstruction,
  /// sign(x) * log(1 + |x|) of each element: keeps program size visible, in
  /// numbers that suit a network.
  Logarithmic,
};

/// "none", "per-instruction" or "logarithmic".
llvm::StringRef normalizationName(Normalization How);

/// Immutable; any number of threads can use it at the same time.
class EmbeddingVocabulary {
public:
  /// Larger files are refused.
  static constexpr std::uint64_t MaxFileSize = std::uint64_t(1) << 28;

  /// Reads the file at \p Path. Errors: System: the file cannot be read.
  /// Malformed: it is not JSON, is too large, or its vectors differ in
  /// dimension. SchemaMismatch: it contains other JSON.
  static Expected<EmbeddingVocabulary> load(llvm::StringRef Path);
  /// The same for the text of a file. Errors and metadata contain \p Name.
  static Expected<EmbeddingVocabulary> parse(llvm::StringRef Text,
                                             llvm::StringRef Name);

  /// The number of elements of an embedding.
  unsigned dimension() const { return Dimension; }
  /// The file name without its folder.
  const std::string &name() const { return Name; }
  /// "sha256:...": depends on the contents, but neither on their spelling nor
  /// on the entities of this LLVM.
  const std::string &hash() const { return Hash; }
  /// The names of entities without a vector in the file; their vectors are
  /// zero.
  const std::vector<std::string> &missing() const { return Missing; }
  /// The names in the file that this LLVM does not have; they are ignored.
  const std::vector<std::string> &unknown() const { return Unknown; }

  /// The metadata `mlbridge.vocabulary` for models trained with it.
  std::string metadata() const;
  /// Checks that the model \p Model, whose metadata `mlbridge.vocabulary` is \p
  /// Metadata, was trained with this vocabulary. SchemaMismatch if it was
  /// trained with another one; Malformed if \p Metadata is invalid.
  Error check(llvm::StringRef Metadata, llvm::StringRef Model) const;

  /// The vector of \p Entity: the file's vector, multiplied by IR2Vec's weight
  /// of its section.
  llvm::ArrayRef<double> operator[](unsigned Entity) const {
    return llvm::ArrayRef(Matrix).slice(std::size_t(Entity) * Dimension,
                                        Dimension);
  }

  /// Multiplies the histogram by the vocabulary. \p Into has the vocabulary's
  /// dimension. Sums in double precision.
  void embed(const EntityHistogram &Histogram, Normalization How,
             llvm::MutableArrayRef<float> Into) const;

private:
  EmbeddingVocabulary() = default;

  std::string Name;
  std::string Hash;
  unsigned Dimension = 0;
  /// One row for each entity.
  std::vector<double> Matrix;
  std::vector<std::string> Missing, Unknown;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_EMBEDDINGVOCABULARY_H
