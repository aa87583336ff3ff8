//===- ModelsByLabel.h - Files by label for one runner ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Helpers for runners whose models have labels and are loaded from files. They
/// work for every runtime.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELSBYLABEL_H
#define MLBRIDGE_LIB_INPROCESS_MODELSBYLABEL_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

namespace MLBridge::inprocess {

/// Returns the runner's name for error messages, for example
/// "onnx:colour=b.onnx,node=a.onnx".
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

/// Returns a function for each label. The function calls \p LoadFile for the
/// label's file.
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
