//===- ModelsByLabel.h - Files by label for one runner ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Shared by runners that are constructed from files by label, whatever loads
/// the files.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELSBYLABEL_H
#define MLBRIDGE_LIB_INPROCESS_MODELSBYLABEL_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

namespace MLBridge::inprocess {

/// "onnx:colour=b.onnx,node=a.onnx", for messages.
inline std::string nameOf(std::string_view Scheme,
                          const std::map<std::string, std::string> &Files) {
  std::string Name(Scheme);
  Name += ':';
  for (const auto &[Label, File] : Files) {
    if (Name.back() != ':')
      Name += ',';
    Name.append(Label).append("=").append(File);
  }
  return Name;
}

/// For each label, a function that calls \p LoadFile for its file.
template <typename Function>
InProcessModelRunner::LoadMap
loadsOf(const std::map<std::string, std::string> &Files,
        const Function &LoadFile) {
  InProcessModelRunner::LoadMap Loads;
  for (const auto &[Label, File] : Files)
    Loads[Label] = [LoadFile, File = File] { return LoadFile(File); };
  return Loads;
}

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELSBYLABEL_H
