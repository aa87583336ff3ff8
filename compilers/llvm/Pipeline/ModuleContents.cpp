//===- ModuleContents.cpp - Replaces the contents of a module -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline/ModuleContents.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Comdat.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace MLBridge {

static void clear(Module &M) {
  for (NamedMDNode &Node : make_early_inc_range(M.named_metadata()))
    Node.eraseFromParent();
  // Drop all references first, because globals may refer to each other.
  M.dropAllReferences();
  for (GlobalAlias &Alias : make_early_inc_range(M.aliases()))
    Alias.eraseFromParent();
  for (GlobalIFunc &IFunc : make_early_inc_range(M.ifuncs()))
    IFunc.eraseFromParent();
  for (Function &F : make_early_inc_range(M))
    F.eraseFromParent();
  for (GlobalVariable &Variable : make_early_inc_range(M.globals()))
    Variable.eraseFromParent();
}

/// Replaces the comdat of \p Moved by an equal comdat in \p M, its new module.
static void moveComdat(GlobalObject &Moved, Module &M) {
  const Comdat *Theirs = Moved.getComdat();
  if (!Theirs)
    return;
  Comdat *Ours = M.getOrInsertComdat(Theirs->getName());
  Ours->setSelectionKind(Theirs->getSelectionKind());
  Moved.setComdat(Ours);
}

void replaceContents(Module &M, Module &From) {
  clear(M);
  for (GlobalVariable &Variable : make_early_inc_range(From.globals())) {
    Variable.removeFromParent();
    M.insertGlobalVariable(&Variable);
    moveComdat(Variable, M);
  }
  for (Function &F : make_early_inc_range(From)) {
    F.removeFromParent();
    M.getFunctionList().push_back(&F);
    moveComdat(F, M);
  }
  for (GlobalAlias &Alias : make_early_inc_range(From.aliases())) {
    Alias.removeFromParent();
    M.insertAlias(&Alias);
  }
  for (GlobalIFunc &IFunc : make_early_inc_range(From.ifuncs())) {
    IFunc.removeFromParent();
    M.insertIFunc(&IFunc);
  }
  for (NamedMDNode &Theirs : From.named_metadata()) {
    NamedMDNode *Ours = M.getOrInsertNamedMetadata(Theirs.getName());
    for (MDNode *Node : Theirs.operands())
      Ours->addOperand(Node);
  }
  M.setModuleInlineAsm(From.getModuleInlineAsm());
}

} // namespace MLBridge
