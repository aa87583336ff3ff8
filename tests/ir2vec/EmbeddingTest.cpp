//===- EmbeddingTest.cpp - IR2Vec embeddings ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares the embeddings of small modules with LLVM's. The modules contain
/// everything that IR2Vec counts. Also tests the embeddings of changing
/// modules, and the normalizations.
//===----------------------------------------------------------------------===//

#include "LLVMEmbedder.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <unistd.h>

using namespace MLBridge;
using MLBridge::test::AnalysisManagers;

namespace {

// This function has reachable and unreachable blocks in the order in which they
// are visited. One unreachable block is in a cycle, another has an edge to a
// reachable block. The function also uses values of later blocks, has
// instructions that are not counted, and has every kind of operand.
constexpr char Everything[] = R"(
%Pair = type { i32, ptr }
@Global = global i32 7
@Alias = alias i32, ptr @Global
declare i32 @callee(ptr, ...)
declare i32 @personality(...)
declare void @llvm.pseudoprobe(i64, i64, i32, i64)

define i32 @odd(i32 %n, ptr %p, double %d, <4 x float> %v) personality ptr @personality {
entry:
  call void @llvm.pseudoprobe(i64 1, i64 1, i32 0, i64 -1)
  %slot = alloca %Pair, align 8
  %agg = insertvalue %Pair poison, i32 %n, 0
  store %Pair %agg, ptr %slot
  %c = icmp slt i32 %n, 10
  %f = fcmp uno double %d, 1.0
  %b = and i1 %c, %f
  br i1 %b, label %loop, label %cases
dead:
  %deadvalue = add i32 %n, 1
  br label %dead2
later:
  %use = phi i32 [ %early, %body ], [ %x, %loop ]
  %r = call i32 (ptr, ...) @callee(ptr @Global, i32 %use, double %d)
  ret i32 %r
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %x = load i32, ptr %p
  %t = icmp ugt i32 %i, %x
  br i1 %t, label %later, label %body
body:
  %early = mul i32 %i, %i
  %next = add i32 %i, 1
  %ptr = getelementptr i32, ptr %p, i32 %next
  %old = atomicrmw add ptr %ptr, i32 %next seq_cst
  %cx = cmpxchg ptr %ptr, i32 %old, i32 0 acq_rel monotonic
  fence seq_cst
  %done = icmp eq i32 %next, %n
  br i1 %done, label %later, label %loop
dead2:
  br i1 true, label %dead, label %cases
cases:
  switch i32 %n, label %unwinds [ i32 1, label %vectors
                                  i32 2, label %vectors ]
vectors:
  %e = extractelement <4 x float> %v, i32 0
  %w = fneg <4 x float> %v
  %s = shufflevector <4 x float> %v, <4 x float> %w, <4 x i32> <i32 0, i32 5, i32 2, i32 7>
  %m = fcmp olt <4 x float> %s, zeroinitializer
  %se = select <4 x i1> %m, <4 x float> %s, <4 x float> %v
  %fz = freeze float %e
  %fi = fptosi float %fz to i32
  %ag = load %Pair, ptr %slot
  %first = extractvalue %Pair %ag, 0
  %sum = add i32 %fi, %first
  ret i32 %sum
unwinds:
  %iv = invoke i32 (ptr, ...) @callee(ptr @Alias)
        to label %fine unwind label %pad
fine:
  %asm = call i32 asm "mov $1, $0", "=r,r"(i32 %iv)
  %pi = ptrtoint ptr @odd to i64
  %tr = trunc i64 %pi to i32
  ret i32 %tr
pad:
  %lp = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %lp
}

define void @single() {
  unreachable
}

define internal i32 @twice(i32 %x) {
  %a = add i32 %x, %x
  %b = add i32 %a, %a
  ret i32 %b
}
)";

/// A vocabulary with a random vector for each entity, in a temporary file.
class EmbeddingTest : public testing::Test {
protected:
  static constexpr unsigned Dimension = 75;

