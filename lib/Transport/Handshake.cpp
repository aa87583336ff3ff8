//===- Handshake.cpp - How two sides begin a session ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/Handshake.h"

#include "Support/PrintableText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>

using namespace MLBridge;
using posix::UniqueFD;

static constexpr std::size_t MaxPacket = 4096;
/// The maximal length of the text of a refusal, in bytes. The whole packet must
/// not exceed MaxPacket bytes.
static constexpr std::size_t MaxRefusal = 2000;
static constexpr std::size_t MaxDescriptors = 4;

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

static std::string jsonString(std::string_view Text) {
  std::string Out = "\"";
  for (char C : Text) {
    if (C == '"' || C == '\\')
      Out += '\\';
    // Replace control characters by spaces. No hello or refusal needs them.
    Out += static_cast<unsigned char>(C) < 0x20 ? ' ' : C;
  }
  return Out + '"';
}

std::string MLBridge::versionRefusal(int Ours, std::string_view Theirs) {
  return "this model speaks version " + std::to_string(Ours) +
         " of the protocol, the compiler version " +
         printable(Theirs, /*MaxBytes=*/20) +
         "; use the same release of ML-Compiler-Bridge on both sides";
}

Expected<int> Hello::chooseVersion() const {
  if (Oldest > ProtocolVersions::Newest || Newest < ProtocolVersions::First)
    return Error(
        ErrorCode::Unsupported,
        versionRefusal(ProtocolVersions::Newest, std::to_string(Oldest)));
  return std::min(Newest, ProtocolVersions::Newest);
}

std::string Hello::encode() const {
  return "{\"mlbridge\":" + std::to_string(Oldest) +
         ",\"newest\":" + std::to_string(Newest) +
         ",\"transport\":" + jsonString(Transport) +
         ",\"serdes\":" + jsonString(SerDes) +
         ",\"advice\":" + jsonString(AdviceType) + "}";
}

std::string Terms::encode() const {
  std::string Out = "{\"mlbridge\":" + std::to_string(Version);
  if (!Refusal.empty())
    Out += ",\"refused\":" + jsonString(printable(Refusal, MaxRefusal));
  return Out + "}";
}

/// Passes each field of a flat JSON object to \p Field, which returns false for
/// a value of the wrong type. Returns an error if the packet has no field
/// "mlbridge".
template <typename FieldFn>
static Error parsePacket(std::string_view Text, FieldFn Field) {
  simdjson::dom::parser Parser;
  simdjson::dom::object Object;
  if (Parser.parse(Text.data(), Text.size()).get(Object) != simdjson::SUCCESS)
    return Error(ErrorCode::Malformed,
                 "the peer at the socket does not speak this protocol: "
                 "expected a JSON object, found \"" +
                     printable(Text, /*MaxBytes=*/80) + "\"");
  auto Wrong = [](std::string_view Key, std::string_view How) {
    return Error(ErrorCode::Malformed,
                 "the field \"" + printable(Key, /*MaxBytes=*/80) +
                     "\" of a handshake packet " + std::string(How));
  };
  std::vector<std::string_view> Seen;
  for (auto [Key, Value] : Object) {
    if (std::ranges::find(Seen, Key) != Seen.end())
      return Wrong(Key, "appears twice");
    Seen.push_back(Key);
    if (!Field(Key, Value))
      return Wrong(Key, "has a wrong type or value");
  }
  if (std::ranges::find(Seen, "mlbridge") == Seen.end())
    return Error(ErrorCode::Malformed,
                 "the peer at the socket did not say its protocol version");
  return Error::success();
}

static bool readString(simdjson::dom::element Value, std::string &Into) {
  std::string_view Text;
  if (Value.get(Text) != simdjson::SUCCESS)
    return false;
  Into = Text;
  return true;
}

static bool readVersion(simdjson::dom::element Value, int &Into) {
  std::int64_t Version;
  if (Value.get(Version) != simdjson::SUCCESS || Version < 0 ||
      Version > 1'000'000)
    return false;
  Into = static_cast<int>(Version);
  return true;
}

Expected<Hello> Hello::decode(std::string_view Packet) {
  Hello H;
  H.Newest = 0;
  Error E = parsePacket(Packet, [&](std::string_view Key, auto Value) {
    if (Key == "mlbridge")
      return readVersion(Value, H.Oldest);
    if (Key == "newest")
      return readVersion(Value, H.Newest);
    if (Key == "transport")
      return readString(Value, H.Transport);
    if (Key == "serdes")
      return readString(Value, H.SerDes);
    return Key != "advice" || readString(Value, H.AdviceType);
  });
  if (E)
    return E;
  // A compiler that supports only one version omits "newest". In this case, its
  // newest version is its oldest version.
  H.Newest = std::max(H.Oldest, H.Newest);
  return H;
}

