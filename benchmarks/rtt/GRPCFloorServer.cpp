//===- GRPCFloorServer.cpp - The server of the gRPC floor -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The server of the gRPC floor, which replies to each request with the
/// request's last float32:
///
///     grpc-floor-server CPU ADDRESS
///
/// The server uses gRPC's synchronous API. It runs on core CPU until it is
/// terminated.
///
//===----------------------------------------------------------------------===//

#include "GRPCFloor.h"

#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>

using namespace MLBridge::bench;
using grpc::ByteBuffer;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

static ByteBuffer replyTo(const ByteBuffer &Request) {
  grpc::Slice Bytes;
  if (!Request.DumpToSingleSlice(&Bytes).ok() || Bytes.size() < 5)
    return {};
  grpc::Slice Last(Bytes.end() - 5, sizeof(float));
  return {&Last, 1};
}

namespace {

/// A service with two methods whose messages are bytes. protoc generates
/// similar services.
class FloorService final : public grpc::Service {
public:
  FloorService() {
    using Stream = grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>;
    AddMethod(new RpcServiceMethod(
        GRPCFloorMethod::Stream, RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<FloorService, ByteBuffer,
                                                 ByteBuffer>(
            [](FloorService *, grpc::ServerContext *, Stream *S) {
              ByteBuffer Request;
              while (S->Read(&Request))
                S->Write(replyTo(Request));
              return grpc::Status::OK;
            },
            this)));
    AddMethod(new RpcServiceMethod(
        GRPCFloorMethod::Unary, RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<FloorService, ByteBuffer,
                                             ByteBuffer>(
            [](FloorService *, grpc::ServerContext *, const ByteBuffer *Request,
               ByteBuffer *Reply) {
              *Reply = replyTo(*Request);
              return grpc::Status::OK;
            },
            this)));
  }
};

} // namespace

int main(int NumArguments, char **Arguments) {
  if (NumArguments != 3) {
    std::fprintf(stderr, "usage: grpc-floor-server CPU ADDRESS\n");
    return 1;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t Cores;
  CPU_ZERO(&Cores);
  CPU_SET(std::strtoul(Arguments[1], nullptr, 10), &Cores);
  if (sched_setaffinity(0, sizeof(Cores), &Cores) != 0) {
    std::perror("grpc-floor-server: cannot run on that core");
    return 1;
  }
  FloorService Service;
  grpc::ServerBuilder Builder;
  Builder.AddListeningPort(Arguments[2], grpc::InsecureServerCredentials());
  Builder.RegisterService(&Service);
  std::unique_ptr<grpc::Server> Server = Builder.BuildAndStart();
  if (!Server)
    return 1;
  Server->Wait();
}
