//===- Posix.cpp - Wrappers of system calls -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Posix.h"

#include "Support/PrintableText.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <vector>

// The headers of Debian 12 lack this option. If the kernel lacks it too,
// getsockopt(2) fails, and the code below uses pidfd_open(2).
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

using namespace MLBridge;
using namespace MLBridge::posix;

UniqueFD::~UniqueFD() {
  if (FD >= 0)
    ::close(FD);
}

int UniqueFD::moveAboveStandard(int FD) {
  const int Moved = ::fcntl(FD, F_DUPFD_CLOEXEC, 3);
  const int Why = errno;
  ::close(FD);
  errno = Why;
  return Moved;
}

Expected<Pipe> posix::makePipe() {
  int Ends[2];
  if (::pipe2(Ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error::fromErrno(errno, "cannot create a pipe");
  Pipe Made{UniqueFD(Ends[0]), UniqueFD(Ends[1])};
  if (!Made.Read || !Made.Write)
    return Error::fromErrno(errno, "cannot create a pipe");
  return Made;
}

Expected<Pipe> posix::makeLargePipe() {
  Expected<Pipe> Made = makePipe();
  if (Made)
    enlargePipe(Made->Read.get());
  return Made;
}

Error posix::letOthersOpen(int End) {
  if (::fchmod(End, 0666) != 0)
    return Error::fromErrno(errno, "cannot let another user open a pipe");
  return Error::success();
}

static Expected<UniqueFD> openAnew(const UniqueFD &Pipe, int Mode,
                                   const std::string &What) {
  // Use /proc/thread-self, because /proc/self stands for the main thread. The
  // main thread may have ended, or have another descriptor table (unshare).
  std::string Path = "/proc/thread-self/fd/" + std::to_string(Pipe.get());
  UniqueFD Own(::open(Path.c_str(), Mode | O_NONBLOCK | O_CLOEXEC));
  if (Own)
    return Own;
  const int Why = errno;
  const char *Hint = Why == ENOENT ? ", which needs /proc to be mounted"
                     : Why == EMFILE || Why == ENFILE ? " (ulimit -n)"
                                                      : "";
  return Error::fromErrno(Why, "cannot reopen " + What + Hint);
}

Expected<UniqueFD> posix::openOwnPipeEnd(const UniqueFD &Received, int Mode,
                                         const std::string &What) {
  struct stat Info{};
  const int Flags = ::fcntl(Received.get(), F_GETFL);
  if (::fstat(Received.get(), &Info) != 0 || Flags < 0)
    return Error::fromErrno(errno, "cannot inspect " + What);
  // Check the kind of file first, because opening another kind may have side
  // effects.
  const int Given = Flags & O_ACCMODE;
  if (!S_ISFIFO(Info.st_mode) || (Given != Mode && Given != O_RDWR))
    return Error(ErrorCode::Malformed,
                 What + ": expected the end of a pipe to " +
                     (Mode == O_RDONLY ? "read from" : "write to") +
                     ", found another descriptor");
  return openAnew(Received, Mode, What);
}

Expected<UniqueFD> posix::openOtherPipeEnd(const UniqueFD &Write,
                                           const std::string &What) {
  return openAnew(Write, O_RDONLY, What);
}

void posix::enlargePipe(int FD) {
  constexpr int OneMiB = 1 << 20;
  (void)::fcntl(FD, F_SETPIPE_SZ, OneMiB);
}

UniqueFD posix::processOfPeer(int Socket, pid_t &Pid) {
  Pid = 0;
  ucred Credentials{};
  socklen_t Size = sizeof(Credentials);
  if (::getsockopt(Socket, SOL_SOCKET, SO_PEERCRED, &Credentials, &Size) == 0)
    Pid = Credentials.pid;

  // Prefer SO_PEERPIDFD to pidfd_open(Pid), which could return another process
  // that has reused the ID.
  int FD = -1;
  Size = sizeof(FD);
  if (::getsockopt(Socket, SOL_SOCKET, SO_PEERPIDFD, &FD, &Size) == 0)
    return UniqueFD(FD);
  if (Pid > 0)
    return UniqueFD(static_cast<int>(::syscall(SYS_pidfd_open, Pid, 0)));
  return UniqueFD();
}

bool posix::peerHasEnded(int Socket) {
  pid_t Pid;
  UniqueFD Process = processOfPeer(Socket, Pid);
  if (Process) {
    pollfd FD{Process.get(), POLLIN, 0};
    return ::poll(&FD, 1, 0) > 0 && FD.revents != 0;
  }
  // A process that has been reaped has no descriptor, so check whether the ID
  // of the process is unused. Another process may have reused the ID, so this
  // check may return false for an ended process.
  return Pid > 0 && ::kill(Pid, 0) != 0 && errno == ESRCH;
}

static bool isTrusted(uid_t User) { return User == ::geteuid() || User == 0; }

bool posix::isTrustedPeer(int Socket) {
  ucred Credentials{};
  socklen_t Size = sizeof(Credentials);
  return ::getsockopt(Socket, SOL_SOCKET, SO_PEERCRED, &Credentials, &Size) ==
             0 &&
         isTrusted(Credentials.uid);
}

bool posix::isTrustedFile(int FD) {
  struct stat Info{};
  return ::fstat(FD, &Info) == 0 && isTrusted(Info.st_uid);
}

std::string posix::parentOf(const std::string &Path) {
  std::size_t Slash = Path.rfind('/');
  return Slash == std::string::npos ? "." : Path.substr(0, Slash + 1);
}

Expected<SocketAddress> SocketAddress::create(const std::string &Path) {
  SocketAddress Address;
  Address.Path = Path;
  if (Path.size() < sizeof(sockaddr_un::sun_path))
    return Address;

  // If there is no slash, Base is the whole path, because npos + 1 is 0.
  std::string Base = Path.substr(Path.rfind('/') + 1);
  Address.Directory = UniqueFD(
      ::open(parentOf(Path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!Address.Directory)
    return Error::fromErrno(errno,
                            "cannot open the directory of " + printable(Path));
  Address.Path =
      "/proc/self/fd/" + std::to_string(Address.Directory.get()) + "/" + Base;
  if (Address.Path.size() >= sizeof(sockaddr_un::sun_path))
    return Error(ErrorCode::InvalidArgument, "the file name in " +
                                                 printable(Path) +
                                                 " is too long for a socket");
  return Address;
}

static sockaddr_un toSockaddr(const std::string &Path) {
  sockaddr_un Address{};
  Address.sun_family = AF_UNIX;
  std::memcpy(Address.sun_path, Path.data(), Path.size());
  return Address;
}

int SocketAddress::bind(int Socket) const {
  sockaddr_un Address = toSockaddr(Path);
  return ::bind(Socket, reinterpret_cast<sockaddr *>(&Address),
                sizeof(Address));
}

int SocketAddress::connect(int Socket) const {
  sockaddr_un Address = toSockaddr(Path);
  return ::connect(Socket, reinterpret_cast<sockaddr *>(&Address),
                   sizeof(Address));
}

Expected<FileKind> posix::fileKind(const std::string &Path) {
  struct stat Info{};
  if (::stat(Path.c_str(), &Info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return FileKind::Missing;
    return Error::fromErrno(errno, "cannot inspect " + printable(Path));
  }
  if (S_ISFIFO(Info.st_mode))
    return FileKind::Fifo;
  return S_ISSOCK(Info.st_mode) ? FileKind::Socket : FileKind::Other;
}

static bool isOfKind(const std::string &Path, FileKind Wanted) {
  Expected<FileKind> Kind = fileKind(Path);
  return Kind && *Kind == Wanted;
}

bool posix::isSocket(const std::string &Path) {
  return isOfKind(Path, FileKind::Socket);
}

bool posix::isFifo(const std::string &Path) {
  return isOfKind(Path, FileKind::Fifo);
}

std::string posix::describeFile(const std::string &Path) {
  struct stat Info{};
  if (::stat(Path.c_str(), &Info) != 0)
    return "missing";
  if (S_ISFIFO(Info.st_mode))
    return "a FIFO";
  if (S_ISSOCK(Info.st_mode))
    return "a socket";
  if (S_ISREG(Info.st_mode))
    return "a regular file";
  return S_ISDIR(Info.st_mode) ? "a directory" : "a special file";
}

static FileIdentity identityOf(int StatResult, const struct stat &Info) {
  return StatResult == 0 ? FileIdentity{Info.st_dev, Info.st_ino, ::getpid()}
                         : FileIdentity();
}

FileIdentity FileIdentity::ofPath(const std::string &Path) {
  struct stat Info{};
  return identityOf(::lstat(Path.c_str(), &Info), Info);
}

FileIdentity FileIdentity::ofDescriptor(int FD) {
  struct stat Info{};
  return identityOf(::fstat(FD, &Info), Info);
}

std::string posix::absolutePath(const std::string &Path) {
  std::error_code Failed;
  const std::filesystem::path Absolute =
      std::filesystem::absolute(Path, Failed);
  return Failed ? Path : Absolute.string();
}

void posix::unlinkIfSame(const std::string &Path,
                         const FileIdentity &Identity) {
  if (Identity.Process == ::getpid() &&
      FileIdentity::ofPath(Path).isSameAs(Identity))
    ::unlink(Path.c_str());
}

std::size_t posix::countFreeDescriptors(std::size_t AtMost) {
  // Open one descriptor. The kernel assigns the lowest free number, so there is
  // no other free number below it.
  const UniqueFD First(::open("/", O_PATH | O_CLOEXEC));
  if (!First)
    return 0;
  std::size_t Count = 1;
  // Close each further descriptor in the same iteration, because other threads
  // may need it.
  for (int Last = First.get(); Count < AtMost; ++Count) {
    const UniqueFD Next(::fcntl(First.get(), F_DUPFD_CLOEXEC, Last + 1));
    if (!Next)
      break;
    Last = Next.get();
  }
  return Count;
}

std::string posix::formatDuration(Duration D) {
  using namespace std::chrono;
  if (D % seconds(1) == Duration::zero())
    return std::to_string(duration_cast<seconds>(D).count()) + " s";
  if (D >= milliseconds(1))
    return std::to_string(duration_cast<milliseconds>(D).count()) + " ms";
  return std::to_string(duration_cast<microseconds>(D).count()) + " us";
}
