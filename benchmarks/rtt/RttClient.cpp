//===- RttClient.cpp - Times round trips to a model -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's side of `mlbridge bench rtt`:
///
///     rtt-client CPU FEATURES LENGTHS (kept|fresh) SPEC
///
/// SPEC is a model spec or one of these floors. A floor is the fastest possible
/// round trip with the same bytes, without this library.
///
/// - floor:pipe:READ_FD,WRITE_FD
/// - floor:lent-pipe:READ_FD,WRITE_FD
/// - floor:futex:MEMORY_FD
/// - floor:grpc-stream:ADDRESS
/// - floor:grpc-unary:ADDRESS
///
/// The client runs on core CPU. Each line on stdin starts a sweep over all
/// lengths in LENGTHS, such as "500,1000,1500". For each length N, the client
/// sends the first N float32s of the file FEATURES. With "kept", it writes the
/// features to the runner's buffer once. With "fresh", it writes them again
/// before each trip, so that they are only in this core's cache. This writing
/// is not timed. For each sweep, the client prints a line of JSON to stdout
/// with the time and the reply of each trip and the number of heap allocations.
/// It exits at the end of stdin.
///
//===----------------------------------------------------------------------===//

#include "RttClient.h"

#include "ClientSupport.h"
#include "FutexFloor.h"
#include "PipeFloor.h"
#include "support/AllocationCounter.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#ifdef MLBRIDGE_HAS_GRPC
#include "GRPCFloor.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::bench;

/// The number of trips before each sweep that are not measured. They are needed
/// because other processes have used the core and the model sleeps.
static constexpr int WarmTrips = 50;

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

namespace {

/// A function that makes one round trip, and the buffer that it sends.
struct RoundTrip {
  Span<float> Features;
  /// Sends the given number of features and returns the reply.
  std::function<float(std::size_t)> Ask;
};

} // namespace

/// Returns a round trip through the library, with the same calls as in a
/// compiler pass.
static RoundTrip makeRunnerTrip(std::string_view Spec, std::size_t Longest) {
  RunnerFactory Factory;
#ifdef MLBRIDGE_HAS_GRPC
  addGRPC(Factory);
#endif
  Expected<std::unique_ptr<MLModelRunner>> Made = Factory.create(Spec);
  if (!Made)
    fail(Made.takeError().str());
  auto Features = std::make_shared<std::vector<float>>(Longest);
  std::shared_ptr<MLModelRunner> Runner = std::move(*Made);
  return {*Features, [=](std::size_t Length) {
            Runner->populateFeatures(
                std::pair{"x", Span<const float>(Features->data(), Length)});
            return Runner->evaluate<float>();
          }};
}

using SendFunction = bool (FloorPipe::*)(Span<const std::byte>) const;

/// Returns a round trip through raw pipes. The features are written directly
/// into the message.
static RoundTrip makeFloorTrip(Span<const std::size_t> Ends,
                               SendFunction Send) {
  if (Ends.size() != 2)
    fail("a pipe has two ends");
  FloorPipe Pipe(static_cast<int>(Ends[0]), static_cast<int>(Ends[1]));
  auto Request = std::make_shared<FloorRequest>();
  std::byte *Features = Request->data() + FloorFrames::HeaderSize;
  auto Ask = [Pipe, Send, Request](std::size_t Length) {
    std::size_t Size = FloorFrames::requestSize(Length);
    FloorFrames::setLength(Request->data(), Size);
    std::byte Reply[FloorFrames::ReplySize];
    if (!(Pipe.*Send)({Request->data(), Size}) ||
        Pipe.receive(Reply) != sizeof(Reply))
      fail("the peer of the floor has ended");
    float Value = 0;
    std::memcpy(&Value, Reply + sizeof(std::uint64_t), sizeof(Value));
    return Value;
  };
  return {{reinterpret_cast<float *>(Features), FloorFrames::MaxLength}, Ask};
}

static RoundTrip makeFutexTrip(Span<const std::size_t> Memory,
                               std::size_t Longest) {
  if (Memory.size() != 1)
    fail("expected one descriptor of memory");
  std::shared_ptr<FutexFloor> Floor =
      FutexFloor::map(static_cast<int>(Memory[0]));
  if (!Floor)
    fail("cannot map the floor's memory");
  auto Features = std::make_shared<std::vector<float>>(Longest);
  return {*Features, [=](std::size_t Length) {
            float Reply = 0;
            if (!Floor->ask({Features->data(), Length}, Reply))
              fail("the peer of the floor has ended");
            return Reply;
          }};
}

