//===- GRPCFloor.cpp - The floor of a call by gRPC ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPCFloor.h"
#include "PipeFloor.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <cstring>

using namespace MLBridge;
using namespace MLBridge::bench;
using grpc::internal::RpcMethod;

/// Returns a message that has the same size as the runner's request.
static grpc::ByteBuffer requestOf(Span<const float> Features) {
  const std::size_t NumBytes = Features.size() * sizeof(float);
  grpc::Slice Bytes(FloorFrames::requestSize(Features.size()) -
                    sizeof(std::uint64_t));
  // Leave the header unset, because the server ignores it. Write the features
  // before the message's last byte.
  auto *End = const_cast<std::uint8_t *>(Bytes.end()) - 1;
  std::memcpy(End - NumBytes, Features.data(), NumBytes);
  return {&Bytes, 1};
}

static bool readReply(const grpc::ByteBuffer &Message, float &Reply) {
  grpc::Slice Bytes;
  if (!Message.DumpToSingleSlice(&Bytes).ok() || Bytes.size() != sizeof(Reply))
    return false;
  std::memcpy(&Reply, Bytes.begin(), sizeof(Reply));
  return true;
}

namespace {

class UnaryFloor final : public GRPCFloor {
public:
  explicit UnaryFloor(std::shared_ptr<grpc::Channel> Channel)
      : Channel(std::move(Channel)) {}
  bool ask(Span<const float> Features, float &Reply) override {
    grpc::ClientContext Context;
    grpc::ByteBuffer Message;
    return grpc::internal::BlockingUnaryCall(
               Channel.get(),
               RpcMethod(GRPCFloorMethod::Unary, RpcMethod::NORMAL_RPC,
                         Channel),
               &Context, requestOf(Features), &Message)
               .ok() &&
           readReply(Message, Reply);
  }

private:
  std::shared_ptr<grpc::Channel> Channel;
};

class StreamFloor final : public GRPCFloor {
public:
  explicit StreamFloor(std::shared_ptr<grpc::Channel> TheChannel)
      : Channel(std::move(TheChannel)),
        Stream(grpc::internal::ClientReaderWriterFactory<
               grpc::ByteBuffer,
               grpc::ByteBuffer>::Create(Channel.get(),
                                         RpcMethod(GRPCFloorMethod::Stream,
                                                   RpcMethod::BIDI_STREAMING,
                                                   Channel),
                                         &Context)) {}
  ~StreamFloor() override {
    Context.TryCancel();
    (void)Stream->Finish();
  }
  bool ask(Span<const float> Features, float &Reply) override {
    grpc::ByteBuffer Message;
    return Stream->Write(requestOf(Features)) && Stream->Read(&Message) &&
           readReply(Message, Reply);
  }

private:
  std::shared_ptr<grpc::Channel> Channel;
  grpc::ClientContext Context;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>>
      Stream;
};

} // namespace

std::unique_ptr<GRPCFloor> GRPCFloor::connect(const std::string &Address,
                                              bool IsStream) {
  std::shared_ptr<grpc::Channel> Channel =
      grpc::CreateChannel(Address, grpc::InsecureChannelCredentials());
  // Wait long enough for a Python server that is still starting on a busy
  // machine.
  if (!Channel->WaitForConnected(std::chrono::system_clock::now() +
                                 std::chrono::seconds(60)))
    return nullptr;
  if (IsStream)
    return std::make_unique<StreamFloor>(std::move(Channel));
  return std::make_unique<UnaryFloor>(std::move(Channel));
}
