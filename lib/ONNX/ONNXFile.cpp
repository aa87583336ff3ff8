//===- ONNXFile.cpp - What ONNX Runtime does not tell of a file -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The few messages of onnx.proto that matter here, by their field numbers.
/// What is between them, weights above all, is not read.
///
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXFile.h"

#include "ONNX/ProtobufFile.h"
#include "Transport/Posix.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

using namespace MLBridge;
using namespace MLBridge::onnx;

namespace {

class Surveyor {
public:
  explicit Surveyor(int FD) : File(FD) {}

  void readModel(Range Message) {
    constexpr unsigned Graph = 7, Functions = 25;
    for (Fields F(File, Message); F.next();) {
      if (F.number() == Graph)
        readGraph(F.content(), /*Depth=*/0);
      else if (F.number() == Functions)
        readFunction(F.content());
    }
  }

  FileSurvey Found;

private:
  /// No more graphs are in each other than this.
  static constexpr unsigned MaxDepth = 32;

  void readGraph(Range Message, unsigned Depth) {
    constexpr unsigned Node = 1, Initializer = 5, Input = 11, Output = 12,
                       Sparse = 15;
    if (Depth > MaxDepth)
      return;
    for (Fields F(File, Message); F.next();) {
      if (F.number() == Node)
        readNode(F.content(), Depth);
      else if (F.number() == Initializer)
        readTensor(F.content());
      else if (F.number() == Input && Depth == 0)
        readValue(F.content(), Found.InputsOfAnyRank);
      else if (F.number() == Output && Depth == 0)
        readValue(F.content(), Found.OutputsOfAnyRank);
      else if (F.number() == Sparse)
        readSparseTensor(F.content());
    }
  }

  void readFunction(Range Message) {
    constexpr unsigned Node = 7;
    for (Fields F(File, Message); F.next();)
      if (F.number() == Node)
        readNode(F.content(), /*Depth=*/0);
  }

  void readNode(Range Message, unsigned Depth) {
    constexpr unsigned Attribute = 5;
    for (Fields F(File, Message); F.next();)
      if (F.number() == Attribute)
        readAttribute(F.content(), Depth);
  }

  void readAttribute(Range Message, unsigned Depth) {
    constexpr unsigned Tensor = 5, Graph = 6, Tensors = 10, Graphs = 11,
                       Sparse = 22;
    for (Fields F(File, Message); F.next();) {
      if (F.number() == Tensor || F.number() == Tensors)
        readTensor(F.content());
      else if (F.number() == Graph || F.number() == Graphs)
        readGraph(F.content(), Depth + 1);
      else if (F.number() == Sparse)
        readSparseTensor(F.content());
    }
  }

  void readSparseTensor(Range Message) {
    constexpr unsigned Values = 1, Indices = 2;
    for (Fields F(File, Message); F.next();)
      if (F.number() == Values || F.number() == Indices)
        readTensor(F.content());
  }

  void readTensor(Range Message) {
    constexpr unsigned ExternalData = 13, Key = 1, Value = 2;
    for (Fields F(File, Message); F.next();) {
      if (F.number() != ExternalData)
        continue;
      std::string Name, Text;
      for (Fields Entry(File, F.content()); Entry.next();) {
        if (Entry.number() == Key)
          Name = Entry.text();
        else if (Entry.number() == Value)
          Text = Entry.text();
      }
      if (Name == "location")
        Found.ExternalFiles.insert(std::move(Text));
    }
  }

  /// Adds the name of an input or output to \p OfAnyRank if it has no shape.
  void readValue(Range Message, std::set<std::string> &OfAnyRank) {
    constexpr unsigned NameOf = 1, Type = 2, TensorType = 1, Shape = 2;
    std::string Name;
    bool IsTensor = false, HasShape = false;
    for (Fields F(File, Message); F.next();) {
      if (F.number() == NameOf)
        Name = F.text();
      if (F.number() != Type)
        continue;
      for (Fields T(File, F.content()); T.next();) {
        if (T.number() != TensorType)
          continue;
        IsTensor = true;
        for (Fields S(File, T.content()); S.next();)
          HasShape |= S.number() == Shape;
      }
    }
    if (IsTensor && !HasShape)
      OfAnyRank.insert(std::move(Name));
  }

  Window File;
};

} // namespace

FileSurvey onnx::survey(const std::string &Path) {
  posix::UniqueFD FD(::open(Path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat Status = {};
  if (!FD || ::fstat(FD.get(), &Status) != 0 || !S_ISREG(Status.st_mode))
    return {};
  Surveyor Reader(FD.get());
  Reader.readModel({0, static_cast<std::uint64_t>(Status.st_size)});
  return std::move(Reader.Found);
}

std::vector<std::string> onnx::partsOf(const std::string &File) {
  const std::filesystem::path Folder =
      std::filesystem::path(File).parent_path();
  std::vector<std::string> Paths;
  for (const std::string &Name : survey(File).ExternalFiles)
    Paths.push_back(Folder / Name);
  return Paths;
}