Expected<Terms> Terms::decode(std::string_view Packet) {
  Terms T;
  Error E = parsePacket(Packet, [&](std::string_view Key, auto Value) {
    if (Key == "mlbridge")
      return readVersion(Value, T.Version);
    return Key != "refused" || readString(Value, T.Refusal);
  });
  if (E)
    return E;
  return T;
}

Error MLBridge::sendPacket(int Socket, std::string_view Text,
                           Span<const int> Descriptors) {
  iovec Vector{const_cast<char *>(Text.data()), Text.size()};
  alignas(cmsghdr) char Control[CMSG_SPACE(MaxDescriptors * sizeof(int))] = {};
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  if (!Descriptors.empty()) {
    std::size_t Bytes = Descriptors.size() * sizeof(int);
    Message.msg_control = Control;
    Message.msg_controllen = CMSG_SPACE(Bytes);
    cmsghdr *Header = CMSG_FIRSTHDR(&Message);
    Header->cmsg_level = SOL_SOCKET;
    Header->cmsg_type = SCM_RIGHTS;
    Header->cmsg_len = CMSG_LEN(Bytes);
    std::memcpy(CMSG_DATA(Header), Descriptors.data(), Bytes);
  }
  ssize_t Sent;
  do
    Sent = ::sendmsg(Socket, &Message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (Sent < 0 && errno == EINTR);
  if (Sent < 0)
    return Error::fromErrno(errno, "cannot send a handshake packet");
  return Error::success();
}

Expected<PacketState> MLBridge::receivePacket(int Socket, Packet &Into) {
  char Text[MaxPacket];
  iovec Vector{Text, sizeof(Text)};
  alignas(cmsghdr) char Control[CMSG_SPACE(MaxDescriptors * sizeof(int))];
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  Message.msg_control = Control;
  Message.msg_controllen = sizeof(Control);
  // Allocate before the kernel creates the descriptors. If the allocation
  // failed afterwards, the descriptors would stay open.
  Into.Descriptors.clear();
  Into.Descriptors.reserve(MaxDescriptors);
  Into.HasLostDescriptors = false;
  ssize_t Got;
  do
    Got = ::recvmsg(Socket, &Message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (Got < 0 && errno == EINTR);
  if (Got < 0) {
    if (errno == EAGAIN)
      return PacketState::None;
    if (errno == ECONNRESET)
      return PacketState::Ended;
    return Error::fromErrno(errno, "cannot receive a handshake packet");
  }
  // Own the descriptors before any statement that can fail, so that they are
  // always closed.
  for (cmsghdr *Header = CMSG_FIRSTHDR(&Message); Header;
       Header = CMSG_NXTHDR(&Message, Header)) {
    if (Header->cmsg_level != SOL_SOCKET || Header->cmsg_type != SCM_RIGHTS)
      continue;
    std::size_t Count = (Header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t I = 0; I < Count; ++I) {
      int FD;
      std::memcpy(&FD, CMSG_DATA(Header) + I * sizeof(int), sizeof(int));
      Into.Descriptors.emplace_back(FD);
    }
  }
  if (Got == 0)
    return PacketState::Ended;
  if (Message.msg_flags & MSG_TRUNC)
    return Error(
        ErrorCode::Malformed,
        "the peer at the socket sent a handshake packet of more than " +
            std::to_string(MaxPacket) + " bytes");
  // The kernel sets MSG_CTRUNC in two cases. If the peer sent too many
  // descriptors, the list is now full. Otherwise, this process could not open
  // all descriptors.
  const bool HasLost = (Message.msg_flags & MSG_CTRUNC) != 0;
  if (HasLost && Into.Descriptors.size() == MaxDescriptors)
    return Error(ErrorCode::Malformed,
                 "the peer at the socket sent a handshake packet with more "
                 "than " +
                     std::to_string(MaxDescriptors) + " descriptors");
  Into.HasLostDescriptors = HasLost;
  Into.Text.assign(Text, static_cast<std::size_t>(Got));
  return PacketState::Arrived;
}

//===----------------------------------------------------------------------===//
// The compiler's side
//===----------------------------------------------------------------------===//

/// Waits for the reply to the hello. Returns nullopt if the server closes the
/// connection.
static Expected<std::optional<Packet>>
awaitReply(int Socket, const std::string &Peer, Deadline Until) {
  std::optional<Packet> Reply(std::in_place);
  for (;;) {
    pollfd FD{Socket, POLLIN, 0};
    (void)::poll(&FD, 1, Until.pollTimeout());
    Expected<PacketState> State = receivePacket(Socket, *Reply);
    if (!State)
      return Error(State.code(), Peer + ": " + std::string(State.message()));
    if (*State == PacketState::Ended)
      return std::optional<Packet>();
    if (*State == PacketState::Arrived)
      return Reply;
    if (Until.expired())
      return Error(ErrorCode::Timeout,
                   Peer + " accepted the connection, but did not answer the "
                          "handshake before the deadline: is the model side "
                          "stopped or busy?");
  }
}

/// Checks that this process can use \p Theirs, the terms in the packet \p
/// Reply.
static Error checkTerms(const Terms &Theirs, const Packet &Reply,
                        const std::string &Peer, const SessionKind &Kind) {
  if (!Theirs.Refusal.empty())
    return {ErrorCode::Unsupported,
            Peer + " refused this session: " + printable(Theirs.Refusal, 1000)};
  if (Theirs.Version < Kind.OldestVersion ||
      Theirs.Version > ProtocolVersions::Newest)
    return {ErrorCode::Unsupported,
            Peer + " chose version " + std::to_string(Theirs.Version) +
                " of the protocol; expected " +
                (Kind.OldestVersion == ProtocolVersions::Newest
                     ? std::string()
                     : std::to_string(Kind.OldestVersion) + " to ") +
                std::to_string(ProtocolVersions::Newest)};
  if (Reply.HasLostDescriptors)
    return {ErrorCode::System,
            "this process cannot open the descriptors of a session with " +
                Peer + ": too many open files (ulimit -n)"};
  if (Reply.Descriptors.size() != Kind.NumDescriptors)
    return {ErrorCode::Malformed, Peer + " sent " +
                                      std::to_string(Reply.Descriptors.size()) +
                                      " descriptors for a session; expected " +
                                      std::to_string(Kind.NumDescriptors)};
  return Error::success();
}

Expected<std::optional<HandshakeResult>>
MLBridge::tryHandshake(const std::string &Name, const std::string &Peer,
                       const SessionKind &Kind, const SessionRequest &Request,
                       Deadline Until) {
  Expected<UniqueFD> Socket = tryConnect(Name + ".sock");
  if (!Socket)
    return Socket.takeError();
  if (!*Socket)
    return std::optional<HandshakeResult>();
  if (!posix::isTrustedPeer(Socket->get()))
    return Error(ErrorCode::System,
                 "another user listens at " + printable(Name) +
                     ".sock and is not trusted; choose another name");
  Hello Ours;
  Ours.Oldest = Kind.OldestVersion;
  Ours.Transport = Kind.Transport;
  Ours.SerDes = Request.SerDes;
  Ours.AdviceType = Request.AdviceType;
  if (sendPacket(Socket->get(), Ours.encode(), {}))
    return std::optional<HandshakeResult>();
  // The peer is listening. Therefore, give it time to reply even if Until has
  // passed.
  constexpr std::chrono::milliseconds ReplyTime(200);
  Expected<std::optional<Packet>> Reply = awaitReply(
      Socket->get(), Peer, Until.expired() ? Deadline::in(ReplyTime) : Until);
  if (!Reply)
    return Reply.takeError();
  if (!*Reply)
    return std::optional<HandshakeResult>();
  Expected<Terms> Theirs = Terms::decode((*Reply)->Text);
  if (!Theirs)
    return Error(Theirs.code(), Peer + ": " + std::string(Theirs.message()));
  if (Error E = checkTerms(*Theirs, **Reply, Peer, Kind))
    return E;
  return std::optional<HandshakeResult>(HandshakeResult{
      std::move(*Socket), std::move((*Reply)->Descriptors), Theirs->Version});
}

void Backoff::wait(Deadline Until) {
  int Left = Until.pollTimeout();
  int Wait = static_cast<int>(Next.count());
  ::poll(nullptr, 0, Left < 0 ? Wait : std::min(Left, Wait));
  Next = std::min(2 * Next, std::chrono::milliseconds(20));
}

/// Explains how to start the peer that should listen at \p Peer.
static std::string howToStart(PeerRole Role, const std::string &Peer) {
  switch (Role) {
  case PeerRole::Model:
    return "start the model side (Python: mlbridge.serve(policy, \"" + Peer +
           "\"))";
  case PeerRole::Trainer:
    return "start the trainer, which starts this program (Python: "
           "mlbridge.envs.CompilerEnv([PROGRAM], \"" +
           Peer + "\", ...))";
  case PeerRole::Compiler:
    return "start the compiler, which serves its environment there (C++: "
           "serveEnvironment(Env, \"" +
           Peer + "\"))";
  }
  return {};
}

Error MLBridge::noListenerError(const std::string &Peer,
                                const std::string &Found, Duration Waited,
                                PeerRole Role) {
  const char *Missing = Role == PeerRole::Model     ? "no model"
                        : Role == PeerRole::Trainer ? "no trainer"
                                                    : "no compiler";
  return {ErrorCode::Timeout, std::string(Missing) + " at " + Peer +
                                  " within " + posix::formatDuration(Waited) +
                                  ": " + Found + "; " + howToStart(Role, Peer) +
                                  " or wait longer (connect=)"};
}

std::string MLBridge::describeUnusedSocket(const std::string &Path) {
  if (!posix::isSocket(Path))
    return {};
  if (isOrphaned(Path))
    return "the process that listened at " + printable(Path) +
           " has ended, and a child that it forked still holds the socket";
  return "the socket " + printable(Path) +
         " exists, but no process listens at it";
}
