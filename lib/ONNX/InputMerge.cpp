//===- InputMerge.cpp - Merges a model's small inputs ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites a graph without parsing all of it. The new file omits the bytes of
/// inputs and nodes that become unnecessary, and adds an input.
///
//===----------------------------------------------------------------------===//

#include "ONNX/InputMerge.h"

#include "ONNX/ONNXModel.h"
#include "ONNX/ProtobufFile.h"
#include "Support/RegularFile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

using namespace MLBridge;
using namespace MLBridge::onnx;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

struct Node {
  std::string Operator;
  std::string Domain;
  std::vector<std::string> Inputs;
  std::vector<std::string> Outputs;
  /// Maps the names of attributes to their values. A value is nullopt if it is
  /// not an integer.
  std::map<std::string, std::optional<std::int64_t>> Attributes;
  Range Whole;

  bool is(const char *Name) const {
    return Operator == Name && (Domain.empty() || Domain == "ai.onnx") &&
           Outputs.size() == 1;
  }
};

/// The parts of a graph that affect merging.
class Graph {
public:
  explicit Graph(Window &File) : File(File) {}

  /// Reads the graph. Returns false if \p Message is not a graph or if the
  /// graph contains unknown parts.
  bool read(Range Message) {
    return readGraph(Message, /*Depth=*/0) && IsUnderstood;
  }

  /// Returns true if \p Value is produced exactly once in the outermost graph,
  /// as an input or as the output of a node. Returns false for an empty name,
  /// which stands for a missing value.
  bool isMadeOnce(const std::string &Value) const {
    auto Found = Makers.find(Value);
    return Found != Makers.end() && Found->second == 1 && !Value.empty() &&
           !Constants.contains(Value);
  }
  /// Returns true if exactly one node of the outermost graph reads \p Value.
  bool isReadOnce(const std::string &Value) const {
    auto Found = Uses.find(Value);
    return Found != Uses.end() && Found->second == 1;
  }
  /// Returns the value of the constant \p Name. Returns nullopt if it is not a
  /// list of one int64.
  std::optional<std::int64_t> onlyNumber(const std::string &Name) const;

  std::vector<FileInput> Inputs;
  std::map<std::string, Range> InputRanges;
  std::set<std::string> Outputs;
  std::vector<Node> Nodes;

private:
  static constexpr unsigned MaxDepth = 32;

  bool readGraph(Range Message, unsigned Depth);
  bool readNode(Range Message, Range Whole, unsigned Depth);
  bool readAttribute(Range Message, Node &Into, unsigned Depth);
  void addConstant(const std::string &Name, Range Tensor);
  void readInput(Range Message, Range Whole);
  bool readType(Range Message, FileInput &Input);
  std::string nameIn(Range Message, unsigned Number);

  template <typename Visitor> void forEachField(Range Message, Visitor Visit) {
    Fields F(File, Message);
    while (F.next())
      Visit(F);
    IsUnderstood &= F.atEnd();
  }

  Window &File;
  bool IsUnderstood = true;
  /// Maps each constant's name to the range of the constant's bytes. The range
  /// is empty if the constant's value is not used.
  std::map<std::string, Range> Constants;
  std::map<std::string, unsigned> Makers;
  std::map<std::string, unsigned> Uses;
};

} // namespace

std::string Graph::nameIn(Range Message, unsigned Number) {
  std::string Name;
  forEachField(Message, [&](const Fields &F) {
    if (F.isBytes(Number))
      Name = F.text();
  });
  return Name;
}

void Graph::addConstant(const std::string &Name, Range Tensor) {
  // If several constants have the same name, use the value of none of them.
  if (!Constants.try_emplace(Name, Tensor).second)
    Constants[Name] = Range();
}

bool Graph::readGraph(Range Message, unsigned Depth) {
  constexpr unsigned NodeOf = 1, Initializer = 5, Input = 11, Output = 12,
                     SparseInitializer = 15;
  constexpr unsigned NameOfTensor = 8, NameOfValue = 1, ValuesOfSparse = 1;
  if (Depth > MaxDepth)
    return false;
  Fields F(File, Message);
  while (F.next()) {
    if (F.isBytes(NodeOf)) {
      if (!readNode(F.content(), F.whole(), Depth))
        return false;
    } else if (F.isBytes(Initializer)) {
      addConstant(nameIn(F.content(), NameOfTensor),
                  Depth == 0 ? F.content() : Range());
    } else if (F.isBytes(SparseInitializer)) {
      // The name of a sparse constant is the name of its tensor of values.
      // Record the name but not the values.
      forEachField(F.content(), [&](const Fields &S) {
        if (S.isBytes(ValuesOfSparse))
          addConstant(nameIn(S.content(), NameOfTensor), Range());
      });
    } else if (F.isBytes(Input) && Depth == 0) {
      readInput(F.content(), F.whole());
    } else if (F.isBytes(Output)) {
      // Count an output as two uses, so that it is not removed.
      const std::string Name = nameIn(F.content(), NameOfValue);
      Uses[Name] += 2;
      Outputs.insert(Name);
    }
  }
  return F.atEnd();
}

