//===- RegularFileTest.cpp - Opening and reading regular files ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/RegularFile.h"
#include "support/EchoModel.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace MLBridge;

namespace {
class RegularFileTest : public testing::Test {
protected:
  std::string path(const char *Name) const { return Directory.path(Name); }
  static std::string failure(const std::string &Path, int Flags = O_RDONLY,
                             AlsoAllowed Also = AlsoAllowed::Nothing) {
    return openRegularFile(Path, "x", Flags, Also).takeError().str();
  }

  test::TemporaryDirectory Directory;
};
} // namespace

TEST_F(RegularFileTest, ReadsAllOfAFile) {
  for (std::size_t Size : {0U, 1U, 65'535U, 65'536U, 200'000U}) {
    const std::string Text(Size, 'a');
    std::ofstream(path("file")) << Text;
    Expected<std::string> Read = readRegularFile(path("file"), "x", 200'000);
    ASSERT_TRUE(Read) << Read.message();
    EXPECT_EQ(*Read, Text);
  }
  EXPECT_EQ(readRegularFile(path("file"), "x", 199'999).takeError().str(),
            "Malformed: x: expected at most 199999 bytes, found more");
  // The kernel reports the size 0 for this file.
  Expected<std::string> Status =
      readRegularFile("/proc/self/status", "x", 100'000);
  ASSERT_TRUE(Status) << Status.message();
  EXPECT_NE(Status->find("\nPid:"), std::string::npos);
}

TEST_F(RegularFileTest, OpensNothingElseAndNeverBlocks) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  posix::UniqueFD Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un Address = {};
  Address.sun_family = AF_UNIX;
  path("socket").copy(Address.sun_path, sizeof(Address.sun_path) - 1);
  ASSERT_EQ(::bind(Socket.get(), reinterpret_cast<sockaddr *>(&Address),
                   sizeof(Address)),
            0);
  const std::string Expected =
      "InvalidArgument: x: expected a regular file, found ";
  for (int Flags : {O_RDONLY, O_WRONLY}) {
    EXPECT_EQ(failure(path("fifo"), Flags), Expected + "a FIFO");
    EXPECT_EQ(failure(path("socket"), Flags), Expected + "a socket");
    EXPECT_EQ(failure(Directory.path(), Flags), Expected + "a folder");
    EXPECT_EQ(failure("/dev/zero", Flags), Expected + "a device");
  }
  EXPECT_EQ(failure(path("fifo"), O_WRONLY, AlsoAllowed::CharacterDevice),
            Expected + "a FIFO");
  EXPECT_EQ(failure("/dev/null", O_WRONLY, AlsoAllowed::CharacterDevice),
            "Success");
}

TEST_F(RegularFileTest, ReportsTheSystemsErrors) {
  EXPECT_EQ(failure(path("none")), "System: x: No such file or directory");
  EXPECT_EQ(failure(path(std::string(300, 'a').c_str())),
            "System: x: File name too long");
  EXPECT_EQ(failure(path("new"), O_WRONLY | O_CREAT), "Success");
  EXPECT_EQ(failure(path("new")), "Success");
}
