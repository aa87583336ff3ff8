//===- Meeting.cpp - How the two sides find each other ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/Meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <simdjson.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

/// Longer packets are cut by recvmsg and then fail to parse.
static constexpr std::size_t MaxPacket = 4096;
static constexpr std::size_t MaxDescriptors = 4;

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

static std::string jsonString(std::string_view Text) {
  std::string Out = "\"";
  for (char C : Text) {
    if (C == '"' || C == '\\')
      Out += '\\';
    // Control characters have no business in a hello or a refusal.
    Out += static_cast<unsigned char>(C) < 0x20 ? ' ' : C;
  }
  return Out + '"';
}

std::string Hello::refusalOf(std::string_view Theirs) {
  return "this model speaks version " + std::to_string(ProtocolVersion) +
         " of the protocol, the compiler version " + std::string(Theirs) +
         "; use the same release of ML-Compiler-Bridge on both sides";
}

std::string Hello::encode() const {
  return "{\"mlbridge\":" + std::to_string(Protocol) +
         ",\"transport\":" + jsonString(Transport) +
         ",\"serdes\":" + jsonString(SerDes) +
         ",\"advice\":" + jsonString(AdviceType) + "}";
}

std::string Terms::encode() const {
  std::string Out = "{\"mlbridge\":" + std::to_string(Hello::ProtocolVersion);
  if (!Refusal.empty())
    Out += ",\"refused\":" + jsonString(Refusal);
  return Out + "}";
}