bool Graph::readNode(Range Message, Range Whole, unsigned Depth) {
  constexpr unsigned Input = 1, Output = 2, Operator = 4, Attribute = 5,
                     Domain = 7;
  Node Found;
  Found.Whole = Whole;
  Fields F(File, Message);
  while (F.next()) {
    if (F.isBytes(Input)) {
      Found.Inputs.push_back(F.text());
      // Count a use inside a branch or a loop as two uses, so that the value
      // stays unchanged.
      Uses[Found.Inputs.back()] += Depth == 0 ? 1 : 2;
    } else if (F.isBytes(Output)) {
      Found.Outputs.push_back(F.text());
      ++Makers[Found.Outputs.back()];
    } else if (F.isBytes(Operator)) {
      Found.Operator = F.text();
    } else if (F.isBytes(Domain)) {
      Found.Domain = F.text();
    } else if (F.isBytes(Attribute)) {
      if (!readAttribute(F.content(), Found, Depth))
        return false;
    }
  }
  if (Depth == 0)
    Nodes.push_back(std::move(Found));
  return F.atEnd();
}

bool Graph::readAttribute(Range Message, Node &Into, unsigned Depth) {
  constexpr unsigned NameOf = 1, Number = 3, GraphOf = 6, Graphs = 11;
  std::string Name;
  std::optional<std::int64_t> Value;
  Fields F(File, Message);
  while (F.next()) {
    if (F.isBytes(NameOf))
      Name = F.text();
    else if (F.isVarint(Number))
      Value = F.value();
    else if (F.isBytes(GraphOf) || F.isBytes(Graphs))
      if (!readGraph(F.content(), Depth + 1))
        return false;
  }
  // Reject a node with two attributes of the same name, because they are
  // ambiguous.
  if (!Into.Attributes.try_emplace(Name, Value).second)
    return false;
  return F.atEnd();
}

void Graph::readInput(Range Message, Range Whole) {
  constexpr unsigned NameOf = 1, Type = 2, TensorType = 1;
  FileInput Input;
  unsigned NumTypes = 0;
  bool IsKnown = false;
  forEachField(Message, [&](const Fields &F) {
    if (F.isBytes(NameOf))
      Input.Name = F.text();
    if (F.isBytes(Type))
      forEachField(F.content(), [&](const Fields &T) {
        IsKnown = ++NumTypes == 1 && T.isBytes(TensorType) &&
                  readType(T.content(), Input);
      });
  });
  if (!IsKnown)
    Input.Type = 0;
  InputRanges[Input.Name] = Whole;
  ++Makers[Input.Name];
  Inputs.push_back(std::move(Input));
}

/// The limit on an extent. It ensures that the sum of the extents of all inputs
/// fits an int64.
static constexpr std::int64_t MostExtent = std::int64_t(1) << 31;

/// Reads the type of a tensor. Returns false if an extent is neither a number
/// nor a name.
bool Graph::readType(Range Message, FileInput &Input) {
  constexpr unsigned Element = 1, Shape = 2, Dim = 1, Number = 1, Name = 2;
  bool HasShape = false, IsKnown = true;
  auto ReadDim = [&](const Fields &D) {
    if (!D.isBytes(Dim))
      return;
    FileExtent Extent;
    forEachField(D.content(), [&](const Fields &E) {
      if (E.isVarint(Number))
        Extent = {E.value(), {}};
      else if (E.isBytes(Name))
        Extent = {0, E.text()};
    });
    IsKnown &= (Extent.Number > 0) == Extent.Name.empty() &&
               Extent.Number <= MostExtent;
    Input.Dims.push_back(std::move(Extent));
  };
  forEachField(Message, [&](const Fields &F) {
    if (F.isVarint(Element))
      Input.Type = F.value();
    if (!F.isBytes(Shape))
      return;
    HasShape = true;
    forEachField(F.content(), ReadDim);
  });
  return HasShape && IsKnown;
}

