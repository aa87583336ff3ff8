//===- FuzzONNX.cpp - Any bytes as a model with inputs to merge -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses arbitrary bytes as a model, merges its inputs, and compares the
/// result with what protoc's code reads from the same bytes. Merging may remove
/// only the parts (the inputs that are merged) and the nodes that join them.
/// Each merged input must be what these nodes would compute.
///
/// Random bytes are rarely a model with inputs to merge, so most mutations
/// change the fields of models.
///
//===----------------------------------------------------------------------===//

#include "ONNX/InputMerge.h"

#include "Fuzz.h"
#include "MutateMessage.h"
#include "Support/Posix.h"
#include "onnx.pb.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sys/mman.h>

using namespace MLBridge;
using namespace MLBridge::fuzz;
using namespace MLBridge::onnx;
using namespace ::fuzz::onnx;

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

/// Merges through an in-memory file, because mergeInputs() reads files.
static std::optional<MergedModel> merge(std::string_view Bytes) {
  static const posix::UniqueFD FD(::memfd_create("model", MFD_CLOEXEC));
  static const std::string Path = "/proc/self/fd/" + std::to_string(FD.get());
  require(::ftruncate(FD.get(), 0) == 0 &&
              ::pwrite(FD.get(), Bytes.data(), Bytes.size(), 0) ==
                  static_cast<ssize_t>(Bytes.size()),
          "the file can be written");
  return mergeInputs(Path);
}

/// Adds the names of all values that \p G reads or returns, including its
/// subgraphs.
static void addReads(const GraphProto &G, std::multiset<std::string> &Reads) {
  for (const NodeProto &N : G.node()) {
    Reads.insert(N.input().begin(), N.input().end());
    for (const AttributeProto &A : N.attribute()) {
      addReads(A.g(), Reads);
      for (const GraphProto &Inner : A.graphs())
        addReads(Inner, Reads);
    }
  }
  for (const ValueInfoProto &Output : G.output())
    Reads.insert(Output.name());
}

static bool isConstant(const GraphProto &G, const std::string &Name) {
  return std::ranges::any_of(
             G.initializer(),
             [&](const TensorProto &T) { return T.name() == Name; }) ||
         std::ranges::any_of(G.sparse_initializer(),
                             [&](const SparseTensorProto &T) {
                               return T.values().name() == Name;
                             });
}

template <typename Named>
static const Named *find(const google::protobuf::RepeatedPtrField<Named> &In,
                         const std::string &Name) {
  auto Found = std::ranges::find_if(
      In, [&](const Named &Value) { return Value.name() == Name; });
  return Found == In.end() ? nullptr : &*Found;
}

/// Returns the only node with the output \p Value. Requires that its operator
/// is \p Operator.
static const NodeProto &nodeOf(const GraphProto &G, const std::string &Value,
                               const char *Operator) {
  const NodeProto *Found = nullptr;
  for (const NodeProto &N : G.node())
    if (std::ranges::count(N.output(), Value) != 0) {
      require(!Found, "a removed value has one producer", Value);
      Found = &N;
    }
  require(Found && Found->op_type() == Operator && Found->output_size() == 1,
          "only known nodes are removed", Value);
  require(Found->domain().empty() || Found->domain() == "ai.onnx",
          "only ONNX's own nodes are removed", Value);
  return *Found;
}

/// Returns the extents of \p Input, which are numbers and names. Requires that
/// it has a shape.
static std::vector<FileExtent> extentsOf(const ValueInfoProto &Input) {
  require(Input.type().tensor_type().has_shape(), "parts have a shape",
          Input.name());
  std::vector<FileExtent> Extents;
  for (const auto &Dim : Input.type().tensor_type().shape().dim())
    Extents.push_back({Dim.dim_value(), Dim.dim_param()});
  return Extents;
}

/// Requires that the constant \p Axes is 1, so that Unsqueeze makes columns.
static void requireOne(const GraphProto &G, const std::string &Axes) {
  require(!find(G.input(), Axes), "an axis is not an input", Axes);
  constexpr std::int32_t Int64 = 7;
  const TensorProto *Found = find(G.initializer(), Axes);
  std::int64_t Number = 0;
  require(Found && Found->data_type() == Int64 &&
              Found->raw_data().size() == sizeof(Number),
          "an axis is a number", Axes);
  std::memcpy(&Number, Found->raw_data().data(), sizeof(Number));
  require(Number == 1, "the axis makes columns", Axes);
}

namespace {
/// The removed nodes, each identified by its output, and the removed inputs.
struct Gone {
  std::set<std::string> Values, Inputs;
};
} // namespace

/// Requires that \p Value, an element of a row, is the input \p Part or a
/// column that is made of it. Returns its extents.
static std::vector<FileExtent> requirePart(const GraphProto &Before,
                                           const std::string &Value,
                                           const FileInput &Part, Gone &Gone) {
  const ValueInfoProto *Input = find(Before.input(), Part.Name);
  require(Input && Input->type().tensor_type().elem_type() == Part.Type,
          "parts are inputs", Part.Name);
  std::vector<FileExtent> Extents = extentsOf(*Input);
  require(Extents == Part.Dims, "parts have the input's shape", Part.Name);
  require(Gone.Inputs.insert(Part.Name).second, "no part occurs twice");
  if (Value == Part.Name)
    return Extents;
  const NodeProto &Column = nodeOf(Before, Value, "Unsqueeze");
  require(Column.input_size() == 2 && Column.input(0) == Part.Name &&
              Extents.size() == 1,
          "columns are made of parts", Part.Name);
  requireOne(Before, Column.input(1));
  Gone.Values.insert(Value);
  Extents.push_back({1, {}});
  return Extents;
}

