//===- ONNXWriter.cpp - Writes ONNX files ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes by field number the few messages of onnx.proto that the tests need.
///
//===----------------------------------------------------------------------===//

#include "support/ONNXWriter.h"

#include <fstream>
#include <numeric>

using namespace MLBridge;
using namespace MLBridge::test;

//===----------------------------------------------------------------------===//
// Protobuf
//===----------------------------------------------------------------------===//

static std::string varint(std::uint64_t Value) {
  std::string Text;
  for (; Value >= 128; Value >>= 7)
    Text += static_cast<char>(Value | 128);
  return Text += static_cast<char>(Value);
}

static std::string field(int Number, std::int64_t Value) {
  return varint(std::uint64_t(Number) << 3) + varint(std::uint64_t(Value));
}

static std::string field(int Number, const std::string &Value) {
  return varint(std::uint64_t(Number) << 3 | 2) + varint(Value.size()) + Value;
}

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

/// Returns TensorProto.DataType for \p Type.
static std::int64_t dataType(ElementType Type) {
  static constexpr int Types[] = {3, 5, 6, 7, 2, 4, 12, 13, 1, 11, 9, 8};
  return Types[std::size_t(Type)];
}

static std::string tensorType(ElementType Type,
                              const std::vector<ONNXWriter::Extent> &Extents) {
  std::string Dims;
  for (const ONNXWriter::Extent &E : Extents)
    Dims += field(1, std::holds_alternative<std::int64_t>(E)
                         ? field(1, std::get<std::int64_t>(E))
                         : field(2, std::get<std::string>(E)));
  return field(1, field(1, dataType(Type)) + field(2, Dims));
}

static std::string valueInfo(const std::string &Name, const std::string &Type) {
  return field(1, Name) + field(2, Type);
}

ONNXWriter &ONNXWriter::input(const std::string &Name, ElementType Type,
                              const std::vector<Extent> &Extents) {
  Graph += field(11, valueInfo(Name, tensorType(Type, Extents)));
  return *this;
}

ONNXWriter &ONNXWriter::output(const std::string &Name, ElementType Type,
                               const std::vector<Extent> &Extents) {
  Graph += field(12, valueInfo(Name, tensorType(Type, Extents)));
  return *this;
}

static std::string typeOfAnyRank(ElementType Type) {
  return field(1, field(1, dataType(Type)));
}

ONNXWriter &ONNXWriter::inputOfAnyRank(const std::string &Name,
                                       ElementType Type) {
  Graph += field(11, valueInfo(Name, typeOfAnyRank(Type)));
  return *this;
}

ONNXWriter &ONNXWriter::outputOfAnyRank(const std::string &Name,
                                        ElementType Type) {
  Graph += field(12, valueInfo(Name, typeOfAnyRank(Type)));
  return *this;
}

ONNXWriter &ONNXWriter::sequenceOutput(const std::string &Name,
                                       ElementType Type) {
  const std::string Element = field(1, field(1, dataType(Type)));
  Graph += field(12, valueInfo(Name, field(4, field(1, Element))));
  return *this;
}

/// Returns a node without its attributes.
static std::string plainNode(const std::string &Operator,
                             const std::vector<std::string> &Inputs,
                             const std::vector<std::string> &Outputs) {
  std::string Node;
  for (const std::string &Input : Inputs)
    Node += field(1, Input);
  for (const std::string &Output : Outputs)
    Node += field(2, Output);
  return Node += field(4, Operator);
}

static std::string graphOf(const std::string &Contents) {
  return Contents + field(2, std::string("test"));
}

ONNXWriter &ONNXWriter::nodeWithBody(const std::string &Operator,
                                     const std::vector<std::string> &Inputs,
                                     const std::vector<std::string> &Outputs,
                                     const ONNXWriter &Body) {
  const std::string Attribute = field(1, std::string("body")) +
                                field(6, graphOf(Body.Graph)) +
                                field(20, std::int64_t(5)); // GRAPH
  Graph += field(1, plainNode(Operator, Inputs, Outputs) + field(5, Attribute));
  return *this;
}

