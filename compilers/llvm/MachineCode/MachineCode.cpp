//===- MachineCode.cpp - Generates and measures machine code --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sets up the code generator in the same way as clang.
///
//===----------------------------------------------------------------------===//

#include "MachineCode/MachineCode.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

using namespace llvm;

namespace MLBridge {

/// True if LLVM can generate code for \p Target with this code model. This is
/// checked first, because LLVM ends the process if the code model is not
/// supported.
static bool hasCodeModel(const Triple &Target, CodeModel::Model Model) {
  const bool HasMediumAndMore = Target.isX86() || Target.isPPC() ||
                                Target.isRISCV() || Target.isLoongArch() ||
                                Target.isSystemZ() || Target.isSPARC();
  switch (Model) {
  case CodeModel::Tiny:
    return Target.isAArch64() && Target.isOSBinFormatELF();
  case CodeModel::Small:
    return true;
  case CodeModel::Kernel:
    return Target.getArch() == Triple::x86_64;
  case CodeModel::Medium:
    return HasMediumAndMore;
  case CodeModel::Large:
    return HasMediumAndMore || Target.isAArch64();
  }
  // Reject other numbers. A module can contain any number as its code model.
  return false;
}

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const Module &M) {
  const Triple &Target = M.getTargetTriple();
  auto Unsupported = [&](const Twine &Why) {
    return Error(
        ErrorCode::Unsupported,
        (M.getModuleIdentifier() + ": target '" + Target.str() + "': " + Why)
            .str());
  };
  std::string Why;
  const llvm::Target *Found = TargetRegistry::lookupTarget(Target, Why);
  if (!Found)
    return Unsupported(Why);
  if (std::optional<CodeModel::Model> Model = M.getCodeModel())
    if (!hasCodeModel(Target, *Model))
      return Unsupported("LLVM does not support its code model, number " +
                         Twine(*Model));
  TargetOptions Options;
  Options.UseInitArray = true;
  std::unique_ptr<TargetMachine> TM(Found->createTargetMachine(
      Target, /*CPU=*/"", /*Features=*/"", Options,
      M.getPICLevel() == PICLevel::NotPIC ? Reloc::Static : Reloc::PIC_,
      M.getCodeModel(), CodeGenOptLevel::Default));
  if (!TM)
    return Unsupported("LLVM has no code generator for this target");
  if (!M.getDataLayoutStr().empty() &&
      !TM->isCompatibleDataLayout(M.getDataLayout()))
    return Unsupported("expected the data layout '" +
                       TM->createDataLayout().getStringRepresentation() +
                       "', found '" +
                       M.getDataLayout().getStringRepresentation() + "'");
  return TM;
}

Expected<bool> setLLVMOption(StringRef Name, StringRef Value) {
  cl::Option *Option = cl::getRegisteredOptions().lookup(Name);
  if (Option && Option->getNumOccurrences() != 0)
    return false;
  if (!Option || Option->addOccurrence(0, Name, Value))
    return Error(ErrorCode::Unsupported,
                 ("this LLVM has no option -" + Name + "=" + Value).str());
  return true;
}

void resetLLVMOption(StringRef Name) {
  if (cl::Option *Option = cl::getRegisteredOptions().lookup(Name))
    Option->reset();
}

Error mapFrequencies() {
  return setLLVMOption("pgo-analysis-map", "bb-freq").takeError();
}

Expected<ObjectCode> emitObject(Module &M, bool MapsBlocks) {
  // Create a new target machine each time. A target machine keeps pointers to
  // the globals of its last module and might confuse them with globals of the
  // next module.
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  (*TM)->Options.BBAddrMap = MapsBlocks;
  ObjectCode Object;
  raw_svector_ostream OS(Object);
  legacy::PassManager Passes;
  Passes.add(new TargetLibraryInfoWrapperPass(
      TargetLibraryInfoImpl(M.getTargetTriple())));
  Passes.add(
      createTargetTransformInfoWrapperPass((*TM)->getTargetIRAnalysis()));
  if ((*TM)->addPassesToEmitFile(Passes, OS, /*DwoOut=*/nullptr,
                                 CodeGenFileType::ObjectFile,
                                 /*DisableVerify=*/true))
    return Error(ErrorCode::Unsupported, M.getModuleIdentifier() +
                                             ": target '" +
                                             M.getTargetTriple().str() +
                                             "' does not support object files");
  Passes.run(M);
  return Object;
}

Expected<std::unique_ptr<object::ObjectFile>>
readObject(const ObjectCode &Object) {
  auto File = object::ObjectFile::createObjectFile(
      MemoryBufferRef(StringRef(Object.data(), Object.size()), "object"));
  if (!File)
    return Error(ErrorCode::Unsupported,
                 "LLVM cannot read the object that it made: " +
                     toString(File.takeError()));
  return std::move(*File);
}

Expected<std::uint64_t> textSize(const ObjectCode &Object) {
  Expected<std::unique_ptr<object::ObjectFile>> File = readObject(Object);
  if (!File)
    return File.takeError();
  std::uint64_t Size = 0;
  for (const object::SectionRef &Section : (*File)->sections())
    if (Section.isText())
      Size += Section.getSize();
  return Size;
}

} // namespace MLBridge
