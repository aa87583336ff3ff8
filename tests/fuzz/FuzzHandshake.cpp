//===- FuzzHandshake.cpp - Any packets as a handshake ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends packets with any bytes and up to seven descriptors through a socket,
/// and reads each packet as a hello and as terms. The receiver may have no room
/// for that many descriptors. A packet must arrive whole or be refused, and no
/// descriptor may stay open. If a packet can be read, it must survive a round
/// trip.
///
/// The bytes FF FE separate packets. The first byte of each packet gives its
/// Flags.
///
//===----------------------------------------------------------------------===//

#include "Transport/Handshake.h"

#include "Fuzz.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::fuzz;
using posix::UniqueFD;

namespace {

constexpr std::size_t LongestPacket = 4096;
constexpr std::size_t MostDescriptors = 4;

/// The meaning of a packet's first byte.
struct Flags {
  std::size_t NumDescriptors;
  /// The length to which the text is padded with spaces, or 0 for no padding.
  std::size_t PaddedTo;
  /// The number of descriptors for which the receiver has room.
  std::size_t Room;

  explicit Flags(unsigned char Byte)
      : NumDescriptors(Byte & 7), PaddedTo(Lengths[Byte >> 3 & 3]),
        Room(Rooms[Byte >> 5 & 3]) {}

  static constexpr std::size_t Lengths[] = {0, LongestPacket, LongestPacket + 1,
                                            2 * LongestPacket};
  static constexpr std::size_t Rooms[] = {8, 0, 1, 5};
};

/// The two ends of a connection, and the file whose descriptor is sent. All
/// inputs share them.
struct Connection {
  UniqueFD Peer, Ours;
  UniqueFD Attached;

  Connection() : Attached(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    int Ends[2];
    require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Ends) == 0,
            "socketpair succeeds", std::strerror(errno));
    Peer = UniqueFD(Ends[0]);
    Ours = UniqueFD(Ends[1]);
  }
};

/// Returns the lowest free descriptor. Its number grows if another descriptor
/// stays open.
UniqueFD lowestFree() {
  UniqueFD Next(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  require(bool(Next), "a descriptor is free");
  return Next;
}

/// While an object exists, the process can open only \p Count more descriptors.
class RoomFor {
public:
  explicit RoomFor(std::size_t Count) {
    require(::getrlimit(RLIMIT_NOFILE, &Before) == 0, "getrlimit succeeds");
    if (Count >= Enough)
      return;
    // The free descriptors need not be consecutive.
    UniqueFD Free[Enough];
    for (std::size_t I = 0; I <= Count; ++I)
      Free[I] = lowestFree();
    rlimit Limit = Before;
    Limit.rlim_cur = static_cast<rlim_t>(Free[Count].get());
    require(::setrlimit(RLIMIT_NOFILE, &Limit) == 0, "setrlimit succeeds");
  }
  ~RoomFor() { ::setrlimit(RLIMIT_NOFILE, &Before); }

  static constexpr std::size_t Enough = 8;

private:
  rlimit Before{};
};

} // namespace

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

static bool isSameFile(int A, int B) {
  struct stat OfA{}, OfB{};
  return ::fstat(A, &OfA) == 0 && ::fstat(B, &OfB) == 0 &&
         OfA.st_dev == OfB.st_dev && OfA.st_ino == OfB.st_ino;
}

