//===- EmbeddingVocabulary.cpp - A vector for each IR entity --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a vocabulary in LLVM's JSON format, and computes embeddings from
/// histograms. LLVM's own reader is not used, because it reads only one file
/// per process. A global option names that file. In addition, some invalid
/// files violate the reader's assertions.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/EmbeddingVocabulary.h"

#include "Support/ParseJSON.h"
#include "Support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace llvm;

namespace MLBridge {

StringRef normalizationName(Normalization How) {
  switch (How) {
  case Normalization::None:
    return "none";
  case Normalization::PerInstruction:
    return "per-instruction";
  case Normalization::Logarithmic:
    break;
  }
  return "logarithmic";
}

/// Returns IR2Vec's weight of a section. The weights are the default values of
/// LLVM's options, which are floats.
static double weightOf(EntitySection Section) {
  switch (Section) {
  case EntitySection::Opcodes:
    return 1.0F;
  case EntitySection::Types:
    return 0.5F;
  case EntitySection::Arguments:
    break;
  }
  return 0.2F;
}

namespace {

/// Computes the hash from the canonical form of a vocabulary, which
/// docs/reference/ir2vec.md defines.
class CanonicalForm {
public:
  explicit CanonicalForm(unsigned Dimension) {
    add("mlbridge-ir2vec-vocabulary 1\ndimension " + utostr(Dimension) + "\n");
  }

  void add(EntitySection Section, StringRef Name, ArrayRef<double> Vector) {
    // Skip zero vectors, because a missing vector means a zero vector.
    if (all_of(Vector, [](double Element) { return Element == 0; }))
      return;
    add((entitySectionName(Section) + ("/" + Name) + "\n").str());
    for (double Element : Vector) {
      // Hash -0.0 as 0.0, because the two zeros are equal.
      const double Value = Element == 0 ? 0.0 : Element;
      std::uint8_t Bytes[sizeof(double)];
      support::endian::write64le(Bytes, bit_cast<std::uint64_t>(Value));
      Hash.update(Bytes);
    }
  }

  std::string hash() {
    return "sha256:" + toHex(Hash.final(), /*LowerCase=*/true);
  }

private:
  void add(const std::string &Text) { Hash.update(Text); }

  SHA256 Hash;
};

/// Parses one vocabulary file and holds its vectors.
class Reader {
public:
  explicit Reader(StringRef Name) : Name(Name) {}

  Error read(StringRef Text) {
    llvm::Expected<json::Value> Root = parseJSON(Text);
    if (!Root)
      return malformed("expected JSON: " + toString(Root.takeError()));
    const json::Object *Sections = Root->getAsObject();
    if (!Sections)
      return mismatch("expected a JSON object, found " + kindOf(*Root));
    for (EntitySection Section : EntitySections)
      if (Error E = read(Section, *Sections))
        return E;
    return Error::success();
  }

  unsigned dimension() const { return Dimension; }
  /// Returns the vector with the name \p Key, or an empty result if the file
  /// lacks it.
  std::optional<ArrayRef<double>> find(EntitySection Section,
                                       StringRef Key) const {
    const auto &Found = Vectors[static_cast<unsigned>(Section)];
    if (auto It = Found.find(Key); It != Found.end())
      return ArrayRef(It->second);
    return std::nullopt;
  }
  /// Returns all names of a section, sorted by their bytes.
  std::vector<StringRef> names(EntitySection Section) const {
    auto Keys = Vectors[static_cast<unsigned>(Section)].keys();
    std::vector<StringRef> Names(Keys.begin(), Keys.end());
    llvm::sort(Names);
    return Names;
  }

  Error malformed(const Twine &What) const {
    return error(ErrorCode::Malformed, What);
  }
  Error mismatch(const Twine &What) const {
    return error(ErrorCode::SchemaMismatch, What);
  }

private:
  Error error(ErrorCode Code, const Twine &What) const {
    return {Code, ("vocabulary '" + Name + "': " + What).str()};
  }

  static StringRef kindOf(const json::Value &Value) {
    switch (Value.kind()) {
    case json::Value::Null:
      return "null";
    case json::Value::Boolean:
      return "a bool";
    case json::Value::Number:
      return "a number";
    case json::Value::String:
      return "a string";
    case json::Value::Array:
      return "an array";
    case json::Value::Object:
      break;
    }
    return "an object";
  }

  Error read(EntitySection Section, const json::Object &Sections) {
    const StringRef SectionName = entitySectionName(Section);
    const json::Value *Found = Sections.get(SectionName);
    if (!Found)
      return mismatch("expected the sections Opcodes, Types and Arguments, "
                      "found no " +
                      SectionName);
    const json::Object *Entries = Found->getAsObject();
    if (!Entries)
      return mismatch(SectionName + ": expected an object, found " +
                      kindOf(*Found));
    for (const auto &[Key, Value] : *Entries) {
      const std::string Where = (SectionName + "." + StringRef(Key)).str();
      const json::Array *Elements = Value.getAsArray();
      if (!Elements)
        return mismatch(Where + ": expected an array, found " + kindOf(Value));
      if (Error E = read(Where, *Elements,
                         Vectors[static_cast<unsigned>(Section)][Key]))
        return E;
    }
    return Error::success();
  }