std::optional<std::int64_t> Graph::onlyNumber(const std::string &Name) const {
  constexpr unsigned Type = 2, Raw = 9, Int64 = 7;
  // Do not use a constant whose name is also the name of an input. Such a
  // constant is only the default value of the input.
  auto Found = Constants.find(Name);
  if (Found == Constants.end() || Makers.contains(Name))
    return std::nullopt;
  std::int64_t TypeFound = 0;
  std::string Bytes;
  // The constant's fields are valid, because readGraph() has read all of them.
  for (Fields F(File, Found->second); F.next();) {
    if (F.isVarint(Type))
      TypeFound = F.value();
    else if (F.isBytes(Raw))
      Bytes = F.text();
  }
  std::int64_t Number;
  if (TypeFound != Int64 || Bytes.size() != sizeof(Number))
    return std::nullopt;
  std::memcpy(&Number, Bytes.data(), sizeof(Number));
  return Number;
}

//===----------------------------------------------------------------------===//
// Finding inputs to merge
//===----------------------------------------------------------------------===//

namespace {

/// Collects the changes to a graph.
class Merger {
public:
  explicit Merger(const Graph &G) : G(G) {
    for (const FileInput &Input : G.Inputs)
      Inputs[Input.Name] = &Input;
    for (const Node &N : G.Nodes)
      if (N.is("Unsqueeze"))
        Unsqueezes[N.Outputs.front()] = &N;
  }

  void run() {
    for (const Node &N : G.Nodes)
      if (N.is("Concat"))
        tryMerge(N);
  }

  std::vector<MergedInput> Merged;
  /// The merged inputs, as serialised messages.
  std::string Added;
  /// The parts of the graph that are omitted.
  std::vector<Range> Removed;

private:
  void tryMerge(const Node &Concat);
  bool add(const std::string &Value, MergedInput &Into,
           std::vector<FileExtent> &Dims, std::vector<Range> &Without) const;

  const Graph &G;
  std::map<std::string, const FileInput *> Inputs;
  std::map<std::string, const Node *> Unsqueezes;
};

} // namespace

/// Adds \p Value to \p Into if it is an input, or a column made from an input.
/// Writes the extents of \p Value to \p Dims. Appends the parts that become
/// unnecessary to \p Without. Returns false if \p Value cannot be merged.
bool Merger::add(const std::string &Value, MergedInput &Into,
                 std::vector<FileExtent> &Dims,
                 std::vector<Range> &Without) const {
  if (!G.isReadOnce(Value) || !G.isMadeOnce(Value))
    return false;
  if (auto Found = Inputs.find(Value); Found != Inputs.end()) {
    Into.Parts.push_back(*Found->second);
    Dims = Found->second->Dims;
    Without.push_back(G.InputRanges.at(Value));
    return true;
  }
  auto Found = Unsqueezes.find(Value);
  if (Found == Unsqueezes.end() || Found->second->Inputs.size() != 2)
    return false;
  const Node &Unsqueeze = *Found->second;
  if (G.onlyNumber(Unsqueeze.Inputs[1]) != 1 ||
      !Inputs.contains(Unsqueeze.Inputs[0]) ||
      !add(Unsqueeze.Inputs[0], Into, Dims, Without) || Dims.size() != 1)
    return false;
  Dims.push_back({1, {}});
  Without.push_back(Unsqueeze.Whole);
  return true;
}

static bool isOfNumbers(const FileInput &Input) {
  // Reject numbers that are not values of the enumeration, because the cast
  // below would be undefined.
  if (Input.Type < 0 || Input.Type > ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16)
    return false;
  std::optional<ElementType> Type =
      fromONNX(static_cast<ONNXTensorElementDataType>(Input.Type));
  return Type && *Type != ElementType::String;
}

static std::string varint(std::uint64_t Value) {
  std::string Text;
  for (; Value >= 128; Value >>= 7)
    Text += static_cast<char>(Value | 128);
  return Text += static_cast<char>(Value);
}

static std::string field(unsigned Number, std::int64_t Value) {
  return varint(Number << 3) + varint(static_cast<std::uint64_t>(Value));
}

static std::string field(unsigned Number, const std::string &Value) {
  return varint(Number << 3 | 2) + varint(Value.size()) + Value;
}

/// Returns true if tensors with the extents \p A and \p B can be concatenated
/// along \p Axis. This is the case if all other extents are equal.
static bool isAlike(const std::vector<FileExtent> &A,
                    const std::vector<FileExtent> &B, std::size_t Axis) {
  if (A.size() != B.size())
    return false;
  for (std::size_t D = 0; D < A.size(); ++D)
    if (D != Axis && !(A[D] == B[D]))
      return false;
  return true;
}

