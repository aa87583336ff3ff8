//===- GRPCNetworkTest.cpp - Two hosts and a bad network ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a compiler and a model on two hosts, which are network namespaces. A
/// wire between the hosts delays packets, loses some, and can be cut. The wire
/// is a process that forwards packets between two TUN devices, because not
/// every kernel has netem. These tests need root.
///
//===----------------------------------------------------------------------===//

#include "FaultTest.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Transport/gRPCListener.h"
#include "Support/Posix.h"
#include "support/GRPCSanitizers.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;
using posix::UniqueFD;

namespace {

/// The state that all processes of a test share.
struct Shared {
  std::atomic<bool> IsUp = false;
  std::atomic<bool> IsCut = false;
};

class GRPCNetwork : public testing::Test {
protected:
  static constexpr auto Delay = 10ms;
  static constexpr double Loss = 0.02;

  void SetUp() override {
    MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
    if (::geteuid() != 0)
      GTEST_SKIP() << "network namespaces need root";
    if (Child([] { return enterHost("10.99.0.1") ? 0 : 1; }).wait() != 0)
      GTEST_SKIP() << "network namespaces or TUN devices are not available";
    void *Memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(Memory, MAP_FAILED);
    State = new (Memory) Shared;
  }
  void TearDown() override {
    if (State)
      ::munmap(State, sizeof(Shared));
  }

  /// Moves this process to its own host, whose only network is a TUN device.
  /// Returns the device.
  static UniqueFD enterHost(const char *Address) {
    if (::unshare(CLONE_NEWNET) != 0)
      return {};
    UniqueFD Device(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq Request{};
    Request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strcpy(Request.ifr_name, "wire");
    if (!Device || ::ioctl(Device.get(), TUNSETIFF, &Request) != 0)
      return {};
    const std::string Command = "ip link set lo up && ip address add " +
                                std::string(Address) +
                                "/24 dev wire && ip link set wire up";
    // The command is safe, because the test itself wrote it.
    // NOLINTNEXTLINE(bugprone-command-processor)
    return std::system(Command.c_str()) == 0 ? std::move(Device) : UniqueFD();
  }

  /// Forwards packets until killed.
  void runWire(int A, int B) const {
    struct Packet {
      Clock::time_point Due;
      int To;
      std::vector<char> Bytes;
    };
    std::deque<Packet> Underway;
    std::mt19937 Random(1);
    std::uniform_real_distribution<> Chance;
    std::array<char, 1 << 16> Buffer;
    for (;;) {
      pollfd FDs[] = {{A, POLLIN, 0}, {B, POLLIN, 0}};
      ::poll(FDs, 2, Underway.empty() ? 100 : 1);
      for (int Side : {0, 1})
        for (ssize_t Size;
             (Size = ::read(FDs[Side].fd, Buffer.data(), Buffer.size())) > 0;)
          if (!State->IsCut && Chance(Random) >= Loss)
            Underway.push_back({Clock::now() + Delay,
                                FDs[1 - Side].fd,
                                {Buffer.data(), Buffer.data() + Size}});
      while (!Underway.empty() && Underway.front().Due <= Clock::now()) {
        const Packet &First = Underway.front();
        (void)!::write(First.To, First.Bytes.data(), First.Bytes.size());
        Underway.pop_front();
      }
    }
  }

  /// Runs \p Compiler on one host and an echo model on the other host.
  int run(const std::function<int()> &Compiler) const {
    int Pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, Pair) != 0)
      return 101;
    // Through these sockets, each host sends its device to the wire.
    UniqueFD Ends[2] = {UniqueFD(Pair[0]), UniqueFD(Pair[1])};
    Child Model([&] {
      UniqueFD Device = enterHost("10.99.0.1");
      if (!Device || !sendFD(Ends[1].get(), Device.get()))
        return 1;
      auto Opened = openGRPCListener("grpc://10.99.0.1:50051");
      if (!Opened)
        return 2;
      auto Server = serverOf(std::move(*Opened));
      for (;;) {
        auto Request = Server->next(Deadline::in(60s));
        if (!Request)
          return 3;
        (void)bool(Server->reply(Request->Features));
      }
    });
    UniqueFD FirstDevice = receiveFD(Ends[0].get());
    Child Asking([&] {
      UniqueFD Device = enterHost("10.99.0.2");
      if (!Device || !sendFD(Ends[1].get(), Device.get()))
        return 102;
      while (!State->IsUp)
        ::poll(nullptr, 0, 1);
      return Compiler();
    });
    UniqueFD SecondDevice = receiveFD(Ends[0].get());
    if (!FirstDevice || !SecondDevice)
      return 103;
    Child Wire([&] {
      State->IsUp = true;
      runWire(FirstDevice.get(), SecondDevice.get());
      return 0;
    });
    return Asking.wait();
  }

