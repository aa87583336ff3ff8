//===- ONNXFile.cpp - Facts that ONNX Runtime does not report -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a few messages of onnx.proto by their field numbers. Skips all other
/// fields, in particular weights.
///
//===----------------------------------------------------------------------===//

#include "ONNX/ONNXFile.h"

#include "ONNX/ProtobufFile.h"
#include "Support/PrintableText.h"
#include "Support/RegularFile.h"

#include <algorithm>
#include <filesystem>

using namespace MLBridge;
using namespace MLBridge::onnx;

namespace {

class Surveyor {
public:
  explicit Surveyor(int FD) : File(FD) {}

  void readModel(Range Message) {
    constexpr unsigned Graph = 7, Functions = 25;
    for (Fields F(File, Message); F.next();) {
      if (F.isBytes(Graph))
        readGraph(F.content(), /*Depth=*/0);
      else if (F.isBytes(Functions))
        readFunction(F.content());
    }
  }

  FileSurvey Found;

private:
  static constexpr unsigned MaxDepth = 32;

  void readGraph(Range Message, unsigned Depth) {
    constexpr unsigned Node = 1, Initializer = 5, Input = 11, Output = 12,
                       Sparse = 15;
    if (Depth > MaxDepth)
      return;
    for (Fields F(File, Message); F.next();) {
      if (F.isBytes(Node))
        readNode(F.content(), Depth);
      else if (F.isBytes(Initializer))
        readTensor(F.content());
      else if (F.isBytes(Input) && Depth == 0)
        readValue(F.content(), Found.InputsOfAnyRank);
      else if (F.isBytes(Output) && Depth == 0)
        readValue(F.content(), Found.OutputsOfAnyRank);
      else if (F.isBytes(Sparse))
        readSparseTensor(F.content());
    }
  }

  void readFunction(Range Message) {
    constexpr unsigned Node = 7;
    for (Fields F(File, Message); F.next();)
      if (F.isBytes(Node))
        readNode(F.content(), /*Depth=*/0);
  }

  void readNode(Range Message, unsigned Depth) {
    constexpr unsigned Attribute = 5;
    for (Fields F(File, Message); F.next();)
      if (F.isBytes(Attribute))
        readAttribute(F.content(), Depth);
  }

  void readAttribute(Range Message, unsigned Depth) {
    constexpr unsigned Tensor = 5, Graph = 6, Tensors = 10, Graphs = 11,
                       Sparse = 22;
    for (Fields F(File, Message); F.next();) {
      if (F.isBytes(Tensor) || F.isBytes(Tensors))
        readTensor(F.content());
      else if (F.isBytes(Graph) || F.isBytes(Graphs))
        readGraph(F.content(), Depth + 1);
      else if (F.isBytes(Sparse))
        readSparseTensor(F.content());
    }
  }

  void readSparseTensor(Range Message) {
    constexpr unsigned Values = 1, Indices = 2;
    for (Fields F(File, Message); F.next();)
      if (F.isBytes(Values) || F.isBytes(Indices))
        readTensor(F.content());
  }

  void readTensor(Range Message) {
    constexpr unsigned ExternalData = 13, Key = 1, Value = 2;
    for (Fields F(File, Message); F.next();) {
      if (!F.isBytes(ExternalData))
        continue;
      std::string Name, Text;
      for (Fields Entry(File, F.content()); Entry.next();) {
        if (Entry.isBytes(Key))
          Name = Entry.text();
        else if (Entry.isBytes(Value))
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
      if (F.isBytes(NameOf))
        Name = F.text();
      if (!F.isBytes(Type))
        continue;
      for (Fields T(File, F.content()); T.next();) {
        if (!T.isBytes(TensorType))
          continue;
        IsTensor = true;
        for (Fields S(File, T.content()); S.next();)
          HasShape |= S.isBytes(Shape);
      }
    }
    if (IsTensor && !HasShape)
      OfAnyRank.insert(std::move(Name));
  }

  Window File;
};

} // namespace

FileSurvey onnx::survey(const std::string &Path) {
  Expected<RegularFile> File = openRegularFile(Path, Path);
  if (!File)
    return {};
  Surveyor Reader(File->FD.get());
  Reader.readModel({0, static_cast<std::uint64_t>(File->Status.st_size)});
  return std::move(Reader.Found);
}

std::vector<std::string> FileSurvey::paths(const std::string &File) const {
  const std::filesystem::path Folder =
      std::filesystem::path(File).parent_path();
  std::vector<std::string> Paths;
  Paths.reserve(ExternalFiles.size());
  for (const std::string &Name : ExternalFiles)
    Paths.push_back(Folder / Name);
  return Paths;
}

std::vector<std::string> onnx::partsOf(const std::string &File) {
  return survey(File).paths(File);
}

/// Returns whether \p Path is in \p Folder or in one of its subfolders. Both
/// paths are absolute, without links and "..".
static bool isInside(const std::filesystem::path &Path,
                     const std::filesystem::path &Folder) {
  return std::ranges::mismatch(Folder, Path).in1 == Folder.end();
}

Error FileSurvey::check(const std::string &File) const {
  namespace fs = std::filesystem;
  // After an error, these paths and the path of the external file are empty.
  std::error_code Failed;
  const fs::path Folder = fs::path(File).parent_path();
  const fs::path Real = fs::canonical(Folder.empty() ? "." : Folder, Failed);
  const fs::path Target = fs::canonical(File, Failed).parent_path();
  for (const std::string &Name : ExternalFiles) {
    const fs::path Part = fs::weakly_canonical(Real / Name, Failed);
    if (!Real.empty() && (isInside(Part, Real) || isInside(Part, Target)))
      continue;
    return {ErrorCode::Malformed,
            "onnx:" + printable(File) + ": external data '" + printable(Name) +
                "': expected a file in the model's folder, found '" +
                printable(Part.string()) +
                "'; move the file into the folder, and update the model"};
  }
  return Error::success();
}
