//===- EmbeddingVocabulary.h - A vector for each IR entity ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EmbeddingVocabulary is an IR2Vec vocabulary, read from LLVM's JSON format.
/// It holds the vectors as a matrix. Its hash identifies the vocabulary, so
/// that a model can name the vocabulary with which it was trained.
/// docs/reference/ir2vec.md defines the format and the hash.
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

/// The scaling of an embedding. An embedding is a sum over all instructions, so
/// without scaling it grows with the program.
enum class Normalization : std::uint8_t {
  None,
  /// Divides by the number of instructions, so that embeddings do not depend on
  /// program size. The result is zero if there are no instructions.
  PerInstruction,
  /// Replaces each element x by sign(x) * log(1 + |x|). Embeddings then still
  /// depend on program size, but their elements are small enough for a network.
  Logarithmic,
};

/// Returns "none", "per-instruction" or "logarithmic".
llvm::StringRef normalizationName(Normalization How);

/// A vocabulary does not change after its creation, so any number of threads
/// can use it at the same time.
class EmbeddingVocabulary {
public:
  /// The maximum size of a vocabulary file, in bytes.
  static constexpr std::uint64_t MaxFileSize = std::uint64_t(1) << 28;

  /// Reads the vocabulary file at \p Path. Returns one of these errors:
  ///
  /// - System: The file cannot be read.
  /// - InvalidArgument: The path does not name a regular file.
  /// - Malformed: The file is not JSON or is too large, or its vectors differ
  ///   in dimension.
  /// - SchemaMismatch: The file contains JSON of another form.
  static Expected<EmbeddingVocabulary> load(llvm::StringRef Path);
  /// Parses \p Text, the contents of a vocabulary file. Error messages and
  /// metadata() contain \p Name.
  static Expected<EmbeddingVocabulary> parse(llvm::StringRef Text,
                                             llvm::StringRef Name);

  /// The number of elements of an embedding.
  unsigned dimension() const { return Dimension; }
  /// The name of the vocabulary file, without its folder.
  const std::string &name() const { return Name; }
  /// The hash of the vectors, "sha256:...". It depends neither on the
  /// formatting of the JSON nor on the version of LLVM.
  const std::string &hash() const { return Hash; }
  /// The names of LLVM's entities that have no vector in the file. Their
  /// vectors are zero.
  const std::vector<std::string> &missing() const { return Missing; }
  /// The names in the file that are not entities of this LLVM. Their vectors
  /// are ignored.
  const std::vector<std::string> &unknown() const { return Unknown; }

  /// Returns the metadata entry `mlbridge.vocabulary` for models that are
  /// trained with this vocabulary.
  std::string metadata() const;
  /// Checks that a model was trained with this vocabulary. \p Metadata is the
  /// model's metadata entry `mlbridge.vocabulary`. \p Model is the model's
  /// name, for error messages. Returns SchemaMismatch if the model was trained
  /// with another vocabulary, and Malformed if \p Metadata is invalid.
  Error check(llvm::StringRef Metadata, llvm::StringRef Model) const;

  /// Returns the vector of \p Entity. It is the vector in the file, multiplied
  /// by IR2Vec's weight of the entity's section.
  llvm::ArrayRef<double> operator[](unsigned Entity) const {
    return llvm::ArrayRef(Matrix).slice(std::size_t(Entity) * Dimension,
                                        Dimension);
  }

  /// Multiplies the histogram by the vocabulary's matrix and writes the
  /// embedding to \p Into. The length of \p Into must be dimension(). Sums are
  /// computed in double precision.
  void embed(const EntityHistogram &Histogram, Normalization How,
             llvm::MutableArrayRef<float> Into) const;

private:
  EmbeddingVocabulary() = default;

  std::string Name;
  std::string Hash;
  unsigned Dimension = 0;
  /// The matrix, which has one row for each entity.
  std::vector<double> Matrix;
  std::vector<std::string> Missing, Unknown;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_EMBEDDINGVOCABULARY_H
