//===- JSONReader.cpp - Reads JSON messages -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads one JSON object. The format is specified in
/// docs/reference/wire-format.md. Messages of JSONSerDes are read in one pass.
/// Foreign messages may need up to three passes. A message is read again in two
/// cases:
/// - It declares its types only after a feature.
/// - A value does not have the requested type.
///
//===----------------------------------------------------------------------===//

#include "SerDes/JSONReader.h"

#include "SerDes/JSONNames.h"

using namespace MLBridge;
using namespace MLBridge::serdes;

static Error malformed(simdjson::error_code Code, std::string_view What) {
  return jsonError(Code, "JSON message: " + std::string(What));
}

Expected<Span<const TensorView>>
JSONSerDes::Reader::read(Span<const std::byte> Message,
                         const AdviceSpec &Wanted) {
  ondemand::document Document;
  if (simdjson::error_code E = Parser.start(
          {reinterpret_cast<const char *>(Message.data()), Message.size()},
          Document))
    return malformed(E, "not JSON");

  AdviceSpec Hint = Wanted;
  HaveTypes = false;
  Types.clear();
  Changed = false;
  std::size_t LastCount = Count;
  for (;;) {
    Expected<Pass> Result = readFields(Document, Hint);
    Error E = Result ? Error::success() : Result.takeError();
    if (Result && *Result == Pass::Complete) {
      if (!JSONParser::isAtEnd(Document))
        E = {ErrorCode::Malformed,
             "JSON message: something follows the object"};
      else
        E = checkMessage();
    }
    if (E) {
      // The slots now contain parts of two messages. Therefore, make sure that
      // no later message compares equal to them.
      Count = 0;
      ++Layout;
      return E;
    }
    if (*Result == Pass::Complete)
      break;
    if (*Result == Pass::UnwantedType)
      Hint = AdviceSpec::any();
    Document.rewind();
  }
  // Use |= instead of ||, because takeChange() must always be called.
  Changed |= Store.takeChange();
  if (Changed || Count != LastCount)
    ++Layout;
  makeViews();
  return Span<const TensorView>(Views);
}

Expected<JSONSerDes::Reader::Pass>
JSONSerDes::Reader::readFields(ondemand::document &Document,
                               const AdviceSpec &Wanted) {
  Count = 0;
  Store.clear();
  Types.startLookups();
  ondemand::object Fields;
  if (simdjson::error_code E = Document.get_object().get(Fields))
    return malformed(E, "not an object");
  bool SawTypes = false;
  Error Undeclared;
  for (auto Item : Fields) {
    ondemand::field Field;
    std::string_view Name;
    if (simdjson::error_code E = std::move(Item).get(Field))
      return malformed(E, "not an object");
    if (simdjson::error_code E = Field.unescaped_key().get(Name))
      return malformed(E, "a name");
    if (Name != JSONNames::Types) {
      Expected<Pass> Result = readFeature(Name, Field.value(), Wanted);
      if (!HaveTypes && Result.code() == ErrorCode::SchemaMismatch) {
        // Continue, because "_types" may follow and declare a type that fits.
        Undeclared = Result.takeError();
        continue;
      }
      if (!Result || *Result != Pass::Complete)
        return Result;
      continue;
    }
    if (SawTypes)
      return Error(ErrorCode::Malformed,
                   "JSON message: " + quoted(Name) + " appears twice");
    SawTypes = true;
    if (HaveTypes)
      continue;
    if (Error E = Types.read(Field.value()))
      return E;
    HaveTypes = true;
    if (Count != 0 || Undeclared)
      return Pass::LateTypes;
    Types.startLookups();
  }
  if (Undeclared)
    return Undeclared;
  return Pass::Complete;
}

/// Returns the type that is expected for the feature \p Name before its value
/// is read.
static TypeExpectation expectationFor(std::string_view Name,
                                      const JSONTypes::Entry *Declared,
                                      const AdviceSpec &Wanted) {
  using Source = TypeExpectation::Source;
  if (Declared)
    return {Source::Message, Declared->Type};
  // A feature with a reserved name is not advice, so it need not have the
  // requested type.
  if (Wanted.Wanted == AdviceSpec::Form::Any || Name.starts_with('_'))
    return {};
  return {Source::Caller, Wanted.Type};
}

/// Gives \p Tensor its declared shape. The declared shape must be the shape of
/// the nested arrays, unless an extent is 0. In that case the arrays, for
/// example `[]`, do not show the other extents.
static Error applyShape(const Shape &Declared, StoredTensor &Tensor) {
  if (Tensor.Dims == Declared)
    return Error::success();
  Shape Visible;
  for (std::int64_t Extent : Declared) {
    Visible.push(Extent);
    if (Extent == 0)
      break;
  }
  bool IsEmpty = Declared.numElements() == std::size_t(0);
  bool Fits = IsEmpty && (Tensor.Dims == Visible || Tensor.Dims == Shape{0});
  // Reject strings whose shape differs from the declared shape. The first test
  // has already accepted empty lists of strings, because their shape is [0].
  if (!Fits || Tensor.Type == ElementType::String)
    return {ErrorCode::SchemaMismatch, "expected shape " + Declared.str() +
                                           ", found " + Tensor.Dims.str()};
  Tensor.Dims = Declared;
  return Error::success();
}

Expected<JSONSerDes::Reader::Pass>
JSONSerDes::Reader::readFeature(std::string_view Name, ondemand::value Value,
                                const AdviceSpec &Wanted) {
  const JSONTypes::Entry *Declared = Types.lookUp(Name);
  TypeExpectation Expectation = expectationFor(Name, Declared, Wanted);
  StoredTensor Tensor;
  Error E = readJSONValue(Value, Expectation, Store, Tensor);
  if (!E && Declared && Declared->Dims)
    E = applyShape(*Declared->Dims, Tensor);
  if (E) {
    if (Expectation.From == TypeExpectation::Source::Caller &&
        E.code() == ErrorCode::SchemaMismatch)
      return Pass::UnwantedType;
    return featureError(E.code(), Name, E.message());
  }
  if (Count == Slots.size())
    Slots.emplace_back();
  Slot &Out = Slots[Count++];
  if (Out.Name != Name) {
    Out.Name = Name;
    NumDistinct = std::min(NumDistinct, Count - 1);
    Changed = true;
  }
  if (!(Out.Tensor == Tensor)) {
    Out.Tensor = Tensor;
    Changed = true;
  }
  return Pass::Complete;
}

/// Makes the checks that need all features.
Error JSONSerDes::Reader::checkMessage() {
  if (Error E = Types.checkAllUsed())
    return E;
  if (Count <= NumDistinct)
    return Error::success();
  for (std::size_t I = 0; I < Count; ++I)
    if (Slots[I].Name.empty())
      return {ErrorCode::Malformed, "JSON message: a feature has no name"};
  if (std::optional<std::string_view> Duplicate =
          Duplicates.find(Span<const Slot>(Slots.data(), Count)))
    return featureError(ErrorCode::Malformed, *Duplicate, "appears twice");
  NumDistinct = Count;
  return Error::success();
}

void JSONSerDes::Reader::makeViews() {
  Views.clear();
  for (std::size_t I = 0; I < Count; ++I) {
    const auto &[Name, Tensor] = Slots[I];
    Views.push_back({Name, Tensor.Type, Tensor.Dims, Store.at(Tensor.Offset),
                     Tensor.NumBytes,
                     Store.lengths(Tensor.FirstLength, Tensor.NumLengths)});
  }
}