  Error read(const std::string &Where, const json::Array &Elements,
             std::vector<double> &Vector) {
    if (Elements.empty())
      return malformed(Where + ": expected numbers, found an empty array");
    if (Dimension == 0)
      Dimension = Elements.size();
    if (Elements.size() != Dimension)
      return malformed(Where + ": expected dimension " + Twine(Dimension) +
                       ", as in the vectors before it, found " +
                       Twine(Elements.size()));
    Vector.reserve(Dimension);
    for (const json::Value &Element : Elements) {
      std::optional<double> Number = Element.getAsNumber();
      if (!Number)
        return mismatch(Where + ": expected numbers, found " + kindOf(Element));
      if (!std::isfinite(*Number))
        return malformed(Where + ": expected finite numbers, found " +
                         formatv("{0}", *Number).str());
      Vector.push_back(*Number);
    }
    return Error::success();
  }

  std::string Name;
  unsigned Dimension = 0;
  StringMap<std::vector<double>> Vectors[std::size(EntitySections)];
};

} // namespace

Expected<EmbeddingVocabulary> EmbeddingVocabulary::load(StringRef Path) {
  Expected<std::unique_ptr<MemoryBuffer>> Buffer = readFile(Path, MaxFileSize);
  if (!Buffer) {
    Error E = Buffer.takeError();
    return Error(
        E.code(),
        ("cannot read the vocabulary '" + Path + "': " + E.message()).str());
  }
  return parse((*Buffer)->getBuffer(), Path);
}

Expected<EmbeddingVocabulary> EmbeddingVocabulary::parse(StringRef Text,
                                                         StringRef Name) {
  Reader File(Name);
  if (Error E = File.read(Text))
    return E;
  if (File.dimension() == 0)
    return File.mismatch("expected vectors, found none");

  EmbeddingVocabulary Vocabulary;
  Vocabulary.Name = sys::path::filename(Name).str();
  Vocabulary.Dimension = File.dimension();
  Vocabulary.Matrix.resize(std::size_t(NumIREntities) * File.dimension());
  StringMap<char> Known;
  for (unsigned Entity = 0; Entity != NumIREntities; ++Entity) {
    const std::string Key = entityName(Entity);
    const EntitySection Section = sectionOfEntity(Entity);
    Known.insert({(entitySectionName(Section) + ("/" + Key)), 0});
    std::optional<ArrayRef<double>> Vector = File.find(Section, Key);
    if (!Vector) {
      Vocabulary.Missing.push_back(Key);
      continue;
    }
    llvm::transform(*Vector,
                    Vocabulary.Matrix.begin() +
                        std::ptrdiff_t(Entity) * File.dimension(),
                    [Weight = weightOf(Section)](double Element) {
                      return Element * Weight;
                    });
  }
  if (Vocabulary.Missing.size() == NumIREntities)
    return File.mismatch(
        "expected vectors of LLVM's entities, such as Opcodes." +
        entityName(0) + ", found none of them");

  CanonicalForm Canonical(File.dimension());
  for (EntitySection Section : EntitySections)
    for (StringRef Key : File.names(Section)) {
      Canonical.add(Section, Key, *File.find(Section, Key));
      if (!Known.contains((entitySectionName(Section) + ("/" + Key)).str()))
        Vocabulary.Unknown.push_back(Key.str());
    }
  Vocabulary.Hash = Canonical.hash();
  return Vocabulary;
}

std::string EmbeddingVocabulary::metadata() const {
  return formatv("{0}",
                 json::Value(json::Object{{"name", Name}, {"hash", Hash}}));
}

Error EmbeddingVocabulary::check(StringRef Metadata, StringRef Model) const {
  std::optional<StringRef> Wanted, WantedName;
  llvm::Expected<json::Value> Value = parseJSON(Metadata);
  const json::Object *Object = nullptr;
  if (!Value)
    consumeError(Value.takeError());
  else
    Object = Value->getAsObject();
  if (Object) {
    Wanted = Object->getString("hash");
    WantedName = Object->getString("name");
  }
  if (!Wanted || !WantedName)
    return {ErrorCode::Malformed,
            (Model +
             ": mlbridge.vocabulary: expected {\"name\": ..., "
             "\"hash\": ...}, found " +
             Metadata)
                .str()};
  if (*Wanted == Hash)
    return Error::success();
  return {ErrorCode::SchemaMismatch,
          (Model + ": expected embeddings by the vocabulary '" + *WantedName +
           "' (" + *Wanted + "), found '" + Name + "' (" + Hash + ")")
              .str()};
}

void EmbeddingVocabulary::embed(const EntityHistogram &Histogram,
                                Normalization How,
                                MutableArrayRef<float> Into) const {
  assert(Into.size() == Dimension && "an embedding has the vocabulary's size");
  const double Scale =
      How == Normalization::PerInstruction && Histogram.instructions() != 0
          ? 1.0 / double(Histogram.instructions())
          : 1.0;
  // Compute the embedding in blocks, so that the sums of a block fit in
  // registers and the first-level cache.
  constexpr unsigned BlockSize = 64;
  for (unsigned Begin = 0; Begin < Dimension; Begin += BlockSize) {
    const unsigned Size = std::min(BlockSize, Dimension - Begin);
    double Sums[BlockSize] = {};
    for (unsigned Entity = 0; Entity != NumIREntities; ++Entity) {
      const double Count = Histogram[Entity];
      if (Count == 0)
        continue;
      const double *Row = (*this)[Entity].data() + Begin;
      for (unsigned Column = 0; Column != Size; ++Column)
        Sums[Column] += Count * Row[Column];
    }
    for (unsigned Column = 0; Column != Size; ++Column) {
      double Sum = Sums[Column] * Scale;
      if (How == Normalization::Logarithmic)
        Sum = std::copysign(std::log1p(std::abs(Sum)), Sum);
      Into[Begin + Column] = static_cast<float>(Sum);
    }
  }
}

} // namespace MLBridge
