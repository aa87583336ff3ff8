//===- GRPCPeers.cpp - Other peers for gRPC tests -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPCPeers.h"

#include <cstdio>
#include <cstdlib>
#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using posix::UniqueFD;

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

static sockaddr_in loopback(int Port) {
  sockaddr_in Address{};
  Address.sin_family = AF_INET;
  Address.sin_port = htons(static_cast<std::uint16_t>(Port));
  Address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Address;
}

static UniqueFD listenAt(int &Port) {
  UniqueFD Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int Yes = 1;
  ::setsockopt(Socket.get(), SOL_SOCKET, SO_REUSEADDR, &Yes, sizeof(Yes));
  sockaddr_in Address = loopback(Port);
  socklen_t Size = sizeof(Address);
  auto *Generic = reinterpret_cast<sockaddr *>(&Address);
  if (::bind(Socket.get(), Generic, Size) != 0 ||
      ::listen(Socket.get(), 16) != 0 ||
      ::getsockname(Socket.get(), Generic, &Size) != 0) {
    std::perror("cannot listen");
    std::exit(1);
  }
  Port = ntohs(Address.sin_port);
  return Socket;
}

static UniqueFD connectTo(int Port) {
  UniqueFD Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in Address = loopback(Port);
  if (::connect(Socket.get(), reinterpret_cast<sockaddr *>(&Address),
                sizeof(Address)) != 0)
    return {};
  return Socket;
}

void test::awaitEndOfGRPC() {
  for (int I = 0; grpc_is_initialized() != 0 && I < 500; ++I)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

int test::freePort() {
  int Port = 0;
  listenAt(Port);
  return Port;
}

RawListener::RawListener(int Port, std::string Greeting)
    : Socket(listenAt(Port)),
      Thread([this, Greeting = std::move(Greeting)] { run(Greeting); }) {}

RawListener::~RawListener() {
  Stop = true;
  Thread.join();
}

void RawListener::run(const std::string &Greeting) {
  std::vector<UniqueFD> Accepted;
  while (!Stop) {
    pollfd FD{Socket.get(), POLLIN, 0};
    if (::poll(&FD, 1, 20) <= 0)
      continue;
    Accepted.emplace_back(::accept(Socket.get(), nullptr, nullptr));
    (void)!::write(Accepted.back().get(), Greeting.data(), Greeting.size());
  }
}

Proxy::Proxy(int Target)
    : Target(Target), Socket(listenAt(Port)), Thread([this] { run(); }) {}

Proxy::~Proxy() {
  Stop = true;
  Thread.join();
}

void Proxy::run() {
  struct Pair {
    UniqueFD From, To;
  };
  std::vector<Pair> Pairs;
  std::vector<char> Buffer(1 << 16);
  while (!Stop) {
    std::vector<pollfd> FDs{{Socket.get(), POLLIN, 0}};
    for (const Pair &P : Pairs) {
      FDs.push_back({P.From.get(), POLLIN, 0});
      FDs.push_back({P.To.get(), POLLIN, 0});
    }
    // Unforwarded bytes stay in the socket.
    if (!Forwards)
      FDs.clear();
    if (::poll(FDs.data(), FDs.size(), 20) <= 0 || !Forwards)
      continue;
    for (std::size_t I = 0; I < Pairs.size(); ++I)
      for (int Way : {0, 1}) {
        if (FDs[1 + 2 * I + Way].revents == 0)
          continue;
        const UniqueFD &From = Way == 0 ? Pairs[I].From : Pairs[I].To;
        const UniqueFD &To = Way == 0 ? Pairs[I].To : Pairs[I].From;
        ssize_t Count = ::read(From.get(), Buffer.data(), Buffer.size());
        if (Count <= 0)
          ::shutdown(To.get(), SHUT_WR);
        for (ssize_t Done = 0; Done < Count;) {
          ssize_t Part = ::write(To.get(), Buffer.data() + Done, Count - Done);
          if (Part <= 0)
            break;
          Done += Part;
        }
      }
    if (FDs[0].revents != 0)
      Pairs.push_back({UniqueFD(::accept(Socket.get(), nullptr, nullptr)),
                       connectTo(Target)});
  }
}

//===----------------------------------------------------------------------===//
// StatusServer
//===----------------------------------------------------------------------===//

StatusServer::StatusServer(grpc::Status Status, std::string Reply)
    : Status(std::move(Status)), Reply(std::move(Reply)) {
  grpc::ServerBuilder Builder;
  Builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &Port);
  Builder.RegisterCallbackGenericService(this);
  Server = Builder.BuildAndStart();
}