ONNXWriter &ONNXWriter::node(const std::string &Operator,
                             const std::vector<std::string> &Inputs,
                             const std::vector<std::string> &Outputs,
                             const std::vector<Attribute> &Attributes) {
  std::string Node = plainNode(Operator, Inputs, Outputs);
  for (const auto &[Name, Value] : Attributes)
    Node += field(5, field(1, Name) +
                         (std::holds_alternative<std::int64_t>(Value)
                              ? field(3, std::get<std::int64_t>(Value)) +
                                    field(20, std::int64_t(2))
                              : field(4, std::get<std::string>(Value)) +
                                    field(20, std::int64_t(3))));
  Graph += field(1, Node);
  return *this;
}

ONNXWriter &ONNXWriter::customNode(const std::string &Operator,
                                   const std::string &Domain,
                                   const std::vector<std::string> &Inputs,
                                   const std::vector<std::string> &Outputs) {
  Graph += field(1, plainNode(Operator, Inputs, Outputs) + field(7, Domain));
  CustomOpsets += field(8, field(1, Domain) + field(2, std::int64_t(1)));
  return *this;
}

template <typename T>
static std::string initializer(const std::string &Name, const Shape &Dims,
                               const std::vector<T> &Values) {
  std::string Tensor;
  for (std::int64_t Extent : Dims)
    Tensor += field(1, Extent);
  Tensor += field(2, dataType(*elementTypeOf<T>())) + field(8, Name);
  return Tensor +
         field(9, std::string(reinterpret_cast<const char *>(Values.data()),
                              Values.size() * sizeof(T)));
}

ONNXWriter &ONNXWriter::constant(const std::string &Name, const Shape &Dims,
                                 const std::vector<float> &Values) {
  Graph += field(5, initializer(Name, Dims, Values));
  return *this;
}

ONNXWriter &ONNXWriter::constant(const std::string &Name, const Shape &Dims,
                                 const std::vector<std::int64_t> &Values) {
  Graph += field(5, initializer(Name, Dims, Values));
  return *this;
}

ONNXWriter &
ONNXWriter::sparseConstant(const std::string &Name, const Shape &Dims,
                           const std::vector<std::int64_t> &Values) {
  std::vector<std::int64_t> Indices(Values.size());
  std::iota(Indices.begin(), Indices.end(), 0);
  const Shape Count{static_cast<std::int64_t>(Values.size())};
  std::string Tensor = field(1, initializer(Name, Count, Values)) +
                       field(2, initializer("", Count, Indices));
  for (std::int64_t Extent : Dims)
    Tensor += field(3, Extent);
  Graph += field(15, Tensor);
  return *this;
}

ONNXWriter &ONNXWriter::externalConstant(const std::string &Name,
                                         const Shape &Dims,
                                         const std::string &File) {
  std::string Tensor;
  for (std::int64_t Extent : Dims)
    Tensor += field(1, Extent);
  Tensor += field(2, dataType(ElementType::Float)) + field(8, Name) +
            field(13, field(1, std::string("location")) + field(2, File)) +
            field(14, std::int64_t(1)); // EXTERNAL
  Graph += field(5, Tensor);
  return *this;
}

ONNXWriter &ONNXWriter::metadata(const std::string &Key,
                                 const std::string &Value) {
  Metadata += field(14, field(1, Key) + field(2, Value));
  return *this;
}

std::string ONNXWriter::bytes() const {
  return field(1, std::int64_t(8)) + // IR version.
         field(8, field(2, std::int64_t(Opset))) + CustomOpsets +
         field(7, graphOf(Graph)) + Metadata;
}

std::string ONNXWriter::write(const std::string &Path) const {
  std::ofstream(Path, std::ios::binary) << bytes();
  return Path;
}