/// Requires that \p Part and its row \p Whole differ only along \p Axis.
/// Returns the length of \p Part along this axis.
static std::int64_t requireAlike(const std::vector<FileExtent> &Part,
                                 const std::vector<FileExtent> &Whole,
                                 std::size_t Axis) {
  require(Part.size() == Whole.size(), "parts have the row's rank");
  for (std::size_t D = 0; D < Whole.size(); ++D) {
    require((Part[D].Number > 0) == Part[D].Name.empty(),
            "each extent is known");
    require(D < Axis || Part[D].Name.empty(), "rows are of fixed length");
    require(D == Axis || Part[D] == Whole[D], "parts are alike");
  }
  return Part[Axis].Number;
}

/// Requires that \p Before would compute \p Row from the parts of \p Merged.
static Gone requireSameRow(const GraphProto &Before, const MergedInput &Merged,
                           const ValueInfoProto &Row) {
  require(Row.name() == Merged.Name, "rows are in order", Row.name());
  require(!find(Before.input(), Row.name()) && !isConstant(Before, Row.name()),
          "a row has one name", Row.name());
  const NodeProto &Concat = nodeOf(Before, Row.name(), "Concat");
  const std::vector<FileExtent> Whole = extentsOf(Row);
  const auto Rank = static_cast<std::int64_t>(Whole.size());
  const AttributeProto *Axis = find(Concat.attribute(), "axis");
  require(Axis && Merged.Axis < Whole.size() &&
              static_cast<std::int64_t>(Merged.Axis) ==
                  Axis->i() + (Axis->i() < 0 ? Rank : 0),
          "the axis is the node's", Row.name());
  require(static_cast<std::size_t>(Concat.input_size()) == Merged.Parts.size(),
          "a row has all parts", Row.name());

  Gone Found;
  std::int64_t Length = 0;
  for (int I = 0; I < Concat.input_size(); ++I) {
    const FileInput &Part = Merged.Parts[static_cast<std::size_t>(I)];
    require(Part.Type == Row.type().tensor_type().elem_type(),
            "parts have the row's type", Part.Name);
    Length += requireAlike(requirePart(Before, Concat.input(I), Part, Found),
                           Whole, Merged.Axis);
  }
  require(Length == Whole[Merged.Axis].Number,
          "rows are as long as their parts", Row.name());

  std::multiset<std::string> Reads;
  addReads(Before, Reads);
  for (const std::set<std::string> &Names : {Found.Values, Found.Inputs})
    for (const std::string &Name : Names)
      require(Reads.count(Name) == 1 && !isConstant(Before, Name),
              "removed values have no other reader", Name);
  Found.Values.insert(Row.name());
  return Found;
}

static void remove(const Gone &What, GraphProto &From) {
  auto Erase = [](auto *Of, auto Unwanted) {
    Of->erase(std::remove_if(Of->begin(), Of->end(), Unwanted), Of->end());
  };
  Erase(From.mutable_input(), [&](const ValueInfoProto &Input) {
    return What.Inputs.contains(Input.name());
  });
  Erase(From.mutable_node(), [&](const NodeProto &N) {
    return N.output_size() == 1 && What.Values.contains(N.output(0));
  });
}

/// Requires that \p Merged is equivalent to the model \p Bytes.
static void requireSameModel(std::string_view Bytes,
                             const MergedModel &Merged) {
  ModelProto Before, After;
  // Skip models that protoc's code cannot read.
  if (!Before.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size())))
    return;
  require(After.ParseFromString(Merged.Bytes), "the merged model can be read");
  const GraphProto &Old = Before.graph();
  const GraphProto &New = After.graph();
  require(std::ranges::equal(Old.input(), Merged.Inputs, {},
                             [](const ValueInfoProto &I) { return I.name(); }),
          "the inputs are the file's");
  require(static_cast<std::size_t>(New.input_size()) >= Merged.Merged.size(),
          "rows are inputs");
  ModelProto Expected = Before;
  GraphProto &Rest = *Expected.mutable_graph();
  int Row = 0;
  for (const MergedInput &Input : Merged.Merged)
    remove(requireSameRow(Old, Input, New.input(Row++)), Rest);
  // Everything else must be unchanged.
  google::protobuf::RepeatedPtrField<ValueInfoProto> Inputs;
  for (int I = 0; I < Row; ++I)
    *Inputs.Add() = New.input(I);
  Inputs.MergeFrom(Rest.input());
  Rest.mutable_input()->Swap(&Inputs);
  require(Expected.SerializeAsString() == After.SerializeAsString(),
          "the rest is unchanged");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  std::string Bytes(reinterpret_cast<const char *>(Data), Size);
  // A row may be a part of another row. Each merge removes a node, so the loop
  // ends.
  while (std::optional<MergedModel> Merged = merge(Bytes)) {
    require(!Merged->Merged.empty(), "something was merged");
    requireSameModel(Bytes, *Merged);
    Bytes = std::move(Merged->Bytes);
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutating models
//===----------------------------------------------------------------------===//

static const char *const Strings[] = {"",          "axis",    "Concat",
                                      "Unsqueeze", "ai.onnx", "N"};
static constexpr std::int64_t Numbers[] = {-2,
                                           -1,
                                           0,
                                           1,
                                           2,
                                           3,
                                           6,
                                           7,
                                           8,
                                           9,
                                           std::int64_t(1) << 31,
                                           (std::int64_t(1) << 31) + 1,
                                           (std::int64_t(1) << 32) + 1,
                                           INT64_MAX,
                                           INT64_MIN};

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *Data,
                                               std::size_t Size,
                                               std::size_t MaxSize,
                                               unsigned Seed) {
  return mutateMessage<ModelProto>({Strings, Numbers}, Data, Size, MaxSize,
                                   Seed);
}
