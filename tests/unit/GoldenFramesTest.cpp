//===- GoldenFramesTest.cpp - The wire formats, byte for byte -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares the messages that each format writes with the frames in
/// tests/golden, and reads these frames. A change of the wire format fails this
/// test and shows in the diff of that folder.
///
/// If MLBRIDGE_UPDATE_GOLDEN=1 is in the environment, the test writes the
/// frames instead. Use this for a new frame or an intended change.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"
#include "support/Formats.h"
#include "support/Messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

using namespace MLBridge;
using namespace MLBridge::test;

namespace {

//===----------------------------------------------------------------------===//
// The frames, which tests/golden/README.md describes
//===----------------------------------------------------------------------===//

template <typename T> using Limits = std::numeric_limits<T>;

FeatureSet empty() { return {}; }

FeatureSet scalars() {
  FeatureSet Set;
  Set.set("int8", std::int8_t(-8));
  Set.set("int16", std::int16_t(-16));
  Set.set("int32", std::int32_t(-32));
  Set.set("int64", std::int64_t(-64));
  Set.set("uint8", std::uint8_t(8));
  Set.set("uint16", std::uint16_t(16));
  Set.set("uint32", std::uint32_t(32));
  Set.set("uint64", std::uint64_t(64));
  Set.set("float", 0.1f);
  Set.set("double", 0.1);
  Set.set("true", true);
  Set.set("false", false);
  Set.set("string", "text");
  return Set;
}

FeatureSet shapes() {
  static const float Floats[] = {1, 2.5, -3, 4, 5, 6};
  static const std::int8_t Bytes[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const std::uint64_t One[] = {1};
  FeatureSet Set;
  Set.set("bools", std::vector<bool>{true, false, true});
  Set.set("vector", Span<const float>(Floats));
  Set.set("one", std::vector<std::int64_t>{7});
  Set.set("matrix", TensorRef<float>(Floats, {2, 3}));
  Set.set("cube", TensorRef<std::int8_t>(Bytes, {2, 2, 2}));
  Set.set("rank 8", TensorRef<std::uint64_t>(One, {1, 1, 1, 1, 1, 1, 1, 1}));
  Set.set("odd", std::vector<std::uint16_t>{1, 2, 65535});
  return Set;
}

FeatureSet emptyTensors() {
  FeatureSet Set;
  Set.set("floats", std::vector<float>());
  Set.set("no rows", TensorRef<double>({}, {0, 3}));
  Set.set("no columns", TensorRef<std::int64_t>({}, {2, 0}));
  Set.set("bools", std::vector<bool>());
  Set.set("string", "");
  Set.set("strings", std::vector<std::string>());
  Set.set("one empty string", std::vector<std::string>{""});
  return Set;
}

FeatureSet text() {
  FeatureSet Set;
  Set.set("ascii", "int main() { return \"\\n\"[0]; }\n");
  Set.set("unicode", "naïve 日本語 🌉");
  Set.set("controls", std::string_view("\0\x01\b\t\n\f\r\x1f\x7f", 9));
  Set.set("names", std::vector<std::string>{"", "λ", "\"quoted\"", "NaN"});
  Set.set("a \"name\"\n with λ", std::int64_t(1));
  return Set;
}

FeatureSet extremes() {
  FeatureSet Set;
  Set.set("int64", std::vector<std::int64_t>{Limits<std::int64_t>::min(),
                                             Limits<std::int64_t>::max()});
  Set.set("uint64", Limits<std::uint64_t>::max());
  Set.set("int8", std::vector<std::int8_t>{-128, 127});
  Set.set("float", std::vector<float>{
                       Limits<float>::max(), Limits<float>::lowest(),
                       Limits<float>::min(), Limits<float>::denorm_min(), -0.0f,
                       16777216.0f, Limits<float>::infinity(),
                       -Limits<float>::infinity(), Limits<float>::quiet_NaN()});
  Set.set("double",
          std::vector<double>{
              Limits<double>::max(), Limits<double>::lowest(),
              Limits<double>::min(), Limits<double>::denorm_min(), -0.0,
              0.1 + 0.2, Limits<double>::infinity(),
              -Limits<double>::infinity(), Limits<double>::quiet_NaN()});
  return Set;
}

FeatureSet reply() {
  FeatureSet Set;
  Set.set("out", true);
  return Set;
}

FeatureSet namedReply() {
  FeatureSet Set;
  Set.set("index", std::int64_t(3));
  Set.set("scores", std::vector<float>{0.25f, 0.5f, 0.125f, 1.0f});
  return Set;
}

FeatureSet failure() {
  FeatureSet Set;
  Set.set("_error", "ValueError: no feature \"callee\"");
  return Set;
}

FeatureSet deferral() {
  FeatureSet Set;
  Set.set("_deferred", "not seen in training");
  return Set;
}

FeatureSet training() {
  FeatureSet Set;
  Set.set("histogram", std::vector<float>{1, 0, 2});
  Set.set("_reward", -0.5);
  Set.set("_terminated", false);
  Set.set("_truncated", true);
  Set.set("_agent", "node 7");
  Set.set("_info", "{\"size\":1024}");
  return Set;
}

FeatureSet bareRequest() {
  FeatureSet Set;
  Set.set("size", std::int64_t(12));
  Set.set("embedding", std::vector<float>{1.5f, -2.25f});
  return Set;
}

FeatureSet bareRequestAsBitstream() {
  FeatureSet Set;
  Set.set("size", std::vector<std::int64_t>{12});
  Set.set("embedding", std::vector<float>{1.5f, -2.25f});
  return Set;
}

FeatureSet bareRequestAsJSON() {
  FeatureSet Set;
  Set.set("size", std::int64_t(12));
  Set.set("embedding", std::vector<double>{1.5, -2.25});
  return Set;
}

FeatureSet bareReply() {
  FeatureSet Set;
  Set.set("out", 1.5f);
  return Set;
}

struct Frame {
  enum class Sides { Ours, BareRequest, BareReply };

  const char *Name;
  FeatureSet (*Make)();
  Sides Between = Sides::Ours;
  /// The tensors that a reader gets, if they differ from the written tensors.
  FeatureSet (*AsBitstream)() = Make;
  FeatureSet (*AsJSON)() = Make;
};

const Frame Frames[] = {
    {"empty", empty},
    {"scalars", scalars},
    {"shapes", shapes},
    {"empty-tensors", emptyTensors},
    {"text", text},
    {"extremes", extremes},
    {"reply", reply},
    {"named-reply", namedReply},
    {"error", failure},
    {"deferred", deferral},
    {"training", training},
    {"bare-request", bareRequest, Frame::Sides::BareRequest,
     bareRequestAsBitstream, bareRequestAsJSON},
    {"bare-reply", bareReply, Frame::Sides::BareReply},
};

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::filesystem::path folder() { return MLBRIDGE_GOLDEN_DIR; }

std::string readFile(const std::filesystem::path &Path) {
  std::ifstream File(Path, std::ios::binary);
  EXPECT_TRUE(File) << Path;
  return {std::istreambuf_iterator<char>(File), {}};
}

void writeFile(const std::filesystem::path &Path, std::string_view Bytes) {
  std::ofstream File(Path, std::ios::binary);
  File << Bytes;
  EXPECT_TRUE(File.flush()) << Path;
}

/// The formats of the frames.
const char *const Formats[] = {
    "bitstream",
    "json",
#ifdef MLBRIDGE_WITH_PROTOBUF
    "protobuf",
#endif
};

/// A frame and its format.
using Parameters = std::tuple<Frame, const char *>;

/// Prints the frame's name, for GoogleTest's messages.
std::ostream &operator<<(std::ostream &Out, const Frame &F) {
  return Out << F.Name;
}

class GoldenFrames : public testing::TestWithParam<Parameters> {
protected:
  static const Frame &frame() { return std::get<0>(GetParam()); }
  static std::string_view format() { return std::get<1>(GetParam()); }
  static bool isBitstream() { return format() == "bitstream"; }
  static bool isJSON() { return format() == "json"; }

  static std::filesystem::path file() {
    return folder() / (frame().Name + std::string(isBitstream() ? ".bin"
                                                  : isJSON()    ? ".json"
                                                                : ".pb"));
  }

  /// Returns the message in the file. A .bin file begins with the message's
  /// length.
  static std::string message() {
    std::string Bytes = readFile(file());
    if (!isBitstream())
      return Bytes;
    std::uint64_t Length = 0;
    std::memcpy(&Length, Bytes.data(), std::min(sizeof(Length), Bytes.size()));
    EXPECT_EQ(Length + sizeof(Length), Bytes.size()) << file();
    return Bytes.substr(std::min(sizeof(Length), Bytes.size()));
  }

  /// Returns the SerDes for the side that writes the frame, or for the side
  /// that reads it.
  static std::unique_ptr<BaseSerDes> codec(bool Writes) {
    std::unique_ptr<BaseSerDes> Codec =
        std::move(*allFormats().create(format(), SerDes::Side::Model));
    if (frame().Between != Frame::Sides::Ours)
      Codec->setDialect(Writes == (frame().Between == Frame::Sides::BareReply)
                            ? BaseSerDes::Dialect::BareModel
                            : BaseSerDes::Dialect::BareCompiler);
    return Codec;
  }
};

TEST_P(GoldenFrames, AreWritten) {
  Expected<Message> Written =
      serialize(*codec(/*Writes=*/true), frame().Make().tensors());
  ASSERT_TRUE(Written) << Written.takeError().str();
  if (std::getenv("MLBRIDGE_UPDATE_GOLDEN")) {
    std::uint64_t Length = Written->text().size();
    std::string Bytes;
    if (isBitstream())
      Bytes.append(reinterpret_cast<const char *>(&Length), sizeof(Length));
    writeFile(file(), Bytes.append(Written->text()));
  }
  EXPECT_EQ(Written->text(), message());
}

TEST_P(GoldenFrames, AreRead) {
  std::unique_ptr<BaseSerDes> Codec = codec(/*Writes=*/false);
  Message M(message());
  FeatureSet Expected = isBitstream() ? frame().AsBitstream()
                        : isJSON()    ? frame().AsJSON()
                                      : frame().Make();
  MLBridge::Expected<Span<const TensorView>> Tensors =
      Codec->deserialize(M.bytes(), frame().Between == Frame::Sides::BareReply
                                        ? AdviceSpec::of<float>()
                                        : AdviceSpec::any());
  const TensorView *First = Expected.tensors().begin();
  if (Expected.find(ReplyNames::Error) || Expected.find(ReplyNames::Deferred)) {
    EXPECT_EQ(Tensors.code(), First->Name == ReplyNames::Error
                                  ? ErrorCode::Model
                                  : ErrorCode::Deferred);
    EXPECT_EQ(Tensors.message(), First->text());
    return;
  }
  ASSERT_TRUE(Tensors) << Tensors.takeError().str();
  EXPECT_EQ(difference(Expected.tensors(), *Tensors), "");
}

/// Returns every frame in every format. Frames of bare mode have no Protobuf
/// version, because bare mode does not support Protobuf.
std::vector<Parameters> allFrames() {
  std::vector<Parameters> All;
  for (const Frame &F : Frames)
    for (const char *Format : Formats)
      if (F.Between == Frame::Sides::Ours || Format != std::string("protobuf"))
        All.emplace_back(F, Format);
  return All;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFrames, testing::ValuesIn(allFrames()),
                         [](const testing::TestParamInfo<Parameters> &Info) {
                           std::string Name = std::get<0>(Info.param).Name;
                           std::ranges::replace(Name, '-', '_');
                           return Name + "_" + std::get<1>(Info.param);
                         });

TEST(GoldenFolder, HasNoOtherFrames) {
  std::set<std::string> Known;
  for (const Frame &F : Frames)
    Known.insert({F.Name + std::string(".bin"), F.Name + std::string(".json"),
                  F.Name + std::string(".pb")});
  for (const auto &Entry : std::filesystem::directory_iterator(folder())) {
    std::string Extension = Entry.path().extension();
    if (Extension != ".bin" && Extension != ".json" && Extension != ".pb")
      continue;
    EXPECT_TRUE(Known.count(Entry.path().filename())) << Entry.path();
  }
}

} // namespace
