//===- PipeFramesTest.cpp - Frames with numbers ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares the frames of a pipe, with and without request numbers, with the
/// bytes in tests/golden. The message of scalars.bin is used as request 3 and
/// as the reply to it.
///
//===----------------------------------------------------------------------===//

#include "Transport/PipeChannel.h"
#include "Transport/PipeClient.h"

#include "support/Child.h"
#include "support/Sanitizers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace MLBridge;
using namespace std::chrono_literals;

namespace {

std::filesystem::path pathOf(const char *Name) {
  return std::filesystem::path(MLBRIDGE_GOLDEN_DIR) / Name;
}

std::string readGolden(const char *Name) {
  std::ifstream File(pathOf(Name), std::ios::binary);
  EXPECT_TRUE(File) << Name;
  return {std::istreambuf_iterator<char>(File), {}};
}

std::string_view textOf(Span<const std::byte> Bytes) {
  return {reinterpret_cast<const char *>(Bytes.data()), Bytes.size()};
}

/// One end of a session and the raw pipe ends opposite it. The end is the
/// compiler's (PipeClient) or the model's (PipeChannel).
template <typename End> class Frames : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    Expected<posix::Pipe> In = posix::makePipe(), Out = posix::makePipe();
    ASSERT_TRUE(In && Out);
    Channel.emplace(PipeEnds{std::move(In->Read), std::move(Out->Write),
                             posix::UniqueFD(), isNumbered()},
                    "the peer", /*MaxMessage=*/1 << 20);
    ToChannel = std::move(In->Write);
    FromChannel = std::move(Out->Read);
  }

  static bool isNumbered() { return GetParam(); }
  static const char *golden() {
    return isNumbered() ? "numbered.pipe" : "scalars.bin";
  }
  static std::string message() { return readGolden("scalars.bin").substr(8); }

  std::string sent() {
    std::string Bytes(4096, '\0');
    const ssize_t Size = ::read(FromChannel.get(), Bytes.data(), Bytes.size());
    Bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(Size, 0)));
    return Bytes;
  }
  void arrive(std::string_view Bytes) {
    ASSERT_EQ(::write(ToChannel.get(), Bytes.data(), Bytes.size()),
              ssize_t(Bytes.size()));
  }

  std::optional<End> Channel;
  posix::UniqueFD ToChannel, FromChannel;
};

using ClientFrames = Frames<PipeClient>;
using ServerFrames = Frames<PipeChannel>;

TEST_P(ClientFrames, AreWrittenFromTheRegionAndFromPieces) {
  const std::string Message = message();
  for (int Request = 1; Request <= 3; ++Request) {
    Expected<Span<std::byte>> Region = Channel->acquire(Message.size());
    ASSERT_TRUE(Region) << Region.message();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Region->data()) % 64, 8u);
    std::memcpy(Region->data(), Message.data(), Message.size());
    ASSERT_FALSE(Channel->sendRegion(Message.size(), Deadline::in(1s)));
    const std::string Bytes = sent();
    if (Request < 3)
      continue;
    if (isNumbered() && std::getenv("MLBRIDGE_UPDATE_GOLDEN"))
      std::ofstream(pathOf(golden()), std::ios::binary) << Bytes;
    EXPECT_EQ(Bytes, readGolden(golden()));
  }
  const auto *Start = reinterpret_cast<const std::byte *>(Message.data());
  const Span<const std::byte> Pieces[] = {
      {Start, 5}, {Start + 5, 0}, {Start + 5, Message.size() - 5}};
  ASSERT_FALSE(Channel->sendPieces(Pieces, Deadline::in(1s)));
  std::string Fourth = readGolden(golden());
  if (isNumbered())
    Fourth[0] = 4;
  EXPECT_EQ(sent(), Fourth);
}

TEST_P(ClientFrames, AreReadInOneAndInParts) {
  const std::string Frame = readGolden(golden());
  std::byte Nothing{};
  for (std::size_t Part : {Frame.size(), std::size_t(1), std::size_t(7)}) {
    Channel.reset();
    SetUp();
    for (int Request = 1; Request <= 3; ++Request) {
      const Span<const std::byte> Piece(&Nothing, 1);
      ASSERT_FALSE(Channel->sendPieces({&Piece, 1}, Deadline::in(1s)));
    }
    for (std::size_t At = 0; At < Frame.size(); At += Part) {
      EXPECT_EQ(Channel->receive(Deadline::in(0s)).code(), ErrorCode::Timeout);
      arrive(std::string_view(Frame).substr(At, Part));
    }
    Expected<Span<const std::byte>> Reply = Channel->receive(Deadline::in(1s));
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(textOf(*Reply), message());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Reply->data()) % 64, 8u);
  }
}

TEST_P(ServerFrames, RepeatTheRequestsNumber) {
  arrive(readGolden(golden()));
  Expected<ServerChannel::Progress> P = Channel->advance();
  ASSERT_TRUE(P) << P.message();
  ASSERT_EQ(*P, ServerChannel::Progress::Complete);
  EXPECT_EQ(textOf(Channel->message()), message());
  const Span<const std::byte> Whole = Channel->message();
  ASSERT_FALSE(Channel->send({&Whole, 1}, 1s));
  EXPECT_EQ(sent(), readGolden(golden()));
}

/// If the channel sent more after a partial frame, the reader would take the
/// new bytes for the rest of that frame.
TEST_P(ServerFrames, ThatArePartiallySentAreNoticed) {
  const std::vector<std::byte> Long(std::size_t(64) << 20);
  const Span<const std::byte> Piece(Long);
  EXPECT_EQ(Channel->send({&Piece, 1}, 1s).code(), ErrorCode::InvalidArgument);
  EXPECT_FALSE(Channel->isInsideReply()) << "nothing was sent";
  EXPECT_EQ(sent(), "");
#if MLBRIDGE_UNDER_ASAN || MLBRIDGE_UNDER_TSAN
  GTEST_SKIP() << "sanitizers need more address space than any limit";
#endif
  // Use another process, because this process could not raise the lowered limit
  // again.
  test::Child Poor([&] {
    PipeEnds Ends;
    Expected<posix::Pipe> Out = posix::makePipe(), In = posix::makePipe();
    Ends.Read = std::move(In->Read);
    Ends.Write = std::move(Out->Write);
    Ends.IsNumbered = isNumbered();
    PipeChannel Large(std::move(Ends), "the peer", /*MaxMessage=*/1 << 30);
    std::size_t Pages = 0;
    std::ifstream("/proc/self/statm") >> Pages;
    const rlim_t Most =
        Pages * std::size_t(::sysconf(_SC_PAGESIZE)) + (16U << 20);
    const rlimit Limit{Most, Most};
    if (::setrlimit(RLIMIT_AS, &Limit) != 0)
      return 1;
    if (Large.send({&Piece, 1}, 1s).code() != ErrorCode::System)
      return 2;
    return Large.isInsideReply() ? 0 : 3;
  });
  EXPECT_EQ(Poor.wait(), 0);
}

static std::string nameOf(const testing::TestParamInfo<bool> &Info) {
  return Info.param ? "Numbered" : "Plain";
}
INSTANTIATE_TEST_SUITE_P(All, ClientFrames, testing::Bool(), nameOf);
INSTANTIATE_TEST_SUITE_P(All, ServerFrames, testing::Bool(), nameOf);

} // namespace
