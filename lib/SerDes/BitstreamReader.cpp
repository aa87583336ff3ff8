//===- BitstreamReader.cpp - A bitstream message to tensors ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a header line and raw tensors: docs/wire-format.md. A message whose
/// header is the last one's costs a comparison and a pointer for each tensor.
///
//===----------------------------------------------------------------------===//

#include "SerDes/BitstreamReader.h"

using namespace MLBridge;
using namespace MLBridge::serdes;

/// The name of the one tensor in a raw reply.
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
  // The line holds no newline but its last byte, so a message that starts with
  // it has this very line.
  if (Line.empty() || !Message.starts_with(Line))
    if (Error E = readHeader(Message))
      return E;
  std::string_view Payload = Message.substr(Line.size());
  if (Error E = checkPayload(Payload))
    return E;
  const BitstreamHeader::Feature *Feature = Header.features().begin();
  for (TensorView &View : Views) {
    View.Data = Payload.data() + Feature++->Offset;
    if (Error E = checkElements(View, ErrorCode::Malformed))
      return E;
  }
  return Span<const TensorView>(Views);
}

Error BitstreamSerDes::Reader::readHeader(std::string_view Message) {
  Line.clear();
  Views.clear();
  ++Layout;
  std::size_t End = Message.find('\n');
  if (End == Message.npos)
    return {ErrorCode::Malformed,
            "bitstream message: expected a header line, found no newline in " +
                std::to_string(Message.size()) + " bytes"};
  if (Error E = Header.parse(Message.substr(0, End)))
    return E;
  for (const BitstreamHeader::Feature &Feature : Header.features())
    Views.push_back({Feature.Name, Feature.Type, Feature.Dims, nullptr,
                     Feature.NumBytes, Header.lengthsOf(Feature)});
  Line = Message.substr(0, End + 1);
  return Error::success();
}

/// Whether \p Payload is the bytes of all tensors and a newline.
Error BitstreamSerDes::Reader::checkPayload(std::string_view Payload) const {
  std::size_t Size = Header.payloadSize();
  if (Payload.size() > Size && Payload.size() - Size == 1 &&
      Payload.back() == '\n')
    return Error::success();

  bool HasNewline = Payload.ends_with('\n');
  std::size_t Left = Payload.size() - HasNewline;
  for (const TensorView &View : Views) {
    if (View.NumBytes > Left)
      return featureError(ErrorCode::Malformed, View.Name,
                          "expected " + std::to_string(View.NumBytes) +
                              " bytes of " + View.typeStr() + ", found " +
                              std::to_string(Left));
    Left -= View.NumBytes;
  }
  return {ErrorCode::Malformed,
          "bitstream message: expected a newline behind " +
              std::to_string(Size) + " bytes of tensors, found " +
              (Left == 0 ? "the end" : std::to_string(Left) + " bytes more")};
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
                 "a bare reply is bytes that do not say what they are: ask for "
                 "a number, a list of numbers or a string, as in "
                 "evaluate<float>()");
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
  if (Views.size() != 1 || Views.front().Type != View.Type ||
      Views.front().NumBytes != View.NumBytes ||
      Views.front().Dims != View.Dims)
    ++Layout;
  Views.assign(1, View);
  return Span<const TensorView>(Views);
}
