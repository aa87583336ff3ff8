//===- SharedRegion.cpp - One direction of a session ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/SharedRegion.h"

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

static constexpr char Magic[8] = {'M', 'L', 'B', 'r', 'i', 'd', 'g', 'e'};
static constexpr std::uint32_t Version = 1;
static constexpr int Seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Returns the minimal size in bytes of a region for messages of \p Capacity
/// bytes.
static std::size_t usedSizeFor(std::size_t HeaderSize, std::size_t Capacity) {
  return HeaderSize + MessagePlacement::Offset + Capacity +
         MessagePlacement::Padding;
}

/// Returns usedSizeFor(), rounded up to whole pages.
static std::size_t sizeFor(std::size_t HeaderSize, std::size_t Capacity) {
  constexpr std::size_t Page = 4096;
  return (usedSizeFor(HeaderSize, Capacity) + Page - 1) / Page * Page;
}

Expected<std::shared_ptr<SharedRegion::Mapping>>
SharedRegion::Mapping::make(UniqueFD Memory, std::size_t Size) {
  void *Address = ::mmap(nullptr, Size, PROT_READ | PROT_WRITE, MAP_SHARED,
                         Memory.get(), 0);
  if (Address == MAP_FAILED)
    return Error::fromErrno(errno, "cannot map shared memory of " +
                                       std::to_string(Size) + " bytes");
  auto Made = std::make_shared<Mapping>();
  Made->Memory = std::move(Memory);
  Made->Address = Address;
  Made->Size = Size;
  return Made;
}

SharedRegion::Mapping::~Mapping() {
  if (Address)
    ::munmap(Address, Size);
}

/// Checks RLIMIT_FSIZE, which also applies to a memfd. Exceeding this limit
/// would kill the process with SIGXFSZ.
static Error checkFileSizeLimit(std::size_t Size) {
  rlimit Limit{};
  if (::getrlimit(RLIMIT_FSIZE, &Limit) != 0 || Size <= Limit.rlim_cur)
    return Error::success();
  return {ErrorCode::System,
          "cannot create shared memory of " + std::to_string(Size) +
              " bytes: the limit on the size of files, which applies here too, "
              "is " +
              std::to_string(Limit.rlim_cur) +
              " (ulimit -f); raise it, or use pipe: instead of shm:"};
}

