//===- SharedRegionTest.cpp - The layout of a region ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares one direction of a session in shared memory with the bytes in
/// tests/golden: the message of scalars.bin as request 7.
///
//===----------------------------------------------------------------------===//

#include "Transport/SharedRegion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace MLBridge;

namespace {

constexpr std::size_t HeaderSize = 192;
constexpr std::size_t FrameStart = HeaderSize + 8;
constexpr std::size_t Capacity = 4096;
constexpr std::uint32_t Sequence = 7;
/// The offset of the number of the writer's core, which is 0 in the
/// golden file.
constexpr std::size_t CoreOffset = 68;

std::string read(const char *Name) {
  std::ifstream File(std::filesystem::path(MLBRIDGE_GOLDEN_DIR) / Name,
                     std::ios::binary);
  EXPECT_TRUE(File) << Name;
  return {std::istreambuf_iterator<char>(File), {}};
}

/// The message that is written and read.
std::string message() { return read("scalars.bin").substr(8); }

std::string contents(int Descriptor, std::size_t Size) {
  std::string Bytes(Size, '\0');
  EXPECT_EQ(::pread(Descriptor, Bytes.data(), Size, 0), ssize_t(Size));
  return Bytes;
}

TEST(SharedRegionBytes, AreWritten) {
  Expected<SharedRegion> Region = SharedRegion::create(Capacity);
  ASSERT_TRUE(Region) << Region.takeError().str();
  const std::string Message = message();
  std::memcpy(Region->message(), Message.data(), Message.size());
  EXPECT_FALSE(Region->post(Message.size(), Sequence)) << "no reader sleeps";

  std::string Bytes =
      contents(Region->descriptor(), FrameStart + Message.size());
  std::uint32_t Core = 0;
  std::memcpy(&Core, &Bytes[CoreOffset], sizeof(Core));
  EXPECT_LT(Core, std::uint32_t(::sysconf(_SC_NPROCESSORS_CONF)));
  std::fill_n(&Bytes[CoreOffset], sizeof(Core), '\0');
  if (std::getenv("MLBRIDGE_UPDATE_GOLDEN"))
    std::ofstream(std::filesystem::path(MLBRIDGE_GOLDEN_DIR) /
                      "shared-memory.shm",
                  std::ios::binary)
        << Bytes;
  EXPECT_EQ(Bytes, read("shared-memory.shm"));
}

TEST(SharedRegionBytes, AreRead) {
  const std::string Golden = read("shared-memory.shm");
  posix::UniqueFD Memory(::memfd_create("golden", MFD_ALLOW_SEALING));
  constexpr std::size_t Size = 8192;
  ASSERT_EQ(::ftruncate(Memory.get(), Size), 0);
  ASSERT_EQ(::pwrite(Memory.get(), Golden.data(), Golden.size(), 0),
            ssize_t(Golden.size()));
  ASSERT_EQ(::fcntl(Memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  Expected<SharedRegion> Region =
      SharedRegion::open(std::move(Memory), "the golden file");
  ASSERT_TRUE(Region) << Region.takeError().str();
  EXPECT_EQ(Region->capacity(), Capacity);
  EXPECT_EQ(Region->sequence(), Sequence);
  EXPECT_EQ(std::string_view(reinterpret_cast<char *>(Region->message()),
                             Region->length()),
            message());
}

} // namespace
