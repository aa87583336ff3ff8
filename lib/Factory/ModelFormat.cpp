//===- ModelFormat.cpp - Model files as schemes ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates runners from specs such as
/// `onnx:node=a.onnx,colour=b.onnx?decide=argmax`. All runners of a factory and
/// of its copies share the loaded models.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include "Core/InvalidSpec.h"
#include "InProcess/ModelStore.h"
#include "Support/PrintableText.h"

#include <map>
#include <optional>

using namespace MLBridge;
using namespace MLBridge::inprocess;

//===----------------------------------------------------------------------===//
// Files by label
//===----------------------------------------------------------------------===//

using FileMap = std::map<std::string, std::string>;

/// Returns the length of the label if \p Text starts with `LABEL=`, or nullopt
/// otherwise.
static std::optional<std::size_t> labelLength(std::string_view Text) {
  std::size_t End = Text.find_first_of("=,/");
  if (End == 0 || End == std::string_view::npos || Text[End] != '=')
    return std::nullopt;
  return End;
}

/// Parses `FILE`, or `LABEL=FILE,LABEL=FILE`. A comma that is not followed by
/// `LABEL=` is part of a file name.
static Expected<FileMap> parseFiles(const ModelSpec &Spec) {
  std::string_view Left = Spec.Path;
  if (Left.empty())
    return invalidSpec(Spec,
                       "expected a file, or label=FILE,label=FILE, after '" +
                           Spec.Scheme + ":'");
  FileMap Files;
  std::optional<std::size_t> Length = labelLength(Left);
  if (!Length)
    Files[""] = Left;
  while (Length) {
    std::string Label(Left.substr(0, *Length));
    Left.remove_prefix(*Length + 1);
    // The file name ends at the next comma that is followed by a label.
    std::size_t End = Left.find(',');
    Length.reset();
    while (End != std::string_view::npos &&
           !(Length = labelLength(Left.substr(End + 1))))
      End = Left.find(',', End + 1);
    std::string File(Left.substr(0, End));
    if (File.empty())
      return invalidSpec(Spec,
                         "expected a file after '" + printable(Label) + "='");
    if (!Files.try_emplace(Label, std::move(File)).second)
      return invalidSpec(Spec, "expected each label once, found '" +
                                   printable(Label) + "' again");
    if (Length)
      Left.remove_prefix(End + 1);
  }
  return Files;
}

//===----------------------------------------------------------------------===//
// The scheme
//===----------------------------------------------------------------------===//

static Error checkSpec(const ModelFormat &Format, const ModelSpec &Spec) {
  if (Error E = parseFiles(Spec).takeError())
    return E;
  std::vector<std::string_view> Known(Format.Options);
  const auto Decisions = DecisionOptions::names();
  Known.insert(Known.end(), Decisions.begin(), Decisions.end());
  if (Error E = Spec.checkOptions(Known))
    return E;
  if (Error E = DecisionOptions::parse(Spec).takeError())
    return E;
  return Format.Check ? Format.Check(Spec) : Error::success();
}

/// Returns the key under which the model in \p File is stored. The key has no
/// DecisionOptions, so specs that differ only in these options share a model.
static std::string storeKey(const ModelFormat &Format, const std::string &File,
                            const ModelSpec &Spec) {
  std::string Key = File;
  for (std::string_view Option : Format.Options)
    if (std::string_view Value = Spec.option(Option, {}); Value.data()) {
      Key += '\0'; // A separator that no file name or value contains.
      Key.append(Option) += '=';
      Key += Value;
    }
  return Key;
}

RunnerFactory::Scheme MLBridge::modelScheme(ModelFormat NewFormat) {
  auto Format = std::make_shared<const ModelFormat>(std::move(NewFormat));
  auto Store = std::make_shared<ModelStore>();
  auto Make = [Format, Store](const ModelSpec &Spec, const RunnerFactory &)
      -> Expected<std::unique_ptr<MLModelRunner>> {
    Expected<FileMap> Files = parseFiles(Spec);
    if (!Files)
      return Files.takeError();
    Expected<DecisionOptions> Options = DecisionOptions::parse(Spec);
    if (!Options)
      return Options.takeError();
    InProcessModelRunner::LoadMap Loads;
    for (const auto &[Label, File] : *Files)
      Loads[Label] = [Format, Store, Spec, File = File] {
        if (!Format->IsFile)
          return Format->Load(File, Spec);
        return Store->get(storeKey(*Format, File, Spec),
                          {File,
                           Format->MayBeFolder ? FileStamp::Folders::Allowed
                                               : FileStamp::Folders::Refused,
                           Format->Parts},
                          [&] { return Format->Load(File, Spec); });
      };
    return std::make_unique<InProcessModelRunner>(
        Spec.Scheme + ":" + Spec.Path, std::move(Loads), std::move(*Options));
  };
  auto Check = [Format](const ModelSpec &Spec) {
    return checkSpec(*Format, Spec);
  };
  return {Format->Scheme, Format->Help, Make, /*IsDecorator=*/false, Check};
}
