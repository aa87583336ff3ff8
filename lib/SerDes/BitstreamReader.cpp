//===- BitstreamReader.cpp - Reads bitstream messages ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a header line and raw tensors. The format is specified in
/// docs/reference/wire-format.md. Most headers equal the header of the last
/// message. For these headers, reading costs only one comparison, and one
/// pointer update per tensor.
///
//===----------------------------------------------------------------------===//

#include "SerDes/BitstreamReader.h"

#include <utility>

using namespace MLBridge;
using namespace MLBridge::serdes;

/// The name that the reader gives to the tensor of a raw reply.
static constexpr std::string_view RawName = "out";

Expected<Span<const TensorView>>
BitstreamSerDes::Reader::read(Span<const std::byte> Message,
                              const AdviceSpec &Wanted) {
  if (IsRaw)
    return readRaw(Message, Wanted);
  return readFramed(
      {reinterpret_cast<const char *>(Message.data()), Message.size()});
}

//===----------------------------------------------------------------------===//
// A header and tensors
//===----------------------------------------------------------------------===//

Expected<Span<const TensorView>>
BitstreamSerDes::Reader::readFramed(std::string_view Message) {
  // Check whether the message begins with the current line. The line's only
  // newline is its last byte, so such a message has exactly this header.
  if (!Current || !Message.starts_with(Current->Line))
    if (Error E = findSchema(Message))
      return E;
  Layout = Current->Layout;
  std::string_view Payload = Message.substr(Current->Line.size());
  if (Error E = checkPayload(Payload))
    return E;
  const BitstreamHeader::Feature *Feature = Current->Header.features().begin();
  for (TensorView &View : Current->Views) {
    View.Data = Payload.data() + Feature++->Offset;
    if (Error E = checkElements(View, ErrorCode::Malformed))
      return E;
  }
  return Span<const TensorView>(Current->Views);
}

Error BitstreamSerDes::Reader::findSchema(std::string_view Message) {
  Current = nullptr;
  std::size_t End = Message.find('\n');
  if (End == Message.npos)
    return {ErrorCode::Malformed,
            "bitstream message: expected a header line, found no newline in " +
                std::to_string(Message.size()) + " bytes"};
  // Copy the line, because a peer may change shared memory while the line is
  // parsed.
  Line = Message.substr(0, End + 1);
  if (auto Found = Known.find(Line); Found != Known.end()) {
    Current = Found->second.get();
    return Error::success();
  }
  return parseSchema();
}

Error BitstreamSerDes::Reader::parseSchema() {
  Layout = ++NumLayouts;
  Single.Layout = Layout;
  Single.Line.clear();
  Single.Views.clear();
  const std::size_t Length = Line.size() - 1;
  Line.append(Padding, '\0');
  if (Error E = Single.Header.parse({Line.data(), Length}, Tools))
    return E;
  for (const BitstreamHeader::Feature &Feature : Single.Header.features())
    Single.Views.push_back({Feature.Name, Feature.Type, Feature.Dims, nullptr,
                            Feature.NumBytes,
                            Single.Header.lengthsOf(Feature)});
  Single.Line.assign(Line.data(), Length);
  Single.Line += '\n';
  Current = &Single;
  if (Single.Line.size() > MaxKnownLine)
    return Error::success();

  if (Known.size() == MaxKnown)
    Known.clear();
  auto Kept = std::make_unique<Schema>(std::exchange(Single, {}));
  Current = Kept.get();
  Known.emplace(Current->Line, std::move(Kept));
  return Error::success();
}

/// Checks that \p Payload consists of the bytes of all tensors and a newline.
Error BitstreamSerDes::Reader::checkPayload(std::string_view Payload) const {
  std::size_t Size = Current->Header.payloadSize();
  if (Payload.size() > Size && Payload.size() - Size == 1 &&
      Payload.back() == '\n')
    return Error::success();

  bool HasNewline = Payload.ends_with('\n');
  std::size_t Left = Payload.size() - HasNewline;
  for (const TensorView &View : Current->Views) {
    if (View.NumBytes > Left)
      return featureError(ErrorCode::Malformed, View.Name,
                          "expected " + std::to_string(View.NumBytes) +
                              " bytes of " + View.typeStr() + ", found " +
                              std::to_string(Left));
    Left -= View.NumBytes;
  }
  return {ErrorCode::Malformed,
          "bitstream message: expected a newline after " +
              std::to_string(Size) + " bytes of tensors, found " +
              (Left == 0 ? "the end" : std::to_string(Left) + " more bytes")};
}

//===----------------------------------------------------------------------===//
// Raw bytes
//===----------------------------------------------------------------------===//

Expected<Span<const TensorView>>
BitstreamSerDes::Reader::readRaw(Span<const std::byte> Message,
                                 const AdviceSpec &Wanted) {
  using Form = AdviceSpec::Form;
  bool IsList = Wanted.Wanted == Form::List;
  bool IsText = Wanted.Type == ElementType::String;
  if (Wanted.Wanted == Form::Any || (IsList && IsText))
    return Error(ErrorCode::Unsupported,
                 "a bare reply does not contain its type: request a number, a "
                 "list of numbers or a string, as in evaluate<float>()");
  std::size_t Size = elementSize(Wanted.Type);
  bool Fits =
      IsText || (IsList ? Message.size() % Size == 0 : Message.size() == Size);
  if (!Fits)
    return Error(ErrorCode::Malformed,
                 "bare reply: expected " +
                     std::string(IsList ? "a multiple of " : "") +
                     std::to_string(Size) + " bytes (" +
                     std::string(elementTypeName(Wanted.Type)) + "), found " +
                     std::to_string(Message.size()));
  TensorView View{RawName,        Wanted.Type,    Shape(),
                  Message.data(), Message.size(), {}};
  if (IsList)
    View.Dims.push(static_cast<std::int64_t>(Message.size() / Size));
  if (Error E = checkElements(View, ErrorCode::Malformed))
    return E;
  if (Raw.size() != 1 || Raw.front().Type != View.Type ||
      Raw.front().NumBytes != View.NumBytes || Raw.front().Dims != View.Dims)
    Layout = ++NumLayouts;
  Raw.assign(1, View);
  return Span<const TensorView>(Raw);
}