  void SetUp() override {
    Path = testing::TempDir() + "/mlbridge-embedding-" +
           std::to_string(::getpid()) + ".json";
    std::mt19937 Random(1);
    std::uniform_real_distribution<double> Uniform(-1, 1);
    llvm::json::Object Sections;
    for (EntitySection Section : EntitySections)
      Sections[entitySectionName(Section)] = llvm::json::Object();
    for (unsigned Entity = 0; Entity != NumIREntities; ++Entity) {
      llvm::json::Array Vector;
      for (unsigned I = 0; I != Dimension; ++I)
        Vector.push_back(Uniform(Random));
      (*Sections.getObject(entitySectionName(
          sectionOfEntity(Entity))))[entityName(Entity)] = std::move(Vector);
    }
    {
      std::error_code Code;
      llvm::raw_fd_ostream File(Path, Code);
      ASSERT_FALSE(Code);
      File << llvm::json::Value(std::move(Sections));
    }
    Expected<EmbeddingVocabulary> Loaded = EmbeddingVocabulary::load(Path);
    ASSERT_TRUE(Loaded) << Loaded.message();
    Vocabulary.emplace(std::move(*Loaded));
    EXPECT_TRUE(Vocabulary->missing().empty());
  }
  void TearDown() override { ::unlink(Path.c_str()); }

  std::unique_ptr<llvm::Module> parse(const std::string &Text) {
    llvm::SMDiagnostic Problem;
    std::unique_ptr<llvm::Module> M =
        llvm::parseAssemblyString(Text, Problem, Context);
    EXPECT_TRUE(M) << Problem.getMessage().str() << " in line "
                   << Problem.getLineNo();
    EXPECT_FALSE(M && llvm::verifyModule(*M, &llvm::errs()));
    return M;
  }

  std::vector<float> embed(const EntityHistogram &Histogram,
                           Normalization How = Normalization::None) const {
    std::vector<float> Into(Vocabulary->dimension());
    Vocabulary->embed(Histogram, How, Into);
    return Into;
  }

  static void run(llvm::StringRef Passes, llvm::Module &M,
                  AnalysisManagers &Managers) {
    llvm::ModulePassManager MPM;
    ASSERT_FALSE(errorToBool(Managers.Builder.parsePassPipeline(MPM, Passes)));
    MPM.run(M, Managers.Modules);
  }

  void expectLLVMs(llvm::Module &M) {
    const llvm::ir2vec::Vocabulary LLVMs = test::readByLLVM(Path, M);
    ASSERT_TRUE(LLVMs.isValid());
    for (unsigned Entity = 0; const llvm::ir2vec::Embedding &Vector : LLVMs)
      EXPECT_EQ((*Vocabulary)[Entity++].vec(), Vector.getData());
    for (llvm::Function &F : M) {
      auto Symbolic =
          llvm::ir2vec::Embedder::create(llvm::IR2VecKind::Symbolic, F, LLVMs);
      EXPECT_TRUE(test::isSame(embed(EntityHistogram::of(F)),
                               Symbolic->getFunctionVector()))
          << F.getName().str();
      for (const llvm::BasicBlock &Block : F)
        for (const llvm::Instruction &I : Block.instructionsWithoutDebug())
          EXPECT_TRUE(test::isSame(embed(EntityHistogram::of(I)),
                                   Symbolic->getInstVector(I)))
              << I.getOpcodeName();
      auto Flow =
          llvm::ir2vec::Embedder::create(llvm::IR2VecKind::FlowAware, F, LLVMs);
      EXPECT_TRUE(test::isSame(
          embed(EntityHistogram::of(F, EmbeddingKind::LLVMFlowAware)),
          Flow->getFunctionVector()))
          << F.getName().str();
    }
  }

  static unsigned entity(const std::string &Name) {
    for (unsigned Entity = 0; Entity != NumIREntities; ++Entity)
      if (entityName(Entity) == Name)
        return Entity;
    ADD_FAILURE() << Name;
    return 0;
  }

  std::string Path;
  std::optional<EmbeddingVocabulary> Vocabulary;
  llvm::LLVMContext Context;
};

TEST_F(EmbeddingTest, AgreesWithLLVM) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  expectLLVMs(*M);
}

TEST_F(EmbeddingTest, CountsWhatCanBeReached) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  const llvm::Function &Odd = *M->getFunction("odd");
  const EntityHistogram Histogram = EntityHistogram::of(Odd);
  // All instructions are counted except the three in dead and dead2. LLVM does
  // not count pseudo probes either.
  EXPECT_EQ(Histogram.instructions(), Odd.getInstructionCount() - 3);
  EXPECT_EQ(Histogram[entity("Fence")], 1);
  EXPECT_EQ(Histogram[entity("Call")], 2);
  EXPECT_EQ(Histogram[entity("ICMP_slt")], 1);
  EXPECT_EQ(Histogram[entity("FCMP_olt")], 1);
  // @odd counts once and @callee twice. @Alias counts as a pointer.
  EXPECT_EQ(Histogram[entity("Function")], 3);

  // Every block is reachable, but most blocks only through later blocks.
  std::string Body = "define void @f(i1 %c) {\nb0:\n  br label %b19\n";
  for (int I = 1; I != 20; ++I)
    Body += "b" + std::to_string(I) + ":\n  br i1 %c, label %b" +
            std::to_string(I == 1 ? 19 : I - 1) + ", label %end\n";
  std::unique_ptr<llvm::Module> Backwards = parse(Body + "end:\n  ret void\n}");
  ASSERT_TRUE(Backwards);
  EXPECT_EQ(EntityHistogram::of(*Backwards)[entity("Br")], 20);
}