void Merger::tryMerge(const Node &Concat) {
  auto Given = Concat.Attributes.find("axis");
  if (Concat.Inputs.size() < 2 || Given == Concat.Attributes.end() ||
      !Given->second || G.Outputs.contains(Concat.Outputs.front()) ||
      !G.isMadeOnce(Concat.Outputs.front()))
    return;
  MergedInput Found;
  std::vector<std::vector<FileExtent>> Extents(Concat.Inputs.size());
  std::vector<Range> Without{Concat.Whole};
  for (std::size_t I = 0; I < Extents.size(); ++I)
    if (!add(Concat.Inputs[I], Found, Extents[I], Without) ||
        Found.Parts[I].Type != Found.Parts[0].Type)
      return;
  std::vector<FileExtent> Dims = Extents[0];
  const auto Rank = static_cast<std::int64_t>(Dims.size());
  const std::int64_t Axis = *Given->second + (*Given->second < 0 ? Rank : 0);
  if (!isOfNumbers(Found.Parts[0]) || Rank > std::int64_t(Shape::MaxRank) ||
      Axis < 0 || Axis >= Rank)
    return;
  Found.Axis = static_cast<std::size_t>(Axis);
  FileExtent &Sum = Dims[Found.Axis];
  Sum.Number = 0;
  for (const std::vector<FileExtent> &Part : Extents) {
    if (!isAlike(Part, Extents[0], Found.Axis) || Part[Found.Axis].Number == 0)
      return;
    Sum.Number += Part[Found.Axis].Number;
  }
  // Stop if an extent from Axis on is free, because rows need a fixed length.
  for (std::size_t D = Found.Axis; D < Dims.size(); ++D)
    if (Dims[D].Number == 0)
      return;
  // Write the new input as a ValueInfoProto (onnx.proto).
  Found.Name = Concat.Outputs.front();
  std::string Shape;
  for (const FileExtent &E : Dims)
    Shape += field(1, E.Name.empty() ? field(1, E.Number) : field(2, E.Name));
  const std::string Tensor =
      field(1, Found.Parts.front().Type) + field(2, Shape);
  Added += field(11, field(1, Found.Name) + field(2, field(1, Tensor)));
  Removed.insert(Removed.end(), Without.begin(), Without.end());
  Merged.push_back(std::move(Found));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Returns \p Added, followed by the bytes of \p Whole without the ranges \p
/// Removed. These ranges lie inside \p Whole.
static std::optional<std::string> rewrite(const Window &File, Range Whole,
                                          std::vector<Range> Removed,
                                          const std::string &Added) {
  std::ranges::sort(Removed, {}, &Range::Begin);
  Removed.push_back({Whole.End, Whole.End});
  std::string Body = Added;
  for (const Range &Gap : Removed) {
    if (!File.copy({Whole.Begin, Gap.Begin}, Body))
      return std::nullopt;
    Whole.Begin = Gap.End;
  }
  return Body;
}

std::optional<MergedModel> onnx::mergeInputs(const std::string &Path) {
  constexpr unsigned GraphOf = 7;
  Expected<RegularFile> Opened = openRegularFile(Path, Path);
  if (!Opened)
    return std::nullopt;
  Window File(Opened->FD.get());
  const Range Model{0, static_cast<std::uint64_t>(Opened->Status.st_size)};
  std::vector<std::pair<Range, Range>> Graphs;
  Fields F(File, Model);
  while (F.next())
    if (F.isBytes(GraphOf))
      Graphs.emplace_back(F.whole(), F.content());
  if (!F.atEnd() || Graphs.size() != 1)
    return std::nullopt;
  auto [Whole, Content] = Graphs.front();
  Graph G(File);
  if (!G.read(Content) || G.InputRanges.size() != G.Inputs.size())
    return std::nullopt;
  Merger Plan(G);
  Plan.run();
  if (Plan.Merged.empty())
    return std::nullopt;
  auto Body = rewrite(File, Content, std::move(Plan.Removed), Plan.Added);
  if (!Body)
    return std::nullopt;
  MergedModel Result;
  if (!File.copy({0, Whole.Begin}, Result.Bytes))
    return std::nullopt;
  Result.Bytes += field(GraphOf, *Body);
  if (!File.copy({Whole.End, Model.End}, Result.Bytes))
    return std::nullopt;
  Result.Merged = std::move(Plan.Merged);
  for (const FileInput &Input : G.Inputs)
    Result.Inputs.push_back(Input.Name);
  return Result;
}