Expected<SharedRegion> SharedRegion::create(std::size_t Capacity) {
  const std::size_t HeaderSize = offsetof(Words, Length);
  const std::size_t Size = sizeFor(HeaderSize, Capacity);
  if (Error E = checkFileSizeLimit(Size))
    return E;
  UniqueFD Memory(::memfd_create("mlbridge", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!Memory || ::ftruncate(Memory.get(), static_cast<off_t>(Size)) != 0 ||
      ::fcntl(Memory.get(), F_ADD_SEALS, Seals) != 0)
    return Error::fromErrno(errno, "cannot create shared memory of " +
                                       std::to_string(Size) + " bytes");
  Expected<std::shared_ptr<Mapping>> Held =
      Mapping::make(std::move(Memory), Size);
  if (!Held)
    return Held.takeError();
  auto *W = new ((*Held)->Address) Words{};
  std::memcpy(W->Magic, Magic, sizeof(Magic));
  W->WriterCore = ~std::uint32_t(0);
  W->Version = Version;
  W->HeaderSize = static_cast<std::uint32_t>(HeaderSize);
  W->Capacity = Capacity;
  return SharedRegion(std::move(*Held), Capacity);
}

/// Reads \p Word exactly once. The peer could change it between a check and a
/// second read.
template <typename T> static T readOnce(const T &Word) {
  return const_cast<const volatile T &>(Word);
}

Expected<SharedRegion> SharedRegion::open(UniqueFD Memory,
                                          const std::string &Peer) {
  auto Wrong = [&](const std::string &What) {
    return Error(ErrorCode::Malformed,
                 Peer + " sent shared memory that " + What);
  };
  struct stat Info{};
  if (::fstat(Memory.get(), &Info) != 0)
    return Error::fromErrno(errno,
                            "cannot inspect the shared memory of " + Peer);
  const auto Size = static_cast<std::size_t>(Info.st_size);
  const int Found = ::fcntl(Memory.get(), F_GET_SEALS);
  if (Found < 0 || !(Found & F_SEAL_SHRINK))
    return Wrong("can still shrink: expected a sealed memfd");
  if (Size < sizeof(Words))
    return Wrong("has " + std::to_string(Size) + " bytes, expected at least " +
                 std::to_string(sizeof(Words)));
  Expected<std::shared_ptr<Mapping>> Held =
      Mapping::make(std::move(Memory), Size);
  if (!Held)
    return Held.takeError();
  const auto &W = *static_cast<const Words *>((*Held)->Address);
  const std::uint32_t FoundVersion = readOnce(W.Version);
  const std::uint32_t HeaderSize = readOnce(W.HeaderSize);
  const std::uint64_t Capacity = readOnce(W.Capacity);
  if (std::memcmp(W.Magic, Magic, sizeof(Magic)) != 0)
    return Wrong("does not begin with 'MLBridge'");
  if (FoundVersion != Version)
    return Wrong("is of version " + std::to_string(FoundVersion) +
                 ", expected " + std::to_string(Version));
  if (HeaderSize != offsetof(Words, Length))
    return Wrong("has a header of " + std::to_string(HeaderSize) +
                 " bytes, expected " + std::to_string(offsetof(Words, Length)));
  if (Capacity > Size || usedSizeFor(HeaderSize, Capacity) > Size)
    return Wrong("has " + std::to_string(Size) +
                 " bytes, but claims room for messages of " +
                 std::to_string(Capacity) + ": it needs " +
                 std::to_string(usedSizeFor(HeaderSize, 0)) + " bytes more");
  return SharedRegion(std::move(*Held), Capacity);
}

std::byte *SharedRegion::message() const {
  return reinterpret_cast<std::byte *>(&words().Length) +
         MessagePlacement::Offset;
}

std::uint64_t SharedRegion::length() const {
  return std::atomic_ref(words().Length).load(std::memory_order_relaxed);
}

bool SharedRegion::post(std::uint64_t Length, std::uint32_t Sequence) {
  Words &W = words();
  // Write the length only if it has changed, which is rare. If this cache line
  // is not written, it stays in the reader's cache.
  if (std::atomic_ref Announced(W.Length);
      Announced.load(std::memory_order_relaxed) != Length)
    Announced.store(Length, std::memory_order_relaxed);
  W.WriterCore.store(static_cast<std::uint32_t>(::sched_getcpu()),
                     std::memory_order_relaxed);
  // Use sequential consistency. The reader stores Sleeps and then loads
  // Sequence. The writer stores Sequence and then loads Sleeps. Therefore, at
  // least one side sees the other side's store.
  W.Sequence.store(Sequence, std::memory_order_seq_cst);
  return W.Sleeps.load(std::memory_order_seq_cst) != 0;
}

void SharedRegion::wake() {
  ::syscall(SYS_futex, &words().Sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr,
            0);
}

void SharedRegion::sleep(std::uint32_t Last, Duration AtMost) const {
  using namespace std::chrono;
  const auto Whole = duration_cast<seconds>(AtMost);
  timespec Time{};
  Time.tv_sec = static_cast<time_t>(Whole.count());
  Time.tv_nsec =
      static_cast<long>(duration_cast<nanoseconds>(AtMost - Whole).count());
  ::syscall(SYS_futex, &words().Sequence, FUTEX_WAIT, Last, &Time, nullptr, 0);
}

bool SharedRegion::isWrittenOnThisCore() const {
  return words().WriterCore.load(std::memory_order_relaxed) ==
         static_cast<std::uint32_t>(::sched_getcpu());
}