#ifdef MLBRIDGE_HAS_GRPC
static RoundTrip makeGRPCTrip(const std::string &Address, bool IsStream,
                              std::size_t Longest) {
  std::shared_ptr<GRPCFloor> Floor = GRPCFloor::connect(Address, IsStream);
  if (!Floor)
    fail("no gRPC floor listens at " + Address + " within a minute");
  auto Features = std::make_shared<std::vector<float>>(Longest);
  return {*Features, [=](std::size_t Length) {
            float Reply = 0;
            if (!Floor->ask({Features->data(), Length}, Reply))
              fail("the peer of the floor has ended");
            return Reply;
          }};
}
#endif

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

namespace {
struct Sweep {
  std::vector<std::chrono::nanoseconds> Times;
  std::vector<float> Replies;
  std::size_t Allocations = 0;
};
} // namespace

static void run(const RoundTrip &Trip, const std::vector<float> &Features,
                bool AreFresh, Span<const std::size_t> Lengths, Sweep &Out) {
  using Clock = std::chrono::steady_clock;
  for (int I = 0; I < WarmTrips; ++I)
    (void)Trip.Ask(Lengths.front());
  test::AllocationCounter Allocations;
  for (std::size_t I = 0; I < Lengths.size(); ++I) {
    if (AreFresh)
      std::copy_n(Features.begin(), Lengths[I], Trip.Features.begin());
    Clock::time_point Start = Clock::now();
    Out.Replies[I] = Trip.Ask(Lengths[I]);
    Out.Times[I] = Clock::now() - Start;
  }
  Out.Allocations = Allocations.count();
}

static void print(const Sweep &Result) {
  std::printf("{\"allocations\":%zu,\"us\":[", Result.Allocations);
  const char *Separator = "";
  for (std::chrono::nanoseconds Time : Result.Times) {
    std::printf("%s%.3f", Separator,
                std::chrono::duration<double, std::micro>(Time).count());
    Separator = ",";
  }
  std::printf("],\"answers\":[");
  Separator = "";
  for (float Reply : Result.Replies) {
    std::printf("%s%.9g", Separator, static_cast<double>(Reply));
    Separator = ",";
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

static RoundTrip makeTrip(std::string_view Spec, std::size_t Longest) {
  constexpr std::pair<std::string_view, SendFunction> Floors[] = {
      {"floor:pipe:", &FloorPipe::send},
      {"floor:lent-pipe:", &FloorPipe::lend},
  };
  for (auto [Prefix, Send] : Floors)
    if (Spec.starts_with(Prefix))
      return makeFloorTrip(parseNumbers(Spec.substr(Prefix.size())), Send);
  constexpr std::string_view Futex = "floor:futex:";
  if (Spec.starts_with(Futex))
    return makeFutexTrip(parseNumbers(Spec.substr(Futex.size())), Longest);
#ifdef MLBRIDGE_HAS_GRPC
  constexpr std::string_view Stream = "floor:grpc-stream:";
  constexpr std::string_view Unary = "floor:grpc-unary:";
  if (Spec.starts_with(Stream))
    return makeGRPCTrip(std::string(Spec.substr(Stream.size())),
                        /*IsStream=*/true, Longest);
  if (Spec.starts_with(Unary))
    return makeGRPCTrip(std::string(Spec.substr(Unary.size())),
                        /*IsStream=*/false, Longest);
#endif
  return makeRunnerTrip(Spec, Longest);
}

void MLBridge::bench::runRttClient(Span<const char *const> Arguments) {
  if (Arguments.size() != 6)
    fail("usage: rtt-client CPU FEATURES LENGTHS (kept|fresh) SPEC");
  runOn(parseNumbers(Arguments[1]).front());
  std::vector<std::size_t> Lengths = parseNumbers(Arguments[3]);
  std::size_t Longest = std::ranges::max(Lengths);
  if (Longest > FloorFrames::MaxLength)
    fail("a length of " + std::to_string(Longest) + " is beyond the limit");
  std::vector<float> Features = readFloats(Arguments[2], Longest);

  bool AreFresh = Arguments[4] == std::string_view("fresh");
  RoundTrip Trip = makeTrip(Arguments[5], Longest);
  std::ranges::copy(Features, Trip.Features.begin());

  Sweep Result;
  Result.Times.resize(Lengths.size());
  Result.Replies.resize(Lengths.size());
  for (int Key = std::getchar(); Key != EOF; Key = std::getchar())
    if (Key == '\n') {
      run(Trip, Features, AreFresh, Lengths, Result);
      print(Result);
    }
}
