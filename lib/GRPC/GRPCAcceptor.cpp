//===- GRPCAcceptor.cpp - Connections for a gRPC server -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCAcceptor.h"

#include "GRPC/GRPCClock.h"
#include "Support/PrintableText.h"

#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;
using posix::UniqueFD;

/// Descriptors that no connection takes: for the model's own files, sessions by
/// pipe and shared memory, and what gRPC opens beside a connection.
static constexpr std::size_t KeptFree = 32;
/// Of the others, those for connections whose peers are told that there is no
/// room, and leave then.
static constexpr std::size_t ForRefusals = 16;
/// How long peers wait to be accepted when there is no room even for that.
static constexpr std::chrono::milliseconds Pause(20);

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

static Error cannotListen(const std::string &Address, int Errno) {
  return Error::fromErrno(Errno, "cannot listen at " + printable(Address));
}

/// A socket that listens at \p Where; none, and errno, where that fails.
static UniqueFD listenAt(const addrinfo &Where, Duration PeerTimeout) {
  UniqueFD Socket(::socket(Where.ai_family,
                           Where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           Where.ai_protocol));
  if (!Socket)
    return Socket;
  auto Set = [&](int Level, int Option, int Value) {
    (void)::setsockopt(Socket.get(), Level, Option, &Value, sizeof(Value));
  };
  // A port that a dead server had is free again at once. Unlike SO_REUSEPORT,
  // this gives no port to two servers.
  Set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (Where.ai_family == AF_INET6)
    Set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Connections inherit both.
  Set(IPPROTO_TCP, TCP_NODELAY, 1);
  Set(IPPROTO_TCP, TCP_USER_TIMEOUT, millisOf(PeerTimeout));
  if (::bind(Socket.get(), Where.ai_addr, Where.ai_addrlen) != 0 ||
      ::listen(Socket.get(), SOMAXCONN) != 0)
    return UniqueFD();
  return Socket;
}

static int portOf(const UniqueFD &Socket) {
  sockaddr_storage Bound{};
  socklen_t Size = sizeof(Bound);
  if (::getsockname(Socket.get(), reinterpret_cast<sockaddr *>(&Bound),
                    &Size) != 0)
    return 0;
  return ntohs(Bound.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(Bound).sin6_port
                   : reinterpret_cast<sockaddr_in &>(Bound).sin_port);
}

static void setPort(sockaddr &Address, int Port) {
  const in_port_t Number = htons(static_cast<std::uint16_t>(Port));
  if (Address.sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(Address).sin6_port = Number;
  else
    reinterpret_cast<sockaddr_in &>(Address).sin_port = Number;
}

Error Acceptor::listenAtPort(std::string Host, std::string Port,
                             Duration PeerTimeout) {
  if (Host.starts_with('[') && Host.ends_with(']'))
    Host = Host.substr(1, Host.size() - 2);
  addrinfo Wanted{};
  Wanted.ai_socktype = SOCK_STREAM;
  Wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo *Found = nullptr;
  if (const int Problem =
          ::getaddrinfo(Host.c_str(), Port.c_str(), &Wanted, &Found))
    return {ErrorCode::System, "cannot listen at " + printable(Address) + ": " +
                                   ::gai_strerror(Problem)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> All(Found,
                                                            ::freeaddrinfo);
  const bool PicksPort = Port == "0";
  int Problem = 0;
  for (const addrinfo *Next = Found; Next; Next = Next->ai_next) {
    UniqueFD Socket = listenAt(*Next, PeerTimeout);
    if (!Socket) {
      Problem = errno;
      // Some of the compilers would come to the other server. But a machine may
      // well lack one of a name's addresses.
      if (Problem == EADDRINUSE && !PicksPort)
        return cannotListen(Address, Problem);
      continue;
    }
    Sockets.push_back(std::move(Socket));
    // The other addresses of the name get the port that the first one got.
    if (PicksPort && Sockets.size() == 1) {
      Port = std::to_string(portOf(Sockets.front()));
      for (addrinfo *Other = Next->ai_next; Other; Other = Other->ai_next)
        setPort(*Other->ai_addr, portOf(Sockets.front()));
    }
  }
  if (Sockets.empty())
    return cannotListen(Address, Problem);
  Address.replace(Address.rfind(':') + 1, std::string::npos, Port);
  return Error::success();
}

Expected<std::unique_ptr<Acceptor>> Acceptor::listen(const std::string &Address,
                                                     Duration PeerTimeout) {
  std::unique_ptr<Acceptor> Made(new Acceptor);
  Made->Address = Address;
  Expected<posix::Pipe> Stop = posix::makePipe();
  if (!Stop)
    return Stop.takeError();
  Made->Stop = std::move(*Stop);
  constexpr std::string_view OfUnix = "unix:";
  if (Address.starts_with(OfUnix)) {
    Expected<UnixListener> Local =
        UnixListener::listen(Address.substr(OfUnix.size()), SOCK_STREAM);
    if (!Local)
      return Local.takeError();
    Made->Local.emplace(std::move(*Local));
    return Made;
  }
  const std::size_t Colon = Address.rfind(':');
  if (Error E = Made->listenAtPort(Address.substr(0, Colon),
                                   Address.substr(Colon + 1), PeerTimeout))
    return E;
  return Made;
}

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

void Acceptor::start(Handlers Handle) {
  Thread = std::thread([this, Handle = std::move(Handle)] { run(Handle); });
}

void Acceptor::stop() {
  Stop.Write.reset();
  if (Thread.joinable())
    Thread.join();
}

bool Acceptor::acceptAll(int Socket, const Handlers &Handle) const {
  for (;;) {
    const std::size_t Free =
        posix::countFreeDescriptors(KeptFree + ForRefusals + 1);
    if (Free <= KeptFree)
      return false;
    UniqueFD Connection(
        ::accept4(Socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!Connection) {
      if (errno == EINTR || errno == ECONNABORTED)
        continue;
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
             errno != ENOMEM;
    }
    (Free > KeptFree + ForRefusals ? Handle.Serve
                                   : Handle.Refuse)(std::move(Connection));
  }
}

void Acceptor::run(const Handlers &Handle) {
  std::vector<pollfd> Watched{{Stop.Read.get(), 0, 0}};
  if (Local)
    Watched.push_back({Local->socket(), POLLIN, 0});
  for (const UniqueFD &Socket : Sockets)
    Watched.push_back({Socket.get(), POLLIN, 0});
  bool HasRoom = true;
  for (;;) {
    // Without room, only the end is watched for a while.
    const int Ready = ::poll(Watched.data(), HasRoom ? Watched.size() : 1,
                             HasRoom ? -1 : static_cast<int>(Pause.count()));
    if (Ready > 0 && Watched.front().revents != 0)
      return;
    // poll(2) fails for a while only: memory or descriptors have run out.
    HasRoom = Ready >= 0 || errno == EINTR;
    if (!HasRoom)
      continue;
    for (std::size_t I = 1; I < Watched.size(); ++I)
      HasRoom &= acceptAll(Watched[I].fd, Handle);
  }
}