/// Sends a packet, like a peer that ignores all limits.
static void send(int Socket, const std::string &Text, int Descriptor,
                 std::size_t Count) {
  iovec Vector{const_cast<char *>(Text.data()), Text.size()};
  alignas(cmsghdr) char Control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  if (Count != 0) {
    Message.msg_control = Control;
    Message.msg_controllen = CMSG_SPACE(Count * sizeof(int));
    cmsghdr *Header = CMSG_FIRSTHDR(&Message);
    Header->cmsg_level = SOL_SOCKET;
    Header->cmsg_type = SCM_RIGHTS;
    Header->cmsg_len = CMSG_LEN(Count * sizeof(int));
    for (std::size_t I = 0; I < Count; ++I)
      std::memcpy(CMSG_DATA(Header) + I * sizeof(int), &Descriptor,
                  sizeof(int));
  }
  require(::sendmsg(Socket, &Message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
              static_cast<ssize_t>(Text.size()),
          "sendmsg succeeds", std::strerror(errno));
}

/// Sends a packet and requires that it arrives unchanged or is refused. Returns
/// true if it arrived.
static bool pass(const Connection &Through, const std::string &Text, Flags Way,
                 Packet &Into) {
  const int Attached = Through.Attached.get();
  send(Through.Peer.get(), Text, Attached, Way.NumDescriptors);
  // The last packet's descriptors count against the limit, so close them first.
  Into.Descriptors.clear();
  Expected<PacketState> State = [&] {
    RoomFor Descriptors(Way.Room);
    return receivePacket(Through.Ours.get(), Into);
  }();
  const std::size_t Received = Into.Descriptors.size();
  require(Received == std::min({Way.NumDescriptors, Way.Room, MostDescriptors}),
          "all descriptors that fit arrive");
  for (const UniqueFD &FD : Into.Descriptors) {
    require(isSameFile(FD.get(), Attached), "descriptors are the peer's");
    require(::fcntl(FD.get(), F_GETFD) & FD_CLOEXEC,
            "descriptors are close-on-exec");
  }
  if (Text.empty()) {
    require(State && *State == PacketState::Ended,
            "an empty packet is the end");
    return false;
  }
  const bool IsTooMuch =
      Text.size() > LongestPacket ||
      (Way.NumDescriptors > MostDescriptors && Received == MostDescriptors);
  if (IsTooMuch) {
    require(State.code() == ErrorCode::Malformed,
            "packets beyond the limits are refused", State.message());
    return false;
  }
  require(State && *State == PacketState::Arrived, "a packet arrives",
          State.message());
  require(Into.Text == Text, "a packet stays as it was");
  require(Into.HasLostDescriptors == (Received < Way.NumDescriptors),
          "lost descriptors are reported");
  return true;
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

static void requireEqual(const Hello &A, const Hello &B, const char *Property) {
  require(A.Oldest == B.Oldest && A.Newest == B.Newest, Property);
  require(A.Transport == B.Transport, Property, B.Transport);
  require(A.SerDes == B.SerDes, Property, B.SerDes);
  require(A.AdviceType == B.AdviceType, Property, B.AdviceType);
}

static void requireEqual(const Terms &A, const Terms &B, const char *Property) {
  require(A.Version == B.Version, Property);
  require(A.Refusal == B.Refusal, Property, B.Refusal);
}

/// Returns the message with the texts that an encoder would write.
static Hello asWritten(Hello H) {
  for (std::string *Text : {&H.Transport, &H.SerDes, &H.AdviceType})
    std::ranges::replace_if(
        *Text, [](unsigned char C) { return C < 0x20; }, ' ');
  return H;
}
static Terms asWritten(Terms T) {
  T.Refusal = printable(T.Refusal, 2000);
  return T;
}

static void requireVersion(const Hello &H) {
  require(H.Oldest >= 0 && H.Oldest <= H.Newest, "versions are a range");
  const int First = std::max(H.Oldest, ProtocolVersions::First);
  const int Last = std::min(H.Newest, ProtocolVersions::Newest);
  Expected<int> Chosen = H.chooseVersion();
  require(bool(Chosen) == (First <= Last), "a common version is chosen");
  if (Chosen)
    require(*Chosen == Last, "the newest common version is chosen");
  else
    require(Chosen.code() == ErrorCode::Unsupported,
            "other versions are unsupported");
}
static void requireVersion(const Terms &T) {
  require(T.encode().size() <= LongestPacket, "terms fit into a packet");
}

/// Returns \p Text, with \p Field inserted before its fields.
static std::string with(std::string Field, std::string_view Text) {
  const std::size_t Start = Text.find('{') + 1;
  return std::string(Text.substr(0, Start)) + Field +
         std::string(Text.substr(Start));
}

/// Reads \p Text as a message of the type \p Kind.
template <typename Kind> static void testMessage(std::string_view Text) {
  Expected<Kind> Read = Kind::decode(Text);
  if (!Read) {
    require(Read.code() == ErrorCode::Malformed, "errors are Malformed",
            Read.message());
    require(!Read.message().empty() && Read.message().size() < 400,
            "errors have a short message", Read.message());
    return;
  }
  requireVersion(*Read);
  Expected<Kind> Again = Kind::decode(Read->encode());
  require(bool(Again), "what was written can be read", Again.message());
  requireEqual(asWritten(*Read), *Again, "a round trip changes nothing");
  require(Again->encode() == Read->encode(),
          "the same message gives the same bytes");

  if (Text.find("unknown") == Text.npos) {
    Expected<Kind> More = Kind::decode(with("\"unknown\":[{}],", Text));
    require(bool(More), "unknown fields are ignored", More.message());
    requireEqual(*Read, *More, "unknown fields are ignored");
  }
  require(Kind::decode(with("\"mlbridge\":1,", Text)).code() ==
              ErrorCode::Malformed,
          "duplicate fields are refused");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  static const Connection Through;
  const int Before = lowestFree().get();
  {
    Packet Into;
    for (const Message &M :
         split({reinterpret_cast<const char *>(Data), Size})) {
      if (M.text().empty())
        continue;
      Flags Way(static_cast<unsigned char>(M.text().front()));
      std::string Text(M.text().substr(1));
      if (Text.size() < Way.PaddedTo)
        Text.resize(Way.PaddedTo, ' ');
      if (!pass(Through, Text, Way, Into))
        continue;
      testMessage<Hello>(Into.Text);
      testMessage<Terms>(Into.Text);
    }
  }
  require(lowestFree().get() == Before, "no descriptor stays open");
  return 0;
}