  static bool sendFD(int Socket, int FD);
  static UniqueFD receiveFD(int Socket);

  Shared *State = nullptr;
};

} // namespace

bool GRPCNetwork::sendFD(int Socket, int FD) {
  char Byte = 0;
  iovec Vector{&Byte, 1};
  alignas(cmsghdr) char Control[CMSG_SPACE(sizeof(int))] = {};
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  Message.msg_control = Control;
  Message.msg_controllen = sizeof(Control);
  cmsghdr *Header = CMSG_FIRSTHDR(&Message);
  Header->cmsg_level = SOL_SOCKET;
  Header->cmsg_type = SCM_RIGHTS;
  Header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(Header), &FD, sizeof(int));
  return ::sendmsg(Socket, &Message, 0) == 1;
}

UniqueFD GRPCNetwork::receiveFD(int Socket) {
  pollfd Ready{Socket, POLLIN, 0};
  if (::poll(&Ready, 1, 10'000) != 1)
    return {};
  char Byte;
  iovec Vector{&Byte, 1};
  alignas(cmsghdr) char Control[CMSG_SPACE(sizeof(int))] = {};
  msghdr Message{};
  Message.msg_iov = &Vector;
  Message.msg_iovlen = 1;
  Message.msg_control = Control;
  Message.msg_controllen = sizeof(Control);
  if (::recvmsg(Socket, &Message, MSG_CMSG_CLOEXEC) != 1)
    return {};
  const cmsghdr *Header = CMSG_FIRSTHDR(&Message);
  if (!Header)
    return {};
  int FD;
  std::memcpy(&FD, CMSG_DATA(Header), sizeof(int));
  return UniqueFD(FD);
}

static std::unique_ptr<MLModelRunner> runner(const std::string &Options) {
  RunnerFactory Factory;
  addGRPC(Factory);
  auto Made =
      Factory.create("grpc://10.99.0.1:50051?serdes=bitstream&" + Options);
  return Made ? std::move(*Made) : nullptr;
}

static Error ask(MLModelRunner &Runner, std::size_t Length) {
  std::vector<float> Values(Length, 0.5F);
  Runner.populateFeatures(std::pair{"x", Values});
  auto Reply = Runner.tryEvaluate<std::vector<float>>();
  if (!Reply)
    return Reply.takeError();
  return *Reply == Values ? Error::success()
                          : Error(ErrorCode::Malformed, "another answer");
}

TEST_F(GRPCNetwork, DelayAndLossCostTimeAndNothingElse) {
  for (const char *Call : {"stream", "unary"})
    EXPECT_EQ(run([&] {
                auto Runner =
                    runner(std::string("connect=20s&timeout=20s&call=") + Call);
                for (std::size_t Length : {1, 500, 50'000, 1, 500})
                  if (Error E = ask(*Runner, Length)) {
                    std::fprintf(stderr, "%s\n", E.str().c_str());
                    return 1;
                  }
                return 0;
              }),
              0)
        << Call;
}

TEST_F(GRPCNetwork, ACutWireIsATimeoutAndMayBeRepaired) {
  EXPECT_EQ(run([&] {
              auto Runner = runner("connect=20s&timeout=500ms");
              // If packets are lost, these requests may be late, too.
              Error E = Error(ErrorCode::Timeout, "");
              for (int I = 0; I < 5 && E; ++I)
                E = ask(*Runner, 1);
              if (E)
                return 1;
              State->IsCut = true;
              Clock::time_point Start = Clock::now();
              if (ask(*Runner, 1).code() != ErrorCode::Timeout)
                return 2;
              if (Clock::now() - Start > 500ms + Slack)
                return 3;
              State->IsCut = false;
              for (int I = 0; I < 20 && ask(*Runner, 1); ++I)
                if (I == 19)
                  return 4;
              return 0;
            }),
            0);
}