TEST_F(EmbeddingTest, FlowIsBounded) {
  // Each line computes x = x + x, so 2^N paths lead to the first x.
  constexpr int Length = 5000;
  std::string Body = "define i32 @f(i32 %x0) {\n";
  for (int I = 1; I <= Length; ++I)
    Body += "  %x" + std::to_string(I) + " = add i32 %x" +
            std::to_string(I - 1) + ", %x" + std::to_string(I - 1) + "\n";
  Body += "  ret i32 %x" + std::to_string(Length) + "\n}\n";
  std::unique_ptr<llvm::Module> M = parse(Body);
  ASSERT_TRUE(M);
  const EntityHistogram Flow =
      EntityHistogram::of(*M, EmbeddingKind::FlowAware);
  EXPECT_EQ(Flow.instructions(), Length + 1U);
  const double Weight = Flow[entity("Add")] + Flow[entity("Ret")];
  EXPECT_GT(Weight, 1.5 * Length);
  EXPECT_LE(Weight, 2 * (Length + 1));

  const EntityHistogram LLVMs =
      EntityHistogram::of(*M, EmbeddingKind::LLVMFlowAware);
  EXPECT_GT(LLVMs[entity("Add")], EntityHistogram::MaxFlowWeight);
  for (double Count : LLVMs.counts())
    EXPECT_TRUE(std::isfinite(Count));
  for (float Element : embed(LLVMs))
    EXPECT_TRUE(std::isfinite(Element));
}

TEST_F(EmbeddingTest, FlowFollowsDefinitions) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  const EntityHistogram Flow =
      EntityHistogram::of(*M->getFunction("twice"), EmbeddingKind::FlowAware);
  // The weights are 1 for ret, 1 + 0.2 for b, and 1 + 2 * 0.2 * 1.2 for a. Both
  // operands of a have the weight of a.
  EXPECT_DOUBLE_EQ(Flow[entity("Ret")], 1);
  EXPECT_DOUBLE_EQ(Flow[entity("Add")], 1.2 + 1.48);
  EXPECT_DOUBLE_EQ(Flow[entity("Variable")], 2 * 1.48);
}

TEST_F(EmbeddingTest, Normalizes) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  const EntityHistogram Histogram = EntityHistogram::of(*M);
  const std::vector<float> Sum = embed(Histogram);
  const std::vector<float> Mean =
      embed(Histogram, Normalization::PerInstruction);
  const std::vector<float> Logs = embed(Histogram, Normalization::Logarithmic);
  double Largest = 0;
  for (unsigned I = 0; I != Dimension; ++I) {
    EXPECT_FLOAT_EQ(Mean[I], Sum[I] / float(Histogram.instructions()));
    EXPECT_FLOAT_EQ(Logs[I],
                    std::copysign(std::log1p(std::abs(Sum[I])), Sum[I]));
    Largest = std::max<double>(Largest, std::abs(Sum[I]));
  }
  EXPECT_GT(Largest, 10);
  for (Normalization How : {Normalization::None, Normalization::PerInstruction,
                            Normalization::Logarithmic})
    EXPECT_THAT(embed(EntityHistogram(), How), testing::Each(0.F));
}