StatusServer::~StatusServer() {
  Server->Shutdown(std::chrono::system_clock::now());
}

std::string StatusServer::spec() const {
  return "grpc://127.0.0.1:" + std::to_string(Port);
}

namespace {
class Ending final : public grpc::ServerGenericBidiReactor {
public:
  Ending(grpc::Status Status, const std::string &Text)
      : Status(std::move(Status)) {
    if (!Text.empty()) {
      grpc::Slice Bytes(Text);
      Reply = grpc::ByteBuffer(&Bytes, 1);
    }
    StartRead(&Request);
  }
  void OnReadDone(bool) override {
    if (Reply.Valid())
      StartWrite(&Reply);
    else
      Finish(Status);
  }
  void OnWriteDone(bool) override { Finish(Status); }
  void OnDone() override { delete this; }

private:
  grpc::Status Status;
  grpc::ByteBuffer Request, Reply;
};
} // namespace

grpc::ServerGenericBidiReactor *
StatusServer::CreateReactor(grpc::GenericCallbackServerContext *) {
  // gRPC calls OnDone() at the end, which deletes the reactor.
  return new Ending(Status, Reply);
}

//===----------------------------------------------------------------------===//
// TwiceServer
//===----------------------------------------------------------------------===//

TwiceServer::TwiceServer(std::string Reply) : Reply(std::move(Reply)) {
  grpc::ServerBuilder Builder;
  Builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &Port);
  Builder.RegisterCallbackGenericService(this);
  Server = Builder.BuildAndStart();
}

TwiceServer::~TwiceServer() {
  Server->Shutdown(std::chrono::system_clock::now());
}

std::string TwiceServer::spec() const {
  return "grpc://127.0.0.1:" + std::to_string(Port);
}

grpc::ServerGenericBidiReactor *
TwiceServer::CreateReactor(grpc::GenericCallbackServerContext *) {
  class Twice final : public grpc::ServerGenericBidiReactor {
  public:
    explicit Twice(const std::string &Text) {
      grpc::Slice Bytes(Text);
      Reply = grpc::ByteBuffer(&Bytes, 1);
      StartRead(&Request);
    }
    void OnReadDone(bool Ok) override {
      if (!Ok)
        return Finish(grpc::Status::OK);
      StartWrite(&Reply);
    }
    void OnWriteDone(bool Ok) override {
      if (!Ok)
        return Finish(grpc::Status::OK);
      if (std::exchange(IsSecond, !IsSecond))
        StartRead(&Request);
      else
        StartWrite(&Reply);
    }
    void OnDone() override { delete this; }

  private:
    bool IsSecond = false;
    grpc::ByteBuffer Request, Reply;
  };
  return new Twice(Reply);
}

//===----------------------------------------------------------------------===//
// RawCall
//===----------------------------------------------------------------------===//

RawCall::RawCall(
    int Port, const std::string &Method,
    const std::vector<std::pair<std::string, std::string>> &Metadata) {
  for (const auto &[Key, Value] : Metadata)
    Context.AddMetadata(Key, Value);
  Context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  grpc::ChannelArguments Arguments;
  Arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub Stub(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(Port),
                                grpc::InsecureChannelCredentials(), Arguments));
  Stream = Stub.PrepareCall(
      &Context, "/mlcompilerbridge.MLCompilerBridge/" + Method, &Queue);
  Stream->StartCall(nullptr);
  wait();
}

RawCall::~RawCall() {
  Context.TryCancel();
  Queue.Shutdown();
  while (wait())
    ;
}

bool RawCall::wait() {
  void *Tag;
  bool Ok = false;
  return Queue.Next(&Tag, &Ok) && Ok;
}

bool RawCall::write(const std::string &Message) {
  grpc::Slice Bytes(Message);
  Stream->Write(grpc::ByteBuffer(&Bytes, 1), nullptr);
  return wait();
}

std::string RawCall::read() {
  grpc::ByteBuffer Message;
  Stream->Read(&Message, nullptr);
  grpc::Slice Bytes;
  if (!wait() || !Message.DumpToSingleSlice(&Bytes).ok())
    return {};
  return {reinterpret_cast<const char *>(Bytes.begin()), Bytes.size()};
}

grpc::Status RawCall::end() {
  grpc::Status Status;
  Stream->Finish(&Status, nullptr);
  wait();
  return Status;
}
