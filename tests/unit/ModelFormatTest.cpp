//===- ModelFormatTest.cpp - Model files as schemes -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests addModelFormat(): specs of model files, and the cache that loads a
/// file again only if it has changed.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/ModelFormat.h"
#include "FunctionModel.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {
/// Adds a format whose files hold a number. The model adds this number to "x".
class ModelFormatTest : public testing::Test {
protected:
  ModelFormatTest() {
    addModelFormat(Factory,
                   {"add",
                    "add:FILE: adds the number in FILE",
                    [this](const std::string &File, const ModelSpec &Spec) {
                      return load(File, Spec);
                    },
                    {"times"},
                    [](const ModelSpec &Spec) {
                      if (Spec.option("times", "1") == "0")
                        return Error(ErrorCode::InvalidArgument, "times zero");
                      return Error::success();
                    }});
  }

  Expected<std::shared_ptr<const Model>> load(const std::string &File,
                                              const ModelSpec &Spec) {
    // The sleep is long enough for two threads to load at once if the second
    // does not wait.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++Loads;
    int Number = -1;
    if (std::ifstream Stream(File); !(Stream >> Number))
      return Error(ErrorCode::Malformed, "no number in " + File);
    Number *= std::stoi(std::string(Spec.option("times", "1")));
    return std::make_shared<FunctionModel>(
        Spec.Scheme + ":" + File,
        std::vector<TensorSpec>{{"x", ElementType::Int32, {}}},
        std::vector<TensorSpec>{{"out", ElementType::Int32, {}}},
        [Number](Span<const TensorView> Inputs, FeatureSet &Out) {
          Out.set("out", *Advice(Inputs).get<int>() + Number);
          return Error::success();
        });
  }

  std::string write(const std::string &Name, const std::string &Text) {
    std::string Path = Directory.path(Name);
    std::ofstream(Path) << Text;
    return Path;
  }

  static Expected<int> ask(const RunnerFactory &Factory,
                           const std::string &Spec, int X,
                           const char *Agent = nullptr) {
    Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", X});
    if (Agent)
      (*Runner)->populateFeatures(std::pair{"_agent", Agent});
    return (*Runner)->tryEvaluate<int>();
  }
  int ask(const std::string &Spec, int X, const char *Agent = nullptr) {
    Expected<int> Reply = ask(Factory, Spec, X, Agent);
    EXPECT_TRUE(Reply) << Reply.message();
    return Reply ? *Reply : -1;
  }
  std::string failure(const std::string &Spec, ErrorCode Code) {
    Expected<int> Reply = ask(Factory, Spec, 1);
    EXPECT_EQ(Reply.code(), Code) << Spec << ": " << Reply.message();
    return std::string(Reply.message());
  }
  std::string checkFailure(const std::string &Spec) {
    Error E = Factory.check(Spec);
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument) << Spec;
    return E.message();
  }

  TemporaryDirectory Directory;
  RunnerFactory Factory;
  std::atomic<int> Loads = 0;
};
} // namespace

TEST_F(ModelFormatTest, AFileIsLoadedOnceByAFactoryAndItsCopies) {
  const std::string Spec = "add:" + write("five", "5");
  const RunnerFactory Copy = Factory;
  {
    auto Runner = Factory.create(Spec);
    ASSERT_TRUE(Runner) << Runner.message();
    EXPECT_EQ((*Runner)->describe(), Spec);
  }
  EXPECT_EQ(Loads, 0) << "nothing is loaded before the first request";
  EXPECT_EQ(ask(Spec, 1), 6);
  EXPECT_EQ(ask(Spec, 2), 7);
  EXPECT_EQ(*ask(Copy, "fallback|" + Spec + "?timeout=5s", 3), 8);
  EXPECT_EQ(ask(Spec + "?decide=outputs&output=out", 4), 9)
      << "these options do not affect loading";
  EXPECT_EQ(Loads, 1);
  EXPECT_EQ(ask(Spec + "?times=2", 1), 11) << "this option does";
  EXPECT_EQ(Loads, 2);
}

TEST_F(ModelFormatTest, AFileThatChangedIsLoadedAgain) {
  const std::string File = write("n", "5");
  auto Old = Factory.create("add:" + File);
  ASSERT_TRUE(Old);
  (*Old)->populateFeatures(std::pair{"x", 0});
  EXPECT_EQ((*Old)->evaluate<int>(), 5);
  write("n", "16"); // The size differs.
  EXPECT_EQ(ask("add:" + File, 0), 16);
  write("other", "27");
  std::filesystem::rename(Directory.path("other"), File); // The inode differs.
  EXPECT_EQ(ask("add:" + File, 0), 27);
  EXPECT_EQ(Loads, 3);
  (*Old)->populateFeatures(std::pair{"x", 0});
  EXPECT_EQ((*Old)->evaluate<int>(), 5) << "a runner keeps its model";
  std::filesystem::remove(File);
  EXPECT_THAT(failure("add:" + File, ErrorCode::System),
              HasSubstr(File + "': No such file or directory"));
}

