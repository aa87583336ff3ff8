//===- FuzzSignature.cpp - Any bytes as a SavedModel's signature ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a signature from any bytes. If they are a MetaGraphDef, protoc's code
/// rewrites the message, and the result must match what protoc's code reads.
/// TensorFlow's C API also supplies a rewritten message, in which a map has no
/// duplicate keys.
///
//===----------------------------------------------------------------------===//

#include "TF/SignatureReader.h"

#include "Fuzz.h"
#include "MutateMessage.h"
#include "Support/PrintableText.h"
#include "meta_graph.pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <charconv>
#include <map>

using namespace MLBridge;
using namespace MLBridge::fuzz;
using namespace MLBridge::tf;
using namespace ::fuzz::tf;

static constexpr std::string_view Wanted = "serve";

//===----------------------------------------------------------------------===//
// The expected signature
//===----------------------------------------------------------------------===//

/// Parses "dense:0": output 0 of "dense".
static bool readPlace(std::string_view Name, SignatureTensor &Out) {
  const std::size_t Colon = Name.find_last_of(':');
  if (Colon == 0 || Colon == Name.npos)
    return false;
  const std::string_view Digits = Name.substr(Colon + 1);
  if (Digits.empty() || Digits.find_first_not_of("0123456789") != Digits.npos)
    return false;
  Out.Operation = Name.substr(0, Colon);
  return std::from_chars(Digits.begin(), Digits.end(), Out.Index).ec ==
         std::errc();
}

/// Checks the fields in the order in which they are in the message.
static ErrorCode readInfo(const TensorInfo &Info, SignatureTensor &Out) {
  const bool HasName = Info.encoding_case() == TensorInfo::kName;
  if (HasName && !readPlace(Info.name(), Out))
    return ErrorCode::Malformed;
  const std::optional<ElementType> Type = fromTF(Info.dtype());
  const bool IsNumber = Type && *Type != ElementType::String;
  if (Info.dtype() != 0 && !IsNumber)
    return ErrorCode::Unsupported;
  if (Info.tensor_shape().dim_size() > int(Shape::MaxRank) ||
      Info.tensor_shape().unknown_rank())
    return ErrorCode::Unsupported;
  if (!HasName)
    return Info.encoding_case() == TensorInfo::ENCODING_NOT_SET
               ? ErrorCode::Malformed
               : ErrorCode::Unsupported;
  if (!IsNumber)
    return ErrorCode::Unsupported;
  Out.Spec.Type = *Type;
  for (const TensorShapeProto::Dim &Dim : Info.tensor_shape().dim())
    Out.Spec.Dims.push(Dim.size() < 0 ? TensorSpec::AnyExtent : Dim.size());
  return ErrorCode::Success;
}

/// Returns the entries in the order in which protoc's code writes them: sorted
/// by name.
static std::map<std::string, TensorInfo>
sorted(const google::protobuf::Map<std::string, TensorInfo> &Infos) {
  return {Infos.begin(), Infos.end()};
}

static ErrorCode readExpected(const MetaGraphDef &Graph, Signature &Out) {
  auto Found = Graph.signature_def().find(std::string(Wanted));
  if (Found == Graph.signature_def().end())
    return ErrorCode::InvalidArgument;
  for (const auto &[Name, Info] : sorted(Found->second.inputs())) {
    SignatureTensor Tensor;
    Tensor.Spec.Name = Name;
    if (ErrorCode Wrong = readInfo(Info, Tensor); Wrong != ErrorCode::Success)
      return Wrong;
    Out.Inputs.push_back(Tensor);
  }
  for (const auto &[Name, Info] : sorted(Found->second.outputs())) {
    SignatureTensor Tensor;
    Tensor.Spec.Name = Name;
    ErrorCode Wrong = readInfo(Info, Tensor);
    if (Wrong == ErrorCode::Success)
      Out.Outputs.push_back(Tensor);
    else if (Wrong != ErrorCode::Unsupported)
      return Wrong;
  }
  return Out.Outputs.empty() ? ErrorCode::Unsupported : ErrorCode::Success;
}

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