TEST_F(EmbeddingTest, CountsOnlyWhatChanged) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  ModuleEmbedder Embedder(*Vocabulary, {});
  AnalysisManagers Managers;
  EXPECT_TRUE(Embedder.registerAnalyses(Managers.Functions));
  EXPECT_FALSE(Embedder.registerAnalyses(Managers.Functions));
  Managers.registerLLVMs();
  auto Run = [&](llvm::StringRef Passes) { run(Passes, *M, Managers); };
  auto ExpectCounted = [&](std::size_t Functions) {
    const std::size_t Before = Embedder.functionsCounted();
    std::vector<float> Into(Dimension);
    Embedder.embed(*M, Managers.Functions, Into);
    EXPECT_EQ(Embedder.functionsCounted() - Before, Functions);
    EXPECT_EQ(Into,
              embed(EntityHistogram::of(*M), Normalization::PerInstruction));
    EXPECT_FALSE(Embedder.verify(*M, Managers.Functions));
  };
  ExpectCounted(3);
  ExpectCounted(0);
  // SLP finds nothing to vectorize.
  Run("function(slp-vectorizer)");
  ExpectCounted(0);
  // InstCombine changes (x + x) + (x + x).
  Run("function(instcombine)");
  ExpectCounted(2);
  Run("function(instcombine)");
  ExpectCounted(0);
  // The pass removes @twice, which is unused. After a module pass, every
  // function is counted again.
  Run("globaldce");
  EXPECT_EQ(M->getFunction("twice"), nullptr);
  ExpectCounted(2);

  std::vector<float> Into(Dimension);
  llvm::Function &Odd = *M->getFunction("odd");
  Embedder.embed(Odd, Managers.Functions, Into);
  EXPECT_EQ(Into,
            embed(EntityHistogram::of(Odd), Normalization::PerInstruction));
  Embedder.embed(Odd.getEntryBlock().back(), Into);
  EXPECT_EQ(Into, embed(EntityHistogram::of(Odd.getEntryBlock().back())));
}

TEST_F(EmbeddingTest, CountsNothingAgainForAttributes) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  M->getOrInsertFunction(
      "strlen", llvm::FunctionType::get(llvm::Type::getInt64Ty(Context),
                                        {llvm::PointerType::get(Context, 0)},
                                        /*isVarArg=*/false));
  ModuleEmbedder Embedder(*Vocabulary, {});
  llvm::PassInstrumentationCallbacks Callbacks;
  AnalysisManagers Managers(&Callbacks);
  EXPECT_TRUE(Embedder.registerAnalyses(Managers.Functions, Callbacks));
  Managers.registerLLVMs();
  auto Run = [&](llvm::StringRef Passes) { run(Passes, *M, Managers); };
  auto Counted = [&] {
    const std::size_t Before = Embedder.functionsCounted();
    EXPECT_EQ(Embedder.histogram(*M, Managers.Functions),
              EntityHistogram::of(*M));
    EXPECT_FALSE(Embedder.verify(*M, Managers.Functions));
    return Embedder.functionsCounted() - Before;
  };
  EXPECT_EQ(Counted(), 3U);
  EXPECT_FALSE(
      M->getFunction("strlen")->hasFnAttribute(llvm::Attribute::NoFree));
  Run("inferattrs");
  EXPECT_TRUE(
      M->getFunction("strlen")->hasFnAttribute(llvm::Attribute::NoFree));
  EXPECT_EQ(Managers.Functions.getCachedResult<EntityHistogramAnalysis>(
                *M->getFunction("odd")),
            nullptr);
  EXPECT_EQ(Counted(), 0U);
  // Attributes may change twice between two queries. The functions are not
  // counted again then either.
  M->getFunction("strlen")->removeFnAttr(llvm::Attribute::NoFree);
  Run("inferattrs");
  M->getFunction("strlen")->removeFnAttr(llvm::Attribute::NoFree);
  Run("inferattrs");
  EXPECT_EQ(Counted(), 0U);
  // The later pass InstCombine may change everything.
  M->getFunction("strlen")->removeFnAttr(llvm::Attribute::NoFree);
  Run("inferattrs,function(instcombine)");
  EXPECT_EQ(Counted(), 3U);
}

TEST_F(EmbeddingTest, ReportsAPassThatHidesItsChange) {
  std::unique_ptr<llvm::Module> M = parse(Everything);
  ASSERT_TRUE(M);
  ModuleEmbedder Embedder(*Vocabulary, {});
  AnalysisManagers Managers;
  Embedder.registerAnalyses(Managers.Functions);
  Managers.registerLLVMs();
  static_cast<void>(Embedder.histogram(*M, Managers.Functions));
  EXPECT_FALSE(Embedder.verify(*M, Managers.Functions));
  // Change the module but invalidate no analysis, like a pass that hides its
  // change.
  llvm::Instruction &Add = M->getFunction("twice")->getEntryBlock().front();
  Add.setOperand(0, llvm::ConstantInt::get(Add.getType(), 1));
  Error E = Embedder.verify(*M, Managers.Functions);
  EXPECT_EQ(E.code(), ErrorCode::Malformed);
  EXPECT_THAT(E.message(), testing::HasSubstr("function 'twice'"));
}

} // namespace
