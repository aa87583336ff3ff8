//===- LinkedText.cpp - The code that a linker keeps ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the code that a linker keeps, and compiles the functions whose size is
/// unknown.
///
//===----------------------------------------------------------------------===//

#include "Size/LinkedText.h"

#include "MachineCode/MachineCode.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/StructuralHash.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace MLBridge {
namespace {

/// Marks the globals that a linker keeps.
class Reachability {
public:
  explicit Reachability(const Module &M) {
    for (const GlobalObject &Object : M.global_objects())
      if (const Comdat *Group = Object.getComdat())
        Groups[Group].push_back(&Object);
  }

  void mark(const Value &V) {
    if (isa<Constant>(V) && Kept.insert(&V).second)
      Work.push_back(&V);
  }
  void follow() {
    while (!Work.empty()) {
      const auto *User = cast<llvm::User>(Work.pop_back_val());
      markOperands(*User);
      // A linker keeps or drops a group of sections as a whole.
      if (const auto *Object = dyn_cast<GlobalObject>(User))
        if (const Comdat *Group = Object->getComdat())
          for (const GlobalObject *Member : Groups[Group])
            mark(*Member);
      if (const auto *F = dyn_cast<Function>(User))
        for (const Instruction &I : instructions(F))
          markOperands(I);
    }
  }
  bool keeps(const GlobalValue &Global) const { return Kept.contains(&Global); }

private:
  void markOperands(const User &Of) {
    for (const Use &Operand : Of.operands())
      mark(*Operand);
  }

  DenseMap<const Comdat *, SmallVector<const GlobalObject *, 2>> Groups;
  DenseSet<const Value *> Kept;
  SmallVector<const Value *> Work;
};

} // namespace

/// True if the linker keeps \p Global although nothing refers to it.
static bool isRoot(const GlobalValue &Global, LinkRoots Roots) {
  if (Global.isDeclarationForLinker())
    return false;
  // LLVM's lists of globals have appending linkage, for example llvm.used.
  if (Global.getName() == "main" || Global.hasAppendingLinkage())
    return true;
  const auto *Object = dyn_cast<GlobalObject>(&Global);
  if (Object && Object->hasSection())
    return true;
  switch (Roots) {
  case LinkRoots::Main:
    return false;
  case LinkRoots::Exported:
    return !Global.hasLocalLinkage() && Global.hasDefaultVisibility();
  case LinkRoots::Defined:
    return !Global.isDiscardableIfUnused();
  }
  return false;
}

static Expected<Reachability> reachabilityOf(const Module &M, LinkRoots Roots) {
  Reachability Result(M);
  bool HasRoot = false;
  for (const GlobalValue &Global : M.global_values())
    if (isRoot(Global, Roots)) {
      Result.mark(Global);
      HasRoot |= !Global.hasAppendingLinkage();
    }
  if (!HasRoot && Roots != LinkRoots::Defined)
    return Error(ErrorCode::InvalidArgument,
                 M.getModuleIdentifier() +
                     ": expected a program with a function `main`, or a shared "
                     "library, found neither");
  Result.follow();
  return Result;
}

/// True if an alias, an ifunc or a block address refers to \p F. The body of \p
/// F must then stay.
static bool mustKeepBody(const Function &F) {
  return any_of(F.users(), [](const User *U) {
    return isa<GlobalAlias>(U) || isa<GlobalIFunc>(U) || isa<BlockAddress>(U);
  });
}

static void removeBody(Function &F) {
  F.deleteBody();
  F.setComdat(nullptr);
  F.setLinkage(GlobalValue::ExternalLinkage);
  F.setVisibility(GlobalValue::DefaultVisibility);
  F.setDSOLocal(true);
}

/// Returns the sizes of the functions that \p Object defines, by symbol.
static Expected<StringMap<std::uint64_t>>
symbolSizes(const ObjectCode &Object) {
  Expected<std::unique_ptr<object::ObjectFile>> File = readObject(Object);
  if (!File)
    return File.takeError();
  const auto *ELF = dyn_cast<object::ELFObjectFileBase>(File->get());
  if (!ELF)
    return Error(ErrorCode::Unsupported,
                 "expected a target with ELF objects, found " +
                     (*File)->getFileFormatName().str());
  StringMap<std::uint64_t> Sizes;
  for (const object::ELFSymbolRef &Symbol : ELF->symbols()) {
    if (Symbol.getELFType() != ELF::STT_FUNC)
      continue;
    llvm::Expected<StringRef> Name = Symbol.getName();
    if (!Name)
      return Error(ErrorCode::Unsupported,
                   "LLVM cannot read a symbol of the object that it made: " +
                       toString(Name.takeError()));
    Sizes[*Name] = Symbol.getSize();
  }
  return Sizes;
}

Expected<LinkedText> LinkedTextMeter::measure(Module &M) {
  Expected<Reachability> Reached = reachabilityOf(M, Roots);
  if (!Reached)
    return Reached.takeError();
  LinkedText Result;
  std::vector<std::pair<Function *, std::uint64_t>> ToCompile;
  std::vector<Function *> ToRemove;
  for (Function &F : M) {
    if (F.isDeclarationForLinker())
      continue;
    const bool IsKept = Reached->keeps(F);
    const std::uint64_t Hash = hash_combine(
        xxh3_64bits(F.getName()), StructuralHash(F, /*DetailedHash=*/true));
    const auto Size = Known.find(Hash);
    if (IsKept && Size != Known.end())
      Result.Functions[F.getName()] = Size->second;
    if (IsKept && Size == Known.end())
      ToCompile.emplace_back(&F, Hash);
    else if (!mustKeepBody(F))
      ToRemove.push_back(&F);
  }
  for (Function *F : ToRemove)
    removeBody(*F);
  if (!ToCompile.empty()) {
    SmallPtrSet<const Function *, 32> Given;
    for (const Function &F : M)
      Given.insert(&F);
    Expected<ObjectCode> Object = emitObject(M);
    if (!Object)
      return Object.takeError();
    Expected<StringMap<std::uint64_t>> Sizes = symbolSizes(*Object);
    if (!Sizes)
      return Sizes.takeError();
    for (const auto &[F, Hash] : ToCompile) {
      const StringRef Symbol =
          GlobalValue::dropLLVMManglingEscape(F->getName());
      Known[Hash] = Result.Functions[F->getName()] = Sizes->lookup(Symbol);
    }
    for (const Function &F : M)
      if (!F.isDeclaration() && !Given.contains(&F))
        Result.Functions[F.getName()] = Sizes->lookup(F.getName());
  }
  for (const auto &Function : Result.Functions)
    Result.Bytes += Function.second;
  return Result;
}

} // namespace MLBridge