static void requireSame(const std::vector<SignatureTensor> &Expected,
                        const std::vector<SignatureTensor> &Found) {
  require(Expected.size() == Found.size(), "no tensor is missing");
  for (std::size_t I = 0; I < Found.size(); ++I) {
    const SignatureTensor &A = Expected[I], &B = Found[I];
    require(A.Spec.Name == B.Spec.Name, "tensors are in order", B.Spec.Name);
    require(A.Spec.Type == B.Spec.Type && A.Spec.Dims == B.Spec.Dims,
            "tensors have their type and shape", B.Spec.typeStr());
    require(A.Operation == B.Operation && A.Index == B.Index,
            "tensors have their place", B.Operation);
  }
}

/// Reads any bytes and checks the properties that hold for every result.
static Expected<Signature> read(std::string_view Bytes) {
  Expected<Signature> Found = readSignature(Bytes, Wanted, "model");
  if (!Found) {
    const std::string_view Message = Found.message();
    require(printable(Message, 1000) == Message, "errors can be printed",
            Message);
    return Found;
  }
  for (const auto *Tensors : {&Found->Inputs, &Found->Outputs})
    for (const SignatureTensor &T : *Tensors) {
      require(!T.Operation.empty() && T.Index >= 0, "tensors have a place");
      require(T.Spec.Type != ElementType::String, "tensors are numbers");
      for (std::int64_t Extent : T.Spec.Dims)
        require(Extent >= TensorSpec::AnyExtent,
                "a free extent is always AnyExtent");
    }
  return Found;
}

static void requireAsExpected(const MetaGraphDef &Graph) {
  std::string Bytes;
  {
    google::protobuf::io::StringOutputStream Into(&Bytes);
    google::protobuf::io::CodedOutputStream Stream(&Into);
    Stream.SetSerializationDeterministic(true);
    require(Graph.SerializeToCodedStream(&Stream),
            "the message can be written");
  }
  Signature Out;
  const ErrorCode Code = readExpected(Graph, Out);
  Expected<Signature> Found = read(Bytes);
  require(Found.code() == Code, "failures have the expected code",
          Found.message());
  if (!Found)
    return;
  requireSame(Out.Inputs, Found->Inputs);
  requireSame(Out.Outputs, Found->Outputs);
}

/// True if \p M contains groups. TensorFlow's messages have none, and the
/// reader rejects them.
static bool hasGroups(const google::protobuf::Message &M) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection &R = *M.GetReflection();
  const google::protobuf::UnknownFieldSet &Unknown = R.GetUnknownFields(M);
  for (int I = 0; I < Unknown.field_count(); ++I)
    if (Unknown.field(I).type() == google::protobuf::UnknownField::TYPE_GROUP)
      return true;
  std::vector<const FieldDescriptor *> Fields;
  R.ListFields(M, &Fields);
  for (const FieldDescriptor *Field : Fields) {
    if (Field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    const int Count = Field->is_repeated() ? R.FieldSize(M, Field) : 1;
    for (int I = 0; I < Count; ++I)
      if (hasGroups(Field->is_repeated() ? R.GetRepeatedMessage(M, Field, I)
                                         : R.GetMessage(M, Field)))
        return true;
  }
  return false;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  // Without this, Protobuf would log each text that is not UTF-8.
  static const google::protobuf::LogSilencer Quiet;
  (void)bool(read({reinterpret_cast<const char *>(Data), Size}));
  MetaGraphDef Graph;
  if (!Graph.ParseFromArray(Data, static_cast<int>(Size)))
    return 0;
  if (!hasGroups(Graph))
    requireAsExpected(Graph);
  Graph.DiscardUnknownFields();
  requireAsExpected(Graph);
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutating signatures
//===----------------------------------------------------------------------===//

static const char *const Strings[] = {
    "",     "serve", "__saved_model_init_op", "a", "dense:0", "dense:01",
    "x:-0", "x:-1",  "x:2147483648",          ":", "a\x1b[0m"};
static constexpr std::int64_t Numbers[] = {
    -2, -1, 0,  1,  2,  3,  4,  5,         6,         7,
    9,  10, 17, 19, 22, 23, 99, INT64_MAX, INT64_MIN, std::int64_t(1) << 32};

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *Data,
                                               std::size_t Size,
                                               std::size_t MaxSize,
                                               unsigned Seed) {
  return mutateMessage<MetaGraphDef>({Strings, Numbers}, Data, Size, MaxSize,
                                     Seed);
}
