//===- JSONValue.cpp - Reads a JSON value as a tensor ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads nested arrays and determines their shape. The classes of
/// JSONElements.h read the elements.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONValue.h"

#include "SerDes/JSONElements.h"

namespace MLBridge::serdes {
namespace {

/// Passes the scalars of a value to \c Elements. Checks that the value's arrays
/// form a dense tensor.
template <typename Elements> class TensorWalker {
public:
  explicit TensorWalker(Elements &Reader) : Reader(Reader) {
    Extents.fill(Unknown);
  }

  Error walk(ondemand::value Value) {
    return isArray(Value) ? walkArray(Value, 0) : walkScalar(Value);
  }

  Shape shape() const {
    return Shape(Span<const std::int64_t>(Extents.data(), Rank));
  }

private:
  static constexpr std::int64_t Unknown = -1;

  static bool isArray(ondemand::value &Value) {
    return kindOf(Value.raw_json_token()) == JSONKind::Array;
  }

  static Error ragged() {
    return {ErrorCode::Malformed, "its arrays are of different lengths"};
  }

  Error walkScalar(ondemand::value &Value) {
    return Reader.take(Value) ? Error::success() : Reader.takeOther(Value);
  }

  Error walkArray(ondemand::value &Value, std::size_t Level) {
    if (Level == Shape::MaxRank)
      return {ErrorCode::Unsupported, "a tensor has at most " +
                                          std::to_string(Shape::MaxRank) +
                                          " dimensions"};
    if (ElementLevel && Level >= *ElementLevel)
      return ragged();
    Rank = std::max(Rank, Level + 1);
    ondemand::array Items;
    if (simdjson::error_code E = Value.get_array().get(Items))
      return jsonError(E, "an array");
    std::int64_t Count = 0;
    for (auto Result : Items) {
      ondemand::value Item;
      if (simdjson::error_code E = std::move(Result).get(Item))
        return jsonError(E, "an array");
      ++Count;
      // Try the common case first. Usually, the element has the same kind as
      // the last element.
      if (!Reader.take(Item)) {
        if (isArray(Item)) {
          if (Error E = walkArray(Item, Level + 1))
            return E;
          continue;
        }
        if (Error E = Reader.takeOther(Item))
          return E;
      }
      if (!isElementLevel(Level + 1))
        return ragged();
    }
    if (Extents[Level] == Unknown)
      Extents[Level] = Count;
    return Extents[Level] == Count ? Error::success() : ragged();
  }

  /// Returns true if elements may have depth \p Level, which is the number of
  /// arrays around an element. All elements must have the same depth. No
  /// array, not even an empty one, may have this depth.
  bool isElementLevel(std::size_t Level) {
    if (!ElementLevel && Rank == Level)
      ElementLevel = Level;
    return ElementLevel == Level;
  }

  Elements &Reader;
  std::array<std::int64_t, Shape::MaxRank> Extents;
  std::size_t Rank = 0;
  std::optional<std::size_t> ElementLevel;
};

} // namespace

template <typename Elements>
static Error readWith(Elements Reader, ondemand::value Value,
                      ElementStore &Store, StoredTensor &Out) {
  TensorWalker<Elements> Walker(Reader);
  if (Error E = Walker.walk(Value))
    return E;
  Out.Dims = Walker.shape();
  if (Error E = Reader.finish(Out))
    return E;
  Out.NumBytes = Store.size() - Out.Offset;
  // Remove the length of a single string, because NumBytes already is its size.
  if (Out.Dims.isScalar())
    Store.truncateLengths(Out.FirstLength);
  Out.NumLengths = Store.numLengths() - Out.FirstLength;
  return Error::success();
}

Error readJSONValue(ondemand::value Value, const TypeExpectation &Expected,
                    ElementStore &Store, StoredTensor &Out) {
  constexpr std::size_t ScalarAlignment = 8;
  bool IsArray = kindOf(Value.raw_json_token()) == JSONKind::Array;
  Out.Offset = Store.align(IsArray ? ElementStore::Alignment : ScalarAlignment);
  Out.FirstLength = Store.numLengths();
  using Source = TypeExpectation::Source;
  if (Expected.From == Source::Value)
    return readWith(NaturalElements(Store), Value, Store, Out);
  bool ExactIntegers = Expected.From == Source::Caller;
  switch (Expected.Type) {
  case ElementType::Float:
    return readWith(FloatElements<float>(Store, ExactIntegers), Value, Store,
                    Out);
  case ElementType::Double:
    return readWith(FloatElements<double>(Store, ExactIntegers), Value, Store,
                    Out);
  case ElementType::Bool:
    return readWith(BoolElements(Store), Value, Store, Out);
  case ElementType::String:
    return readWith(StringElements(Store), Value, Store, Out);
  default:
    return readWith(IntegerElements(Store, Expected.Type), Value, Store, Out);
  }
}

} // namespace MLBridge::serdes
