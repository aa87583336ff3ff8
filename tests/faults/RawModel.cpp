//===- RawModel.cpp - A misbehaving model side ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RawModel.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;

[[noreturn]] static void die(const char *What) {
  std::perror(What);
  ::_exit(3);
}

void test::awaitReadable(int FD) {
  pollfd P{FD, POLLIN, 0};
  if (::poll(&P, 1, 60'000) <= 0)
    die("poll");
}

static std::string readBytes(int FD, std::size_t Count) {
  std::string Bytes(Count, '\0');
  for (std::size_t Got = 0; Got < Count;) {
    awaitReadable(FD);
    ssize_t Now = ::read(FD, Bytes.data() + Got, Count - Got);
    if (Now == 0)
      ::_exit(4);
    if (Now > 0)
      Got += static_cast<std::size_t>(Now);
    else if (errno != EAGAIN && errno != EINTR)
      die("read");
  }
  return Bytes;
}

static std::string readFrame(int FD) {
  std::uint64_t Size;
  std::memcpy(&Size, readBytes(FD, sizeof(Size)).data(), sizeof(Size));
  return readBytes(FD, Size);
}

static void writeBytes(int FD, std::string_view Bytes) {
  while (!Bytes.empty()) {
    ssize_t Written = ::write(FD, Bytes.data(), Bytes.size());
    if (Written > 0) {
      Bytes.remove_prefix(static_cast<std::size_t>(Written));
      continue;
    }
    if (errno != EAGAIN)
      die("write");
    pollfd P{FD, POLLOUT, 0};
    ::poll(&P, 1, 60'000);
  }
}

static std::string framed(std::string_view Message, std::uint64_t Announced) {
  std::string Frame(sizeof(Announced), '\0');
  std::memcpy(Frame.data(), &Announced, sizeof(Announced));
  return Frame.append(Message);
}

RawModel::RawModel(const std::string &Name, int Version)
    : Version(Version), Listener(must(UnixListener::listen(Name + ".sock"))) {}

void RawModel::awaitConnection() {
  awaitReadable(Listener.socket());
  Accepted = Listener.accept();
  if (!Accepted)
    die("accept");
}

Hello RawModel::awaitHello() {
  Packet P;
  awaitReadable(Accepted.get());
  if (must(receivePacket(Accepted.get(), P)) != PacketState::Arrived)
    ::_exit(4);
  return must(Hello::decode(P.Text));
}

void RawModel::sendTerms() {
  ToCompiler = must(posix::makeLargePipe());
  FromCompiler = must(posix::makeLargePipe());
  const int Theirs[2] = {ToCompiler.Read.get(), FromCompiler.Write.get()};
  Terms Agreed;
  Agreed.Version = Version;
  if (sendPacket(Accepted.get(), Agreed.encode(), Theirs))
    die("sendPacket");
  if (!KeepsCompilersEnds) {
    ToCompiler.Read.reset();
    FromCompiler.Write.reset();
  }
  Accepted.reset();
}

std::string RawModel::readRequest(std::size_t Bytes) {
  return readBytes(FromCompiler.Read.get(), Bytes);
}

std::string RawModel::readRequest() {
  const int From = FromCompiler.Read.get();
  if (isNumbered())
    std::memcpy(&Request, readBytes(From, sizeof(Request)).data(),
                sizeof(Request));
  return readFrame(From);
}

void RawModel::write(std::string_view Bytes) {
  writeBytes(ToCompiler.Write.get(), Bytes);
}

void RawModel::writeFrame(std::string_view Message,
                          std::optional<std::uint64_t> Announced) {
  writeFrameAs(Request, Message, Announced);
}

void RawModel::writeFrameAs(std::uint64_t Number, std::string_view Message,
                            std::optional<std::uint64_t> Announced) {
  std::string Frame;
  if (isNumbered())
    Frame.assign(reinterpret_cast<const char *>(&Number), sizeof(Number));
  write(Frame += framed(Message, Announced.value_or(Message.size())));
}

std::string RawModel::acceptAndReadRequest() {
  awaitConnection();
  awaitHello();
  sendTerms();
  return readRequest();
}

bool RawModel::hasReader() const {
  pollfd P{ToCompiler.Write.get(), 0, 0};
  return ::poll(&P, 1, 0) == 0;
}

void RawBareModel::makeFifos(const std::string &Name) {
  if (::mkfifo((Name + ".in").c_str(), 0600) != 0 ||
      ::mkfifo((Name + ".out").c_str(), 0600) != 0)
    die("mkfifo");
}

RawBareModel::RawBareModel(const std::string &Name)
    : In(::open((Name + ".in").c_str(), O_WRONLY | O_CLOEXEC)),
      Out(::open((Name + ".out").c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!In || !Out)
    die("open");
}

std::string RawBareModel::readRequest() { return readFrame(Out.get()); }

void RawBareModel::writeFrame(std::string_view Message) {
  writeBytes(In.get(), framed(Message, Message.size()));
}
