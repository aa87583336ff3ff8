//===- FuzzSharedMemory.cpp - Shared memory that a peer modifies ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the model's end of a session in shared memory. The compiler writes
/// anything at any time: before a message is read, and between any two loads of
/// the reading code. The flag trace-loads in lib/CMakeLists.txt makes that code
/// call the fuzzer before each load, so an input always causes the same races.
///
/// Each input is a program, whose steps Compiler::step() runs.
///
//===----------------------------------------------------------------------===//

#include "Core/TensorForm.h"
#include "Fuzz.h"
#include "MLCompilerBridge/Advice.h"
#include "Server/ServerSession.h"
#include "Transport/Handshake.h"
#include "Transport/SharedMemoryChannel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::fuzz;
using posix::UniqueFD;

static constexpr std::size_t Page = 4096;
/// The offsets of docs/reference/wire-format.md.
static constexpr std::size_t VersionAt = 8, CapacityAt = 16, SequenceAt = 64,
                             SleepsAt = 128, LengthAt = 192, MessageAt = 200;
static constexpr std::size_t MaxMessage = 64 * Page;

//===----------------------------------------------------------------------===//
// Loads from shared memory
//===----------------------------------------------------------------------===//

namespace {

/// A mapping of the compiler's memory into the code under test.
struct Mapping {
  std::byte *Start;
  std::size_t Size;

  bool contains(const void *At, std::size_t Bytes) const {
    const auto *First = static_cast<const std::byte *>(At);
    return First >= Start && Bytes <= Size &&
           First - Start <= std::ptrdiff_t(Size - Bytes);
  }
};
std::vector<Mapping> Mappings;

/// Returns the mapping that contains the \p Bytes bytes at \p At, or null.
const Mapping *mappingOf(const void *At, std::size_t Bytes) {
  for (const Mapping &M : Mappings)
    if (M.contains(At, Bytes))
      return &M;
  return nullptr;
}

/// A write that the compiler makes just before a certain load from its memory.
struct Trap {
  unsigned LoadsLeft;
  std::size_t Offset;
  std::uint64_t Value;
  std::size_t NumBytes;
};
std::vector<Trap> Traps;
bool HasSprung = false;

/// While an object exists, no trap springs, because the loads are the fuzzer's
/// own.
class Disarmed {
public:
  Disarmed() { Kept.swap(Traps); }
  ~Disarmed() { Kept.swap(Traps); }

private:
  std::vector<Trap> Kept;
};

} // namespace

/// This function must not be instrumented, because another process can write to
/// memory that ASan has poisoned in this process.
[[clang::no_sanitize("address")]] static void spring(const Trap &T,
                                                     const Mapping &Into) {
  if (T.Offset > Into.Size || T.NumBytes > Into.Size - T.Offset)
    return;
  volatile std::byte *To = Into.Start + T.Offset;
  for (std::size_t I = 0; I < T.NumBytes; ++I)
    To[I] = static_cast<std::byte>(T.Value >> (8 * I));
  HasSprung = true;
}

static void beforeLoad(const void *At, std::size_t Bytes) {
  if (Traps.empty())
    return;
  const Mapping *Memory = mappingOf(At, Bytes);
  if (!Memory)
    return;
  std::erase_if(Traps, [&](Trap &T) {
    if (T.LoadsLeft-- != 0)
      return false;
    spring(T, *Memory);
    return true;
  });
}

// The compiler and the linker define these names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void __sanitizer_cov_load1(std::uint8_t *At) { beforeLoad(At, 1); }
void __sanitizer_cov_load2(std::uint16_t *At) { beforeLoad(At, 2); }
void __sanitizer_cov_load4(std::uint32_t *At) { beforeLoad(At, 4); }
void __sanitizer_cov_load8(std::uint64_t *At) { beforeLoad(At, 8); }
void __sanitizer_cov_load16(__int128 *At) { beforeLoad(At, 16); }

