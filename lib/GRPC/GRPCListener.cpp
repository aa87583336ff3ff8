//===- GRPCListener.cpp - A gRPC server and its thread --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCListener.h"

#include "GRPC/GRPCClock.h"
#include "GRPC/GRPCCredentials.h"
#include "GRPC/GRPCProtocol.h"

#include <cerrno>
#include <cstdlib>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

//===----------------------------------------------------------------------===//
// The name of a Unix socket
//===----------------------------------------------------------------------===//

// gRPC would remove whatever lies at the path, a live server's socket as well,
// and leave it to the umask who may connect. So it listens in a folder that is
// ours alone, and its socket gets its name when it is as it should be.

Expected<SocketName> SocketName::reserve(std::string Path) {
  std::string Folder = Path + ".XXXXXX";
  if (!::mkdtemp(Folder.data()))
    return Error::fromErrno(errno, "cannot make a socket at " + Path);
  SocketName Name;
  Name.Path = std::move(Path);
  Name.Temporary = Folder + "/s";
  Name.Folder = std::move(Folder);
  return Name;
}

void SocketName::removeTemporary() {
  if (Folder.empty())
    return;
  ::unlink(Temporary.c_str());
  ::rmdir(Folder.c_str());
  Folder.clear();
}

static bool somebodyListensAt(const std::string &Path) {
  posix::UniqueFD Socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Expected<posix::SocketAddress> Address = posix::SocketAddress::create(Path);
  if (!Socket || !Address)
    return false;
  // A child that a dead server has forked may still hold its socket.
  return Address->connect(Socket.get()) == 0
             ? !posix::peerHasEnded(Socket.get())
             : errno == EAGAIN;
}

Error SocketName::publish() {
  if (::chmod(Temporary.c_str(), S_IRUSR | S_IWUSR) != 0)
    return Error::fromErrno(errno, "cannot make " + Path + " private");
  Error Taken(ErrorCode::InvalidArgument,
              "another model already serves " + Path +
                  "; stop it or choose another name");
  Expected<posix::FileKind> Kind = posix::fileKind(Path);
  if (!Kind)
    return Kind.takeError();
  switch (*Kind) {
  case posix::FileKind::Missing:
    break;
  case posix::FileKind::Socket: {
    const posix::FileIdentity Old = posix::FileIdentity::ofPath(Path);
    if (somebodyListensAt(Path))
      return Taken;
    posix::unlinkIfSame(Path, Old);
    break;
  }
  default:
    return {ErrorCode::System, Path + ": expected a socket or nothing, found " +
                                   posix::describeFile(Path) +
                                   "; remove it or choose another name"};
  }
  // Unlike rename(2), it replaces nobody's.
  if (::link(Temporary.c_str(), Path.c_str()) != 0)
    return errno == EEXIST
               ? Taken
               : Error::fromErrno(errno, "cannot listen at " + Path);
  Identity = posix::FileIdentity::ofPath(Path);
  removeTemporary();
  return Error::success();
}

SocketName::~SocketName() {
  removeTemporary();
  if (!Path.empty())
    posix::unlinkIfSame(Path, Identity);
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

static void setServerArguments(grpc::ServerBuilder &Builder,
                               const Listener::Options &Wishes) {
  grpc::ChannelArguments Common;
  setCommonArguments(Common, Wishes.MaxMessage);
  const grpc_channel_args All = Common.c_channel_args();
  for (std::size_t I = 0; I < All.num_args; ++I)
    if (All.args[I].type == GRPC_ARG_INTEGER)
      Builder.AddChannelArgument(All.args[I].key, All.args[I].value.integer);
  // Two servers at one port would each get some of the compilers.
  Builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  Builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             millisOf(Wishes.PeerTimeout));
  // Compilers may ask as often as they like whether we are still there, and are
  // asked themselves.
  Builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  Builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 100);
  Builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  Builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  Builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

Expected<std::unique_ptr<Listener>> Listener::listen(const std::string &Address,
                                                     const Options &Wishes,
                                                     Receive Received) {
  constexpr std::string_view Local = "unix:";
  const bool IsLocal = Address.starts_with(Local);
  auto Credentials = makeServerCredentials(Wishes.Credentials);
  if (!Credentials)
    return Credentials.takeError();
  std::unique_ptr<Listener> Made(new Listener(std::move(Received)));
  Made->Address = Address;
  std::string Where = Address;
  if (IsLocal) {
    Expected<SocketName> Name =
        SocketName::reserve(Address.substr(Local.size()));
    if (!Name)
      return Name.takeError();
    Made->Socket = std::move(*Name);
    Where = std::string(Local) + Made->Socket.temporary();
  }
  grpc::ServerBuilder Builder;
  setServerArguments(Builder, Wishes);
  int Port = 0;
  Builder.AddListeningPort(Where, *Credentials, &Port);
  Builder.RegisterAsyncGenericService(&Made->Service);
  Made->Queue = Builder.AddCompletionQueue();
  Made->Server = Builder.BuildAndStart();
  if (!Made->Server || (!IsLocal && Port == 0))
    return Error(ErrorCode::System,
                 "cannot listen at " + Address +
                     ": is the port taken, or the address none of this "
                     "machine's? (GRPC_VERBOSITY=debug says more)");
  if (IsLocal) {
    if (Error E = Made->Socket.publish())
      return E;
  } else {
    Made->Address.replace(Address.rfind(':') + 1, std::string::npos,
                          std::to_string(Port));
  }
  Made->awaitCall();
  Made->Thread = std::thread([L = Made.get()] { L->run(); });
  return Made;
}

Listener::~Listener() {
  if (!Queue)
    return;
  if (!Thread.joinable())
    Thread = std::thread([this] { run(); });
  {
    std::scoped_lock Lock(Mutex);
    IsStopping = true;
  }
  // Returns when the last call is gone.
  if (Server)
    Server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  Queue->Shutdown();
  Thread.join();
}

void Listener::run() {
  void *Tag;
  bool Ok;
  while (Queue->Next(&Tag, &Ok))
    static_cast<ServerCall::Tag *>(Tag)->complete(Ok);
}

void Listener::awaitCall() {
  std::make_shared<ServerCall>(*this)->await(Service, *Queue);
}

void Listener::hasArrived(std::shared_ptr<ServerCall> Call) {
  {
    std::scoped_lock Lock(Mutex);
    if (IsStopping)
      return;
    awaitCall();
  }
  const std::string Version = Call->metadata(Metadata::Protocol, {});
  if (!Version.empty() && Version != std::to_string(ProtocolVersion))
    return Call->finish({grpc::StatusCode::FAILED_PRECONDITION,
                         versionRefusal(ProtocolVersion, Version)});
  Received(Call);
}
