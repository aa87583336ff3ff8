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

/// The number of descriptors that are not used for connections. They are
/// reserved for the model's files, for sessions over pipes and shared memory,
/// and for gRPC itself.
static constexpr std::size_t Reserved = 32;
/// The number of descriptors reserved for connections that are accepted only to
/// be refused.
static constexpr std::size_t ReservedForRefusals = 16;
/// If no descriptor is free, not even a refusal is possible. The thread pauses
/// for this time and then tries again.
static constexpr std::chrono::milliseconds Pause(20);

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

static Error cannotListen(const std::string &Address, int Errno) {
  return Error::fromErrno(Errno, "cannot listen at " + printable(Address));
}

/// Creates a socket that listens at \p Where. On failure, returns an empty
/// descriptor and sets errno.
static UniqueFD listenAt(const addrinfo &Where, Duration PeerTimeout) {
  UniqueFD Socket(::socket(Where.ai_family,
                           Where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           Where.ai_protocol));
  if (!Socket)
    return Socket;
  auto Set = [&](int Level, int Option, int Value) {
    (void)::setsockopt(Socket.get(), Level, Option, &Value, sizeof(Value));
  };
  // Allow immediate reuse of a dead server's port. SO_REUSEPORT would also let
  // two live servers share a port.
  Set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (Where.ai_family == AF_INET6)
    Set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Set these options here, because connections inherit them.
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
      // Fail if another server uses the port at this address. Otherwise, some
      // compilers would reach that server. Ignore other errors, because a host
      // name may have addresses that this machine lacks.
      if (Problem == EADDRINUSE && !PicksPort)
        return cannotListen(Address, Problem);
      continue;
    }
    Sockets.push_back(std::move(Socket));
    // Use the port of the first address for the other addresses, too.
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
        posix::countFreeDescriptors(Reserved + ReservedForRefusals + 1);
    if (Free <= Reserved)
      return false;
    UniqueFD Connection(
        ::accept4(Socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!Connection) {
      if (errno == EINTR || errno == ECONNABORTED)
        continue;
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
             errno != ENOMEM;
    }
    (Free > Reserved + ReservedForRefusals ? Handle.Serve : Handle.Refuse)(
        std::move(Connection));
  }
}

void Acceptor::run(const Handlers &Handle) {
  std::vector<pollfd> Watched{{Stop.Read.get(), 0, 0}};
  if (Local)
    Watched.push_back({Local->socket(), POLLIN, 0});
  for (const UniqueFD &Socket : Sockets)
    Watched.push_back({Socket.get(), POLLIN, 0});
  bool HasFree = true;
  for (;;) {
    // If no descriptor is free, do not watch the sockets for a while. Watch
    // only Stop.
    const int Ready = ::poll(Watched.data(), HasFree ? Watched.size() : 1,
                             HasFree ? -1 : static_cast<int>(Pause.count()));
    if (Ready > 0 && Watched.front().revents != 0)
      return;
    // If poll(2) fails, memory or descriptors have run out. Pause and try
    // again.
    HasFree = Ready >= 0 || errno == EINTR;
    if (!HasFree)
      continue;
    for (std::size_t I = 1; I < Watched.size(); ++I)
      HasFree &= acceptAll(Watched[I].fd, Handle);
  }
}