/// Reads the fields of a flat JSON object through \p Field.
template <typename FieldFn>
static Error parsePacket(std::string_view Text, FieldFn Field) {
  simdjson::dom::parser Parser;
  simdjson::dom::object Object;
  if (Parser.parse(Text.data(), Text.size()).get(Object) != simdjson::SUCCESS)
    return Error(ErrorCode::Malformed,
                 "the peer at the socket does not speak this protocol: "
                 "expected a JSON object, found \"" +
                     std::string(Text.substr(0, 80)) + "\"");
  bool HasVersion = false;
  for (auto [Key, Value] : Object) {
    HasVersion |= Key == "mlbridge";
    if (!Field(Key, Value))
      return Error(ErrorCode::Malformed, "the field \"" + std::string(Key) +
                                             "\" of a meeting packet has a "
                                             "wrong type");
  }
  if (!HasVersion)
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

Expected<Hello> Hello::decode(std::string_view Packet) {
  Hello H;
  H.Protocol = 0;
  Error E = parsePacket(Packet, [&](std::string_view Key, auto Value) {
    if (Key == "mlbridge") {
      std::int64_t Version;
      if (Value.get(Version) != simdjson::SUCCESS || Version < 0 ||
          Version > 1'000'000)
        return false;
      H.Protocol = static_cast<int>(Version);
      return true;
    }
    if (Key == "transport")
      return readString(Value, H.Transport);
    if (Key == "serdes")
      return readString(Value, H.SerDes);
    return Key != "advice" || readString(Value, H.AdviceType);
  });
  if (E)
    return E;
  return H;
}

Expected<Terms> Terms::decode(std::string_view Packet) {
  Terms T;
  Error E = parsePacket(Packet, [&](std::string_view Key, auto Value) {
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
    return Error::fromErrno(errno, "cannot send a meeting packet");
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
  // Here, so that there is memory for what the kernel hands out.
  Into.Descriptors.clear();
  Into.Descriptors.reserve(MaxDescriptors);
  ssize_t Got;
  do
    Got = ::recvmsg(Socket, &Message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (Got < 0 && errno == EINTR);
  if (Got < 0) {
    if (errno == EAGAIN)
      return PacketState::None;
    if (errno == ECONNRESET)
      return PacketState::Ended;
    return Error::fromErrno(errno, "cannot receive a meeting packet");
  }
  // Take the descriptors first: whatever the text is, they are ours to close.
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
  Into.Text.assign(Text, static_cast<std::size_t>(Got));
  return PacketState::Arrived;
}

//===----------------------------------------------------------------------===//
// The compiler's half
//===----------------------------------------------------------------------===//

Expected<UniqueFD> MLBridge::tryConnect(const std::string &Path) {
  switch (posix::fileKind(Path)) {
  case posix::FileKind::Missing:
    return UniqueFD();
  case posix::FileKind::Socket:
    break;
  default:
    return Error(ErrorCode::System, Path + ": expected a socket, found " +
                                        posix::describeFile(Path));
  }
  UniqueFD Socket(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!Socket)
    return Error::fromErrno(errno, "cannot create a socket");
  Expected<posix::SocketAddress> Address = posix::SocketAddress::create(Path);
  if (!Address)
    return Address.takeError();
  if (Address->connect(Socket.get()) == 0)
    return Socket;
  switch (errno) {
  case ENOENT:       // Removed meanwhile.
  case ECONNREFUSED: // Left by a dead server.
  case EAGAIN:       // Its queue of connections is full.
  case EINTR:
    return UniqueFD();
  default:
    return Error::fromErrno(errno, "cannot connect to " + Path);
  }
}

Expected<std::optional<Met>>
MLBridge::tryMeet(const std::string &Name, const std::string &Peer,
                  const std::string &Transport, const SessionRequest &Request,
                  std::size_t NumDescriptors, Deadline Until) {
  Expected<UniqueFD> Socket = tryConnect(Name + ".sock");
  if (!Socket)
    return Socket.takeError();
  if (!*Socket)
    return std::optional<Met>();
  if (!posix::isTrustedPeer(Socket->get()))
    return Error(ErrorCode::System,
                 "another user listens at " + Name +
                     ".sock, whose model is not asked; choose another name");
  Hello Ours;
  Ours.Transport = Transport;
  Ours.SerDes = Request.SerDes;
  Ours.AdviceType = Request.AdviceType;
  if (sendPacket(Socket->get(), Ours.encode(), {}))
    return std::optional<Met>();

  Packet Answer;
  for (;;) {
    pollfd FD{Socket->get(), POLLIN, 0};
    int Ready = ::poll(&FD, 1, Until.pollTimeout());
    Expected<PacketState> State = receivePacket(Socket->get(), Answer);
    if (!State)
      return State.takeError();
    if (*State == PacketState::Ended)
      return std::optional<Met>();
    if (*State == PacketState::Arrived)
      break;
    if (Ready == 0 && Until.expired())
      return Error(ErrorCode::Timeout,
                   Peer + " accepted the connection, but did not say hello "
                          "before the deadline: is the model side stopped or "
                          "busy?");
  }
  Expected<Terms> Theirs = Terms::decode(Answer.Text);
  if (!Theirs)
    return Theirs.takeError();
  if (!Theirs->Refusal.empty())
    return Error(ErrorCode::Unsupported,
                 Peer + " refused this session: " + Theirs->Refusal);
  if (Answer.Descriptors.size() != NumDescriptors)
    return Error(ErrorCode::Malformed,
                 Peer + " sent " + std::to_string(Answer.Descriptors.size()) +
                     " descriptors for a session; expected " +
                     std::to_string(NumDescriptors));
  return std::optional<Met>(
      Met{std::move(*Socket), std::move(Answer.Descriptors)});
}

void Lookout::pause(Deadline Until) {
  int Left = Until.pollTimeout();
  int Wait = static_cast<int>(Next.count());
  ::poll(nullptr, 0, Left < 0 ? Wait : std::min(Left, Wait));
  Next = std::min(2 * Next, std::chrono::milliseconds(20));
}

Error Lookout::nobodyAt(const std::string &Peer, const std::string &Found,
                        Duration Waited) {
  return {ErrorCode::Timeout,
          "no model at " + Peer + " within " + posix::formatDuration(Waited) +
              ": " + Found +
              "; start the model side (Python: mlbridge.serve(policy, \"" +
              Peer + "\")) or wait longer (connect=)"};
}

//===----------------------------------------------------------------------===//
// The model's half
//===----------------------------------------------------------------------===//

/// Starting servers take turns while they look at what a dead one left, or two
/// would each remove the other's fresh socket. The lock is on the directory, so
/// that no lock file is left behind.
static UniqueFD lockDirectoryOf(const std::string &Path) {
  UniqueFD Directory(::open(posix::parentOf(Path).c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Held for microseconds by us; do not wait long for anybody else's.
  for (int Attempt = 0; Directory && Attempt < 200; ++Attempt) {
    if (::flock(Directory.get(), LOCK_EX | LOCK_NB) == 0)
      break;
    ::poll(nullptr, 0, 5);
  }
  return Directory;
}

Expected<MeetingPoint> MeetingPoint::listen(std::string Path) {
  Expected<posix::SocketAddress> Address = posix::SocketAddress::create(Path);
  if (!Address)
    return Address.takeError();
  UniqueFD Lock = lockDirectoryOf(Path);
  posix::FileKind Kind = posix::fileKind(Path);
  if (Kind == posix::FileKind::Socket) {
    Expected<UniqueFD> Other = tryConnect(Path);
    if (!Other)
      return Other.takeError();
    if (*Other)
      return Error(ErrorCode::InvalidArgument,
                   "another model already serves " + Path +
                       "; stop it or choose another name");
    ::unlink(Path.c_str());
  } else if (Kind != posix::FileKind::Missing) {
    return Error(ErrorCode::System, Path +
                                        ": expected a socket or nothing, "
                                        "found " +
                                        posix::describeFile(Path) +
                                        "; remove it or choose another name");
  }

  UniqueFD Listener(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!Listener)
    return Error::fromErrno(errno, "cannot create a socket");
  // On Linux the mode of the descriptor becomes the mode of the file, so there
  // is no moment at which others could connect.
  if (::fchmod(Listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      Address->bind(Listener.get()) != 0 ||
      ::listen(Listener.get(), SOMAXCONN) != 0)
    return Error::fromErrno(errno, "cannot listen at " + Path);
  posix::FileIdentity Identity = posix::FileIdentity::ofPath(Path);
  return MeetingPoint(std::move(Path), std::move(Listener), Identity);
}

MeetingPoint::~MeetingPoint() {
  if (Listener)
    posix::unlinkIfSame(Path, Identity);
}

UniqueFD MeetingPoint::accept() {
  return UniqueFD(::accept4(Listener.get(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
}