// These functions read memory without plain loads, so the linker wraps them.
void *__real___asan_memcpy(void *To, const void *From, std::size_t Bytes);
void *__wrap___asan_memcpy(void *To, const void *From, std::size_t Bytes) {
  beforeLoad(From, Bytes);
  return __real___asan_memcpy(To, From, Bytes);
}
int __real_memcmp(const void *A, const void *B, std::size_t Bytes);
int __wrap_memcmp(const void *A, const void *B, std::size_t Bytes) {
  beforeLoad(A, Bytes);
  beforeLoad(B, Bytes);
  return __real_memcmp(A, B, Bytes);
}
void *__real_memchr(const void *In, int Byte, std::size_t Bytes);
void *__wrap_memchr(const void *In, int Byte, std::size_t Bytes) {
  beforeLoad(In, Bytes);
  return __real_memchr(In, Byte, Bytes);
}

// Put an inaccessible page before and after each mapping of a file.
void *__real_mmap(void *At, std::size_t Size, int Protection, int Flags, int FD,
                  off_t Offset);
void *__wrap_mmap(void *At, std::size_t Size, int Protection, int Flags, int FD,
                  off_t Offset) {
  if (FD < 0 || At)
    return __real_mmap(At, Size, Protection, Flags, FD, Offset);
  const std::size_t Room = (Size + Page - 1) / Page * Page + 2 * Page;
  void *Guard = __real_mmap(nullptr, Room, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (Guard == MAP_FAILED)
    return Guard;
  auto *Start = static_cast<std::byte *>(Guard) + Page;
  void *Mapped =
      __real_mmap(Start, Size, Protection, Flags | MAP_FIXED, FD, Offset);
  if (Mapped == MAP_FAILED) {
    const int Why = errno;
    ::munmap(Guard, Room);
    errno = Why;
  } else {
    Mappings.push_back({Start, Size});
  }
  return Mapped;
}
int __real_munmap(void *At, std::size_t Size);
int __wrap_munmap(void *At, std::size_t Size) {
  auto Found = std::ranges::find(Mappings, At, &Mapping::Start);
  if (Found == Mappings.end())
    return __real_munmap(At, Size);
  require(Found->Size == Size, "mappings are unmapped as a whole");
  Mappings.erase(Found);
  return __real_munmap(static_cast<std::byte *>(At) - Page,
                       (Size + Page - 1) / Page * Page + 2 * Page);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

/// Reads all of \p Bytes, so that ASan checks each byte.
static unsigned touch(Span<const std::byte> Bytes) {
  unsigned Sum = 0;
  for (std::byte B : Bytes)
    Sum += std::to_integer<unsigned>(B);
  return Sum;
}
static volatile unsigned Sink;

namespace {

/// While an object exists, only a message and the padding after it may be read.
class ReadableOnly {
public:
  explicit ReadableOnly(Span<const std::byte> Message) {
    const Mapping *Memory = mappingOf(Message.data(), Message.size());
    require(Memory && Memory->contains(Message.data(),
                                       Message.size() + BaseSerDes::Padding),
            "a message and its padding lie in the memory");
    const std::byte *End = Message.end() + BaseSerDes::Padding;
    // Poison only four pages, because more would take too long and bugs are
    // unlikely to read further.
    Size = std::min<std::size_t>(
        std::size_t(Memory->Start + Memory->Size - End), 4 * Page);
    Rest = End;
    __asan_poison_memory_region(Rest, Size);
    Sink = touch({Message.data(), Message.size() + BaseSerDes::Padding});
  }
  ~ReadableOnly() { __asan_unpoison_memory_region(Rest, Size); }

private:
  const std::byte *Rest;
  std::size_t Size;
};

} // namespace

/// Converts \p Tensor, whose elements the compiler may change meanwhile.
/// Requires a valid value or an error.
static void requireConversions(const TensorView &Tensor) {
  const Advice Whole({&Tensor, 1});
  if (Expected<bool> Value = Whole.get<bool>(Tensor.Name)) {
    unsigned char Byte;
    std::memcpy(&Byte, &*Value, 1);
    require(Byte <= 1, "a bool is 0 or 1");
  }
  if (auto Values = Whole.get<std::vector<bool>>(Tensor.Name))
    require(Values->size() == Tensor.numElements(), "no bool is missing");
  if (auto Values = Whole.get<std::vector<std::int64_t>>(Tensor.Name)) {
    require(Values->size() == Tensor.numElements(), "no number is missing");
    if (Tensor.Type == ElementType::Bool)
      for (std::int64_t Value : *Values)
        require(Value == 0 || Value == 1, "a bool's number is 0 or 1");
  }
  if (auto Text = Whole.get<std::string>(Tensor.Name))
    require(Text->size() == Tensor.NumBytes, "a text is complete");
  if (auto Texts = Whole.get<std::vector<std::string>>(Tensor.Name))
    require(Texts->size() == Tensor.numElements(), "no text is missing");
}

/// Requires that \p Views can be used, whatever \p Message contains by now.
static void requireSound(Span<const TensorView> Views,
                         Span<const std::byte> Message) {
  for (const TensorView &View : Views) {
    require(!View.Name.empty(), "tensors have names");
    const std::string Wrong = detail::contradiction(View);
    require(Wrong.empty(), "tensors are consistent", Wrong);
    const auto *Data = static_cast<const std::byte *>(View.Data);
    if (mappingOf(Data, View.NumBytes) && View.NumBytes != 0)
      require(Data >= Message.begin() && Data + View.NumBytes <= Message.end(),
              "tensors lie in their message");
    Sink = touch(View.bytes());
    requireConversions(View);
  }
}

//===----------------------------------------------------------------------===//
// The two sides
//===----------------------------------------------------------------------===//

namespace {

/// The input, which is read from front to back. After its end, all bytes are 0.
class Program {
public:
  explicit Program(std::string_view Bytes) : Rest(Bytes) {}

  bool isOver() const { return Rest.empty(); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }
  std::uint64_t number(std::size_t NumBytes) {
    std::uint64_t Value = 0;
    const std::string_view Taken = bytes(NumBytes);
    std::memcpy(&Value, Taken.data(), Taken.size());
    return Value;
  }
  std::string_view bytes(std::size_t NumBytes) {
    const std::string_view Taken = Rest.substr(0, NumBytes);
    Rest.remove_prefix(Taken.size());
    return Taken;
  }
  template <typename T, std::size_t N> const T &oneOf(const T (&Choices)[N]) {
    return Choices[byte() % N];
  }

private:
  std::string_view Rest;
};

/// A memory file that the compiler has made and mapped.
class Memory {
public:
  Memory(UniqueFD Made, std::size_t Size)
      : FD(std::move(Made)), Size(std::min(Size, 2 * MaxMessage)) {
    void *Mapped = __real_mmap(nullptr, this->Size + 1, PROT_READ | PROT_WRITE,
                               MAP_SHARED, FD.get(), 0);
    // Some descriptors cannot be mapped.
    if (Mapped == MAP_FAILED)
      this->Size = 0;
    else
      Start = static_cast<std::byte *>(Mapped);
  }
  Memory(Memory &&Other) noexcept
      : FD(std::move(Other.FD)), Start(std::exchange(Other.Start, nullptr)),
        Size(Other.Size) {}
  Memory &operator=(Memory &&Other) noexcept {
    std::swap(FD, Other.FD);
    std::swap(Start, Other.Start);
    std::swap(Size, Other.Size);
    return *this;
  }
  ~Memory() {
    if (Start)
      __real_munmap(Start, Size + 1);
  }

  int descriptor() const { return FD.get(); }
  UniqueFD duplicate() const {
    return UniqueFD(::fcntl(FD.get(), F_DUPFD_CLOEXEC, 0));
  }
  std::size_t size() const { return Size; }
  void write(std::size_t Offset, std::string_view Bytes) {
    if (Offset < Size)
      std::memcpy(Start + Offset, Bytes.data(),
                  std::min(Bytes.size(), Size - Offset));
  }
  template <typename T> void write(std::size_t Offset, T Value) {
    write(Offset, {reinterpret_cast<const char *>(&Value), sizeof(T)});
  }
  std::string_view read(std::size_t Offset, std::size_t NumBytes) const {
    if (Offset > Size || NumBytes > Size - Offset)
      return {};
    return {reinterpret_cast<const char *>(Start) + Offset, NumBytes};
  }

private:
  UniqueFD FD;
  std::byte *Start = nullptr;
  std::size_t Size;
};

} // namespace

/// Makes a valid region, a region with wrong properties, or a file that is no
/// region.
static Memory makeMemory(Program &Next) {
  static constexpr std::size_t Sizes[] = {Page,
                                          2 * Page,
                                          3 * Page,
                                          16 * Page,
                                          2 * Page - 1,
                                          2 * Page + 1,
                                          LengthAt,
                                          255,
                                          MessageAt + 8,
                                          0,
                                          1,
                                          std::size_t(1) << 40};
  static constexpr int Seals[] = {
      F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, F_SEAL_GROW,
      F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE};
  // These numbers are added to the capacity that fits the size.
  static constexpr int Off[] = {0, 0, 0, -1, 1, 8, 64, 192};
  const std::uint8_t Kind = Next.byte() % 8;
  if (Kind == 0)
    return {UniqueFD(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 0};
  const std::size_t Size = Next.oneOf(Sizes);
  UniqueFD Made(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  require(::ftruncate(Made.get(), static_cast<off_t>(Size)) == 0,
          "ftruncate succeeds", std::strerror(errno));
  const int Sealed = Kind <= 2 ? Next.oneOf(Seals) : Seals[1];
  Memory Result(std::move(Made), Size);
  require(::fcntl(Result.descriptor(), F_ADD_SEALS, Sealed) == 0,
          "F_ADD_SEALS succeeds", std::strerror(errno));
  const std::uint64_t Room =
      Size < MessageAt + BaseSerDes::Padding
          ? 0
          : Size / Page * Page - MessageAt - BaseSerDes::Padding;
  Result.write(0, std::string_view("MLBridge"));
  Result.write<std::uint32_t>(VersionAt, 1);
  Result.write<std::uint32_t>(VersionAt + 4, LengthAt);
  Result.write<std::uint64_t>(
      CapacityAt, Room + std::uint64_t(Kind <= 4 ? Next.oneOf(Off) : 0));
  return Result;
}

namespace {

/// Writes to its regions as the input demands, and lets the model's end read
/// them.
class Compiler {
public:
  explicit Compiler(Program &Next)
      : Next(Next), Requests(makeMemory(Next)), Replies(makeMemory(Next)) {
    int Ends[2];
    require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Ends) == 0,
            "socketpair succeeds", std::strerror(errno));
    Socket = UniqueFD(Ends[0]);
    ModelsSocket = UniqueFD(Ends[1]);
  }

  /// Runs steps until the input or the session ends.
  void run() {
    maybeSetTraps();
    if (!connect())
      return;
    constexpr int MaxSteps = 24;
    for (int I = 0; I < MaxSteps && !Next.isOver() && step(); ++I)
      ;
    // The memory of a request stays readable while someone holds it.
    for (const Kept &K : KeptData)
      Sink = touch(K.Data);
  }

private:
  bool connect();
  bool step();
  void maybeSetTraps();
  void writeMessage();
  void sendMemory();
  bool ask();
  bool decode(std::string_view Sent);
  bool reply(Span<const TensorView> Tensors);

  static std::uint64_t special(Program &Next) {
    static constexpr std::uint64_t Values[] = {0,
                                               1,
                                               8,
                                               LengthAt,
                                               Page,
                                               2 * Page,
                                               MaxMessage,
                                               MaxMessage + 1,
                                               2 * Page - MessageAt - 64,
                                               2 * Page - MessageAt - 63,
                                               2 * Page - MessageAt,
                                               ~std::uint64_t(0),
                                               ~std::uint64_t(0) - 1,
                                               std::uint64_t(1) << 63,
                                               0x0202020202020202,
                                               0xffffff00ffffff00,
                                               0x0a0a0a0a0a0a0a0a};
    return Next.oneOf(Values);
  }
  std::size_t place() {
    static constexpr std::size_t Places[] = {
        VersionAt, VersionAt + 4, CapacityAt, SequenceAt, SleepsAt, LengthAt};
    const std::uint8_t Where = Next.byte();
    return Where < 64 ? Places[Where % std::size(Places)]
                      : MessageAt + std::size_t(Where - 64) * 2;
  }

  Program &Next;
  Memory Requests, Replies;
  /// The old region of requests. The next request lies in a larger region, but
  /// the old one still announces it.
  std::optional<Memory> Outgrown;
  UniqueFD Socket, ModelsSocket;
  std::uint32_t Asked = 0;

  std::unique_ptr<ServerSession> Session;
  SerDes::Kind Format = SerDes::Kind::Bitstream;
  /// True as long as only the model's end has written to the region of replies.
  bool RepliesAreTheirs = true;
  std::vector<TensorView> Last;
  ModelServer::Request::LayoutId LastLayout;
  struct Kept {
    Span<const std::byte> Data;
    std::shared_ptr<const void> Memory;
  };
  std::vector<Kept> KeptData;
};

} // namespace

/// Returns true if the model's end accepts the regions. The model's end must
/// then be able to use all of their bytes.
bool Compiler::connect() {
  auto Open = [](const Memory &M) -> std::optional<SharedRegion> {
    Expected<SharedRegion> Region = SharedRegion::open(M.duplicate(), "peer");
    if (!Region) {
      require(Region.code() == ErrorCode::Malformed ||
                  Region.code() == ErrorCode::System,
              "errors are Malformed or System", Region.message());
      return std::nullopt;
    }
    const int Seals = ::fcntl(Region->descriptor(), F_GET_SEALS);
    require(Seals >= 0 && (Seals & F_SEAL_SHRINK),
            "an accepted region cannot shrink");
    require(mappingOf(Region->message() - MessageAt,
                      MessageAt + Region->capacity() + BaseSerDes::Padding),
            "an accepted region has its claimed capacity");
    return std::move(*Region);
  };
  std::optional<SharedRegion> In = Open(Requests), Out = Open(Replies);
  Expected<posix::Pipe> Doorbell = posix::makePipe();
  if (!In || !Out || !Doorbell)
    return false;
  Asked = In->sequence();
  SharedMemoryEnds Ends{std::move(*In), std::move(*Out), std::move(*Doorbell),
                        std::move(ModelsSocket), UniqueFD()};
  if (Next.byte() % 4 == 0)
    Format = SerDes::Kind::JSON;
  Session = std::make_unique<ServerSession>(
      ServerSession::Identity(),
      std::make_unique<SharedMemoryChannel>(std::move(Ends), "peer",
                                            MaxMessage),
      SerDes::create(Format), std::chrono::seconds(1));
  return true;
}

/// Runs one step. Returns false when the session is over.
bool Compiler::step() {
  switch (Next.byte() % 8) {
  case 0: { // Write any bytes anywhere.
    const std::size_t Offset = Next.number(2);
    Requests.write(Offset, Next.bytes(Next.byte()));
    return true;
  }
  case 1: // Write a special value to a special place.
    Requests.write(place(), special(Next));
    return true;
  case 2:
    RepliesAreTheirs = false;
    Replies.write(place(), special(Next));
    return true;
  case 3:
    sendMemory();
    return true;
  case 4: // Use a wrong request number.
    Asked = static_cast<std::uint32_t>(Next.number(1));
    return true;
  case 5:
    maybeSetTraps();
    return true;
  default:
    writeMessage();
    return ask();
  }
}

void Compiler::maybeSetTraps() {
  constexpr std::size_t Most = 3;
  for (std::size_t I = Next.byte() % (Most + 1); I != 0; --I) {
    unsigned Loads = Next.byte();
    // Most traps wait for few loads, because the first loads matter most.
    if (Loads < 192)
      Loads %= 24;
    const std::size_t Offset = place();
    Traps.push_back({Loads, Offset, special(Next), Next.byte() % 2 ? 8u : 1u});
  }
}

void Compiler::writeMessage() {
  // Sometimes repeat the last message.
  if (Next.byte() % 4 == 0)
    return;
  const std::string_view Message = Next.bytes(Next.number(2) % 2048);
  Requests.write(MessageAt, Message);
  Requests.write<std::uint64_t>(LengthAt, Message.size());
}

/// Sends zero, one or two descriptors of a larger region.
void Compiler::sendMemory() {
  Memory Larger = makeMemory(Next);
  const std::size_t Count = Next.byte() % 8;
  const int Descriptors[] = {Larger.descriptor(), Larger.descriptor()};
  const std::string_view Text = Next.byte() % 4 ? R"({"mlbridge":2})" : "x";
  (void)bool(sendPacket(Socket.get(), Text,
                        {Descriptors, Count == 0   ? 0u
                                      : Count == 1 ? 2u
                                                   : 1u}));
  if (Outgrown || Next.byte() % 4 == 0)
    return;
  Larger.write<std::uint32_t>(SequenceAt, Asked + 1);
  Requests.write(LengthAt, SharedRegion::Moved);
  Outgrown = std::exchange(Requests, std::move(Larger));
}

/// Announces the message in the region as a request. Returns false when the
/// session is over.
bool Compiler::ask() {
  ++Asked;
  HasSprung = false;
  if (Outgrown) {
    Requests.write(SequenceAt, Asked);
    Outgrown->write(SequenceAt, Asked);
  } else {
    Requests.write(SequenceAt, Asked);
  }
  Expected<ServerChannel::Progress> Progress = Session->channel().advance();
  Outgrown.reset();
  if (!Progress) {
    require(Progress.code() == ErrorCode::Malformed ||
                Progress.code() == ErrorCode::System,
            "errors are Malformed or System", Progress.message());
    return false;
  }
  if (*Progress == ServerChannel::Progress::Incomplete)
    return true;
  const Span<const std::byte> Message = Session->channel().message();
  require(Message.size() <= MaxMessage, "the limit holds");
  const std::string Sent(
      Requests.read(MessageAt, HasSprung ? 0 : Message.size()));
  return decode(Sent);
}

/// Decodes and echoes the request, as a server does. \p Sent is the message, or
/// is empty if the message changed meanwhile.
bool Compiler::decode(std::string_view Sent) {
  const Span<const std::byte> Message = Session->channel().message();
  const bool HadSprung = HasSprung;
  std::optional<ReadableOnly> Readable(Message);
  Expected<ModelServer::Request> Request = Session->decode();
  Readable.reset();
  if (!Request) {
    require(!Request.message().empty(), "errors have a message");
    return false;
  }
  requireSound(Request->Features, Message);
  if (!HadSprung && !HasSprung) {
    Disarmed Here;
    test::Message Copy(Sent);
    std::unique_ptr<BaseSerDes> Fresh = SerDes::create(Format);
    Result Again = Fresh->deserializeRequest(Copy.bytes());
    require(bool(Again), "a private copy can be read", Again.message());
    const std::string Changed = test::difference(*Again, Request->Features);
    require(Changed.empty(), "a private copy has the same tensors", Changed);
  }
  if (!Last.empty() && Request->Layout.Memory == LastLayout.Memory &&
      Request->Layout.Schema == LastLayout.Schema)
    requireSameViews(Last, Request->Features, /*InMessage=*/false);
  Last.assign(Request->Features.begin(), Request->Features.end());
  LastLayout = Request->Layout;
  for (const TensorView &View : Request->Features)
    KeptData.push_back({View.bytes(), Request->Memory});
  // After the decoding, the compiler may still change the message.
  if (Next.byte() % 2)
    Requests.write(MessageAt, std::string(Message.size(), char(Next.byte())));
  if (Next.byte() % 2)
    maybeSetTraps();
  requireSound(Request->Features, Message);
  return reply(Request->Features);
}

/// Lets the model's end reply. Returns false when the session is over.
bool Compiler::reply(Span<const TensorView> Tensors) {
  if (Session->reply(Tensors))
    return false;
  std::uint64_t Length = 0;
  std::memcpy(&Length, Replies.read(LengthAt, 8).data(), sizeof(Length));
  if (!RepliesAreTheirs || HasSprung)
    return true;
  // The reply has moved to another region.
  if (Length == SharedRegion::Moved) {
    RepliesAreTheirs = false;
    return true;
  }
  Disarmed Here;
  test::Message Copy(Replies.read(MessageAt, Length));
  std::unique_ptr<BaseSerDes> Reader = SerDes::create(Format);
  Result Read = Reader->deserializeRequest(Copy.bytes());
  require(bool(Read), "a reply can be read", Read.message());
  const std::string Changed = test::difference(Tensors, *Read);
  require(Changed.empty(), "a reply has the model's tensors", Changed);
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *Data,
                                      std::size_t Size) {
  Program Next({reinterpret_cast<const char *>(Data), Size});
  Compiler(Next).run();
  Traps.clear();
  require(Mappings.empty(), "no region stays mapped");
  return 0;
}
