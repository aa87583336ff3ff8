//===- ModuleContentsTest.cpp - Replacing a module's contents -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests replaceContents(): afterwards the module prints like its changed copy
/// and passes LLVM's verifier.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/ModuleContents.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <gtest/gtest.h>

using namespace llvm;

namespace {

constexpr StringLiteral Everything = R"(
source_filename = "a.c"
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

module asm ".globl raw"

%pair = type { ptr, i32 }

$shared = comdat any
$largest = comdat largest

@table = internal constant [2 x ptr] [ptr blockaddress(@jump, %one), ptr blockaddress(@jump, %two)]
@shared = linkonce_odr global %pair { ptr @shared, i32 1 }, comdat
@big = linkonce_odr global i64 0, comdat($largest)
@mine = thread_local global i32 5
@llvm.used = appending global [1 x ptr] [ptr @kept], section "llvm.metadata"
@outside = external global i32

@second = alias i32 (i32), ptr @first
@resolved = ifunc i32 (i32), ptr @resolver

define i32 @first(i32 %x) !note !3 {
  %call = call i32 @local(i32 %x)
  ret i32 %call
}
define internal i32 @local(i32 %x) noinline {
  %v = load i32, ptr @outside
  %s = add i32 %v, %x
  ret i32 %s
}
define internal void @kept() {
  ret void
}
define ptr @resolver() {
  ret ptr @first
}
define i32 @jump(ptr %to) {
  indirectbr ptr %to, [label %one, label %two]
one:
  ret i32 1
two:
  ret i32 2
}
define linkonce_odr i32 @inSameComdat() comdat($shared) {
  ret i32 3
}
declare void @nowhere(...)

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!who = !{!2, !3}
!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{!"test"}
!2 = !{ptr @first}
!3 = distinct !{!3}
)";

class ModuleContentsTest : public testing::Test {
protected:
  LLVMContext Context;

  std::unique_ptr<Module> parse(StringRef Text) {
    SMDiagnostic Problem;
    auto M = parseAssemblyString(Text, Problem, Context);
    EXPECT_TRUE(M) << Problem.getMessage().str();
    return M;
  }
};

std::string textOf(const Module &M) {
  std::string Text;
  raw_string_ostream OS(Text);
  M.print(OS, /*AAW=*/nullptr);
  return Text;
}

} // namespace

TEST_F(ModuleContentsTest, AModuleBecomesItsChangedCopy) {
  std::unique_ptr<Module> M = parse(Everything);
  ASSERT_TRUE(M);
  Module *const Before = M.get();
  std::unique_ptr<Module> Copy = CloneModule(*M);
  // Make changes that passes make: remove, add and rename.
  Copy->getFunction("kept")->setName("kept.1");
  Copy->getFunction("nowhere")->eraseFromParent();
  Copy->getFunction("local")->removeFnAttr(Attribute::NoInline);
  new GlobalVariable(*Copy, Type::getInt8Ty(Context), /*isConstant=*/true,
                     GlobalValue::PrivateLinkage,
                     ConstantInt::get(Type::getInt8Ty(Context), 7), "fresh");
  Copy->appendModuleInlineAsm("# more");
  const std::string Wanted = textOf(*Copy);
  ASSERT_NE(textOf(*M), Wanted);

  MLBridge::replaceContents(*M, *Copy);
  Copy.reset();
  EXPECT_EQ(M.get(), Before);
  EXPECT_EQ(textOf(*M), Wanted);
  std::string Problem;
  raw_string_ostream OS(Problem);
  EXPECT_FALSE(verifyModule(*M, &OS)) << Problem;
  // Lookups find the symbols, which belong to this module.
  ASSERT_TRUE(M->getFunction("kept.1"));
  EXPECT_FALSE(M->getFunction("kept"));
  EXPECT_EQ(M->getFunction("first")->getParent(), M.get());
  EXPECT_EQ(M->getNamedAlias("second")->getAliasee(), M->getFunction("first"));
  EXPECT_EQ(M->getGlobalVariable("big")->getComdat(),
            &M->getComdatSymbolTable().find("largest")->second);
}

TEST_F(ModuleContentsTest, OneAfterTheOther) {
  std::unique_ptr<Module> M = parse(Everything);
  ASSERT_TRUE(M);
  for (int Times = 0; Times < 3; ++Times) {
    std::unique_ptr<Module> Copy = CloneModule(*M);
    Copy->getFunction("local")->arg_begin()->setName("x" + Twine(Times));
    MLBridge::replaceContents(*M, *Copy);
  }
  EXPECT_EQ(M->getFunction("local")->arg_begin()->getName(), "x2");
  EXPECT_FALSE(verifyModule(*M));
}

TEST_F(ModuleContentsTest, AnEmptyCopy) {
  std::unique_ptr<Module> M = parse(Everything);
  ASSERT_TRUE(M);
  Module Nothing("nothing", Context);
  MLBridge::replaceContents(*M, Nothing);
  EXPECT_TRUE(M->empty());
  EXPECT_TRUE(M->global_empty());
  EXPECT_TRUE(M->alias_empty());
  EXPECT_TRUE(M->ifunc_empty());
  EXPECT_TRUE(M->named_metadata_empty());
  EXPECT_EQ(M->getModuleInlineAsm(), "");
}
