//===- BitstreamHeader.cpp - Parses a message's header --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses header lines, for example
/// `{"features":[{"name":"x","port":0,"type":"float","shape":[3]}]}`. The keys
/// may have any order. Unknown keys are skipped. For example, LLVM's logs have
/// the key "score" next to "features".
///
//===----------------------------------------------------------------------===//

#include "SerDes/BitstreamHeader.h"

namespace MLBridge::serdes {

/// Records which keys of a feature have been read.
struct BitstreamHeader::Fields {
  /// The possible values of the key "semantics".
  enum class Meaning { Numbers, Bool, String, Strings };

  bool Name = false;
  bool Port = false;
  bool Type = false;
  bool Shape = false;
  bool Semantics = false;
  bool Lengths = false;
  Meaning Is = Meaning::Numbers;

  void setSemantics(std::string_view Text) {
    if (Text == "bool")
      Is = Meaning::Bool;
    else if (Text == "string")
      Is = Meaning::String;
    else if (Text == "strings")
      Is = Meaning::Strings;
    // If the value is unknown, read the feature as plain numbers. A newer peer
    // may have sent the value.
  }
};

static Error malformedHeader(const std::string &What) {
  return {ErrorCode::Malformed, "bitstream header: " + What};
}

static Error malformedHeader(simdjson::error_code Code,
                             const std::string &Where) {
  return jsonError(Code, "bitstream header: " + Where);
}

/// Returns an error that names the feature, if its name has been read.
static Error malformedFeature(std::string_view Name, const std::string &What) {
  if (Name.empty())
    return malformedHeader("a feature: " + What);
  return featureError(ErrorCode::Malformed, Name, What);
}

/// Passes each integer in \p List to \p Push. Stops if \p Push returns an
/// error.
template <typename F>
static Error parseIntegers(ondemand::value &List, const std::string &Where,
                           F Push) {
  ondemand::array Items;
  if (simdjson::error_code E = List.get_array().get(Items))
    return malformedHeader(E, Where);
  for (auto Item : Items) {
    std::int64_t Value;
    if (simdjson::error_code E = Item.get_int64().get(Value))
      return malformedHeader(E, Where);
    if (Value < 0)
      return malformedHeader(Where +
                             ": expected a non-negative integer, found " +
                             std::to_string(Value));
    if (Error E = Push(Value))
      return E;
  }
  return Error::success();
}

Error BitstreamHeader::parse(std::string_view Line, Tools &With) {
  Count = 0;
  PayloadSize = 0;
  Lengths.clear();
  Error E = parseDocument(Line, With);
  if (E)
    Count = 0;
  return E;
}

Error BitstreamHeader::parseDocument(std::string_view Line, Tools &With) {
  if (Line.size() > MaxBitstreamHeader)
    return malformedHeader("its " + std::to_string(Line.size()) +
                           " bytes exceed the limit of " +
                           std::to_string(MaxBitstreamHeader));
  ondemand::document Document;
  if (simdjson::error_code E = With.Parser.start(Line, Document))
    return malformedHeader(E, "not JSON");
  ondemand::object Top;
  if (simdjson::error_code E = Document.get_object().get(Top))
    return malformedHeader(E, "not an object");
  bool HasFeatures = false;
  for (auto Item : Top) {
    ondemand::field Field;
    std::string_view Key;
    if (simdjson::error_code E = std::move(Item).get(Field))
      return malformedHeader(E, "not an object");
    if (simdjson::error_code E = Field.unescaped_key().get(Key))
      return malformedHeader(E, "a key");
    if (Key != "features")
      continue;
    if (HasFeatures)
      return malformedHeader("\"features\" appears twice");
    HasFeatures = true;
    if (Error E = parseFeatures(Field.value()))
      return E;
  }
  if (!JSONParser::isAtEnd(Document))
    return malformedHeader("something follows the object");
  if (!HasFeatures)
    return malformedHeader("it has no \"features\"");
  if (std::optional<std::string_view> Duplicate =
          With.Duplicates.find(features()))
    return malformedFeature(*Duplicate, "appears twice");
  return Error::success();
}

Error BitstreamHeader::parseFeatures(ondemand::value List) {
  ondemand::array Items;
  if (simdjson::error_code E = List.get_array().get(Items))
    return malformedHeader(E, "\"features\"");
  for (auto Item : Items) {
    ondemand::object Object;
    if (simdjson::error_code E = Item.get_object().get(Object))
      return malformedHeader(E, "\"features\"");
    if (Count == Features.size())
      Features.emplace_back();
    Feature &Out = Features[Count];
    if (Error E = parseFeature(Object, Out))
      return E;
    Out.Offset = PayloadSize;
    if (__builtin_add_overflow(PayloadSize, Out.NumBytes, &PayloadSize))
      return malformedHeader("its tensors exceed 2^64 bytes");
    ++Count;
  }
  return Error::success();
}

Error BitstreamHeader::parseFeature(ondemand::object Object, Feature &Out) {
  Out.Name.clear();
  Out.Dims = Shape();
  Out.FirstLength = Lengths.size();
  Out.NumLengths = 0;
  Fields Seen;
  for (auto Item : Object) {
    ondemand::field Field;
    std::string_view Key;
    if (simdjson::error_code E = std::move(Item).get(Field))
      return malformedHeader(E, "\"features\"");
    if (simdjson::error_code E = Field.unescaped_key().get(Key))
      return malformedHeader(E, "a feature's key");
    if (Error E = parseField(Key, Field.value(), Out, Seen))
      return E;
  }
  if (!Seen.Name || Out.Name.empty())
    return malformedHeader("a feature has no name");
  if (!Seen.Type)
    return malformedFeature(Out.Name, "has no \"type\"");
  if (!Seen.Shape)
    return malformedFeature(Out.Name, "has no \"shape\"");
  return resolve(Seen, Out);
}

Error BitstreamHeader::parseField(std::string_view Key, ondemand::value Value,
                                  Feature &Out, Fields &Seen) {
  struct Known {
    std::string_view Key;
    bool Fields::*Flag;
  };
  static constexpr Known KnownKeys[] = {
      {"name", &Fields::Name},           {"port", &Fields::Port},
      {"type", &Fields::Type},           {"shape", &Fields::Shape},
      {"semantics", &Fields::Semantics}, {"lengths", &Fields::Lengths},
  };
  const Known *Match = std::ranges::find(KnownKeys, Key, &Known::Key);
  if (Match == std::end(KnownKeys))
    return Error::success();
  bool &IsSeen = Seen.*(Match->Flag);
  if (IsSeen)
    return malformedFeature(Out.Name, quoted(Key) + " appears twice");
  IsSeen = true;

  // From here on, use Match->Key instead of Key. Key points into the parser's
  // buffer, which later reads may overwrite.
  std::string Where = quoted(Match->Key);
  if (Match->Flag == &Fields::Shape)
    return parseIntegers(Value, Where, [&](std::int64_t Extent) {
      if (Out.Dims.push(Extent))
        return Error::success();
      return Error(ErrorCode::Unsupported,
                   "bitstream header: a shape has more than " +
                       std::to_string(Shape::MaxRank) + " extents");
    });
  if (Match->Flag == &Fields::Lengths)
    return parseIntegers(Value, Where, [&](std::int64_t Length) {
      Lengths.push_back(static_cast<std::uint64_t>(Length));
      ++Out.NumLengths;
      return Error::success();
    });
  if (Match->Flag == &Fields::Port) {
    // Ignore the port. LLVM uses it to distinguish tensors with the same name,
    // but here names are unique.
    std::int64_t Port;
    if (simdjson::error_code E = Value.get_int64().get(Port))
      return malformedHeader(E, Where);
    return Error::success();
  }
  std::string_view Text;
  if (simdjson::error_code E = Value.get_string().get(Text))
    return malformedHeader(E, Where);
  if (Match->Flag == &Fields::Name) {
    Out.Name = Text;
  } else if (Match->Flag == &Fields::Semantics) {
    Seen.setSemantics(Text);
  } else {
    std::optional<ElementType> Type = parseElementType(Text);
    if (!Type || *Type == ElementType::Bool || *Type == ElementType::String)
      return malformedFeature(Out.Name, "unknown type " + quoted(Text));
    Out.Type = *Type;
  }
  return Error::success();
}

Error BitstreamHeader::resolve(const Fields &Seen, Feature &Out) {
  std::optional<std::size_t> Elements = Out.Dims.numElements();
  if (!Elements ||
      __builtin_mul_overflow(*Elements, elementSize(Out.Type), &Out.NumBytes))
    return malformedFeature(Out.Name, "shape " + Out.Dims.str() +
                                          " has more elements than memory has "
                                          "bytes");
  if (Seen.Is != Fields::Meaning::Strings) {
    Lengths.resize(Out.FirstLength);
    Out.NumLengths = 0;
  }
  if (Seen.Is == Fields::Meaning::Numbers)
    return Error::success();
  if (Out.Type != ElementType::UInt8)
    return malformedFeature(Out.Name,
                            "expected uint8_t for a bool or string, found " +
                                std::string(elementTypeName(Out.Type)));
  if (Seen.Is == Fields::Meaning::Bool) {
    Out.Type = ElementType::Bool;
    return Error::success();
  }
  return resolveStrings(Seen, Out);
}

Error BitstreamHeader::resolveStrings(const Fields &Seen, Feature &Out) {
  if (Out.Dims.rank() != 1)
    return malformedFeature(
        Out.Name, "expected shape [bytes] for text, found " + Out.Dims.str());
  Out.Type = ElementType::String;
  if (Seen.Is == Fields::Meaning::String) {
    Out.Dims = Shape();
    return Error::success();
  }
  std::uint64_t Total = 0;
  for (std::uint64_t Length : lengthsOf(Out))
    if (__builtin_add_overflow(Total, Length, &Total))
      return malformedFeature(Out.Name, "its \"lengths\" exceed 2^64 bytes");
  if (Total != Out.NumBytes)
    return malformedFeature(
        Out.Name, "expected \"lengths\" of " + std::to_string(Out.NumBytes) +
                      " bytes in all, found " + std::to_string(Total));
  Out.Dims = Shape{static_cast<std::int64_t>(Out.NumLengths)};
  return Error::success();
}

} // namespace MLBridge::serdes