TEST_F(ModelFormatTest, AFailureIsNotKept) {
  const std::string File = write("n", "five");
  EXPECT_THAT(failure("add:" + File, ErrorCode::Malformed),
              HasSubstr("no number"));
  EXPECT_THAT(failure("add:" + File, ErrorCode::Malformed),
              HasSubstr("no number"));
  EXPECT_EQ(Loads, 2);
  write("n", "5");
  EXPECT_EQ(ask("add:" + File, 1), 6);
}

TEST_F(ModelFormatTest, ManyThreadsLoadAFileOnce) {
  const std::string Files[] = {write("a", "1"), write("b", "2")};
  std::atomic<int> Right = 0;
  std::vector<std::thread> Threads;
  for (int T = 0; T < 8; ++T)
    Threads.emplace_back([&, T] {
      const RunnerFactory Mine = Factory;
      auto Runner = Mine.create("add:" + Files[T % 2]);
      for (int I = 0; I < 1000; ++I) {
        (*Runner)->populateFeatures(std::pair{"x", I});
        Right += (*Runner)->evaluate<int>() == I + 1 + T % 2;
      }
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Right, 8 * 1000);
  EXPECT_EQ(Loads, 2);
}

TEST_F(ModelFormatTest, AFolderIsAllOfItsFiles) {
  // A SavedModel is a folder, too.
  const std::string Folder = Directory.path("saved");
  std::filesystem::create_directories(Folder + "/variables");
  write("saved/variables/data", "1");
  RunnerFactory Folders;
  addModelFormat(Folders, {"folder", "folder:FOLDER",
                           [&](const std::string &File, const ModelSpec &Spec) {
                             return load(File + "/variables/data", Spec);
                           },
                           /*Options=*/{},
                           /*Check=*/nullptr,
                           /*IsFile=*/true,
                           /*Parts=*/nullptr,
                           /*MayBeFolder=*/true});
  EXPECT_EQ(*ask(Folders, "folder:" + Folder, 1), 2);
  EXPECT_EQ(*ask(Folders, "folder:" + Folder, 1), 2);
  EXPECT_EQ(Loads, 1);
  write("saved/variables/data", "10");
  EXPECT_EQ(*ask(Folders, "folder:" + Folder, 1), 11);

  // A folder with too many files for a model must be refused quickly. Measure
  // processor time, because a slow disk is no error.
  const std::clock_t Start = std::clock();
  Expected<int> Reply = ask(Folders, "folder:/usr", 1);
  EXPECT_EQ(Reply.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Reply.message(), "model folder '/usr': expected a model of at "
                             "most 10000 files and folders, found more");
  EXPECT_LT(std::clock() - Start, 2 * CLOCKS_PER_SEC);
  EXPECT_EQ(Loads, 2);
}

TEST_F(ModelFormatTest, AFolderIsNotAFile) {
  const std::clock_t Start = std::clock();
  EXPECT_EQ(failure("add:/usr", ErrorCode::InvalidArgument),
            "model file '/usr': expected a regular file, found a folder");
  EXPECT_LT(std::clock() - Start, CLOCKS_PER_SEC);
  EXPECT_EQ(Loads, 0);
}

/// True if \p Text is printable and not too long.
static bool isShowable(const std::string &Text) {
  return Text.size() < 5'000 &&
         std::ranges::all_of(
             Text,
             [](char C) {
               return static_cast<unsigned char>(C) >= 0x20 && C != 0x7F;
             });
}

TEST_F(ModelFormatTest, MessagesAreBoundedWhateverTheyQuote) {
  const std::string Long(100'000, 'a');
  // These names are too long: a file name has at most 255 bytes.
  for (const std::string &Path :
       {Long, Directory.path(std::string(256, 'b')), "/tmp/\x1b[31m\n" + Long,
        Directory.path("\x1b[2J")}) {
    const std::string Message = failure("add:" + Path, ErrorCode::System);
    EXPECT_TRUE(isShowable(Message));
    EXPECT_LT(Message.size(), 400U);
  }
  EXPECT_THAT(failure("add:" + Directory.path(std::string(256, 'b')),
                      ErrorCode::System),
              testing::EndsWith("File name too long"));
  EXPECT_TRUE(
      isShowable(checkFailure("add:\x1b" + Long + "?decide=\x1b" + Long)));
  EXPECT_TRUE(isShowable(
      checkFailure("add:\x1b" + Long + "=a," + "\x1b" + Long + "=b")));
  auto Runner = Factory.create("add:/\x1b" + Long);
  ASSERT_TRUE(Runner) << Runner.message();
  EXPECT_TRUE(isShowable((*Runner)->describe()));
}

TEST_F(ModelFormatTest, MessagesOfARuntimeAreBounded) {
  // A runtime may quote megabytes of a model in its message.
  const std::string Text = "first line\n\x1b[31m" + std::string(1 << 20, 'x');
  Error Failure;
  addModelFormat(Factory,
                 {"wordy", "", [&](const std::string &, const auto &) {
                    return Expected<std::shared_ptr<const Model>>(Failure);
                  }});
  const std::string Spec = "wordy:" + write("file", "");
  Failure = Error(ErrorCode::Malformed, Text);
  EXPECT_TRUE(isShowable(failure(Spec, ErrorCode::Malformed)));
  addModelFormat(
      Factory,
      {"failing", "", [&](const std::string &, const auto &) {
         return Expected<std::shared_ptr<const Model>>(
             std::make_shared<FunctionModel>(
                 Text, std::vector<TensorSpec>{{Text, ElementType::Int32, {}}},
                 std::vector<TensorSpec>{},
                 [&](Span<const TensorView>, FeatureSet &) {
                   return Failure;
                 }));
       }});
  auto Runner = Factory.create("failing:" + Directory.path("file"));
  ASSERT_TRUE(Runner) << Runner.message();
  EXPECT_TRUE(isShowable((*Runner)->tryEvaluate<int>().takeError().message()));
  (*Runner)->populateFeatures(std::pair{Text, 1.0});
  EXPECT_TRUE(isShowable((*Runner)->tryEvaluate<int>().takeError().message()));
  (*Runner)->populateFeatures(std::pair{Text, 1});
  EXPECT_TRUE(isShowable((*Runner)->tryEvaluate<int>().takeError().message()));
}

TEST_F(ModelFormatTest, AChildLoadsForItself) {
  const std::string Spec = "add:" + write("five", "5");
  auto Runner = Factory.create(Spec);
  ASSERT_TRUE(Runner) << Runner.message();
  auto Ask = [&](int X) {
    (*Runner)->populateFeatures(std::pair{"x", X});
    return (*Runner)->tryEvaluate<int>();
  };
  EXPECT_EQ(*Ask(1), 6);
  EXPECT_EQ(Loads, 1);
  Child Forked([&] {
    for (int X : {2, 3})
      if (Expected<int> Reply = Ask(X); !Reply || *Reply != X + 5)
        return 1;
    if (Loads != 2)
      return 2;
    // The child's runners share the model that the child loaded.
    if (ask(Spec, 4) != 9 || Loads != 2)
      return 3;
    // If this destroyed a model of the parent, the child would end.
    Runner = Error(ErrorCode::Model, "none");
    Factory = RunnerFactory();
    return 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_EQ(*Ask(4), 9);
  EXPECT_EQ(Loads, 1);
  Child Unused([&] {
    Runner = Error(ErrorCode::Model, "none");
    return 0;
  });
  EXPECT_EQ(Unused.wait(), 0);
}

TEST_F(ModelFormatTest, OnlyRegularFilesAreOpened) {
  const std::string Pipe = Directory.path("pipe");
  ASSERT_EQ(::mkfifo(Pipe.c_str(), 0600), 0);
  EXPECT_THAT(failure("add:" + Pipe, ErrorCode::InvalidArgument),
              HasSubstr("expected a regular file, found a FIFO"));
  EXPECT_EQ(Loads, 0);
}

TEST_F(ModelFormatTest, LabelsNameFiles) {
  const std::string A = write("a", "1"), B = write("b,c", "2");
  const std::string Spec = "add:node=" + A + ",colour=" + B;
  EXPECT_EQ(ask(Spec, 1, "node"), 2);
  EXPECT_EQ(Loads, 1) << "only that model is loaded";
  EXPECT_EQ(ask(Spec, 1, "colour"), 3);
  EXPECT_EQ(ask("add:" + A, 1), 2);
  EXPECT_EQ(Loads, 2) << "the same file, with or without a label";

  // The name of this file looks like a label.
  const std::string Strange = write("x=y", "3");
  EXPECT_EQ(ask("add:" + Strange, 1), 4) << "a label has no slash";
}

TEST_F(ModelFormatTest, WrongSpecsAreFoundWithoutLoading) {
  EXPECT_THAT(checkFailure("add"),
              HasSubstr("expected a file, or label=FILE,label=FILE"));
  EXPECT_THAT(checkFailure("add:a="), HasSubstr("expected a file after 'a='"));
  EXPECT_THAT(checkFailure("add:a=x,b="), HasSubstr("after 'b='"));
  EXPECT_THAT(checkFailure("add:a=x,a=y"),
              HasSubstr("each label once, found 'a' again"));
  EXPECT_THAT(checkFailure("add:m?x=1"),
              HasSubstr("unknown option 'x'; known: times, decide, output, "
                        "mask, seed, finite, timeout"));
  EXPECT_THAT(checkFailure("add:m?decide=best"),
              HasSubstr("option 'decide': expected outputs, argmax or sample, "
                        "found 'best'"));
  for (const char *Seed : {"-1", "x", "", "1x", "18446744073709551616"})
    EXPECT_THAT(checkFailure(std::string("add:m?seed=") + Seed),
                HasSubstr("option 'seed': expected a number from 0 to"));
  EXPECT_THAT(checkFailure("add:m?finite=yes"), HasSubstr("true or false"));
  EXPECT_THAT(checkFailure("add:m?times=0"), HasSubstr("times zero"));
  EXPECT_FALSE(Factory.check(
      "add:a=x,b=y?times=3&decide=sample&output=o&mask=m&finite=false&"
      "seed=18446744073709551615"));
  EXPECT_EQ(Loads, 0);
}
