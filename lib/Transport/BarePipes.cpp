//===- BarePipes.cpp - NAME.in and NAME.out, for foreign peers ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/BarePipes.h"

#include "Support/PrintableText.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

static UniqueFD openFifo(const std::string &Path, int Mode) {
  UniqueFD FD(::open(Path.c_str(), Mode | O_NONBLOCK | O_CLOEXEC));
  if (FD)
    posix::enlargePipe(FD.get());
  return FD;
}

static Error untrusted(const std::string &Path) {
  return {ErrorCode::System,
          printable(Path) +
              " belongs to another user; remove it or choose another name"};
}

Expected<std::optional<PipeEnds>> BarePipeClient::tryOpen() {
  std::string In = Name + ".in", Out = Name + ".out";
  for (const std::string &Path : {In, Out}) {
    Expected<posix::FileKind> Kind = posix::fileKind(Path);
    if (!Kind)
      return Kind.takeError();
    if (*Kind == posix::FileKind::Missing) {
      Read.reset();
      return std::optional<PipeEnds>();
    }
    if (*Kind != posix::FileKind::Fifo)
      return Error(ErrorCode::System, printable(Path) +
                                          ": expected a FIFO, found " +
                                          posix::describeFile(Path));
  }
  // Close a FIFO that the model side has replaced since the last attempt.
  if (Read && !posix::FileIdentity::ofDescriptor(Read.get())
                   .isSameAs(posix::FileIdentity::ofPath(In)))
    Read.reset();
  if (!Read) {
    Read = openFifo(In, O_RDONLY);
    if (!Read && errno == ENOENT) // The FIFO was removed after the check.
      return std::optional<PipeEnds>();
    if (!Read)
      return Error::fromErrno(errno, "cannot open " + printable(In));
    if (!posix::isTrustedFile(Read.get()))
      return untrusted(In);
    // Lock the FIFO, because another compiler with this library may use it.
    // Compilers with other implementations do not lock it.
    if (::flock(Read.get(), LOCK_EX | LOCK_NB) != 0) {
      Read.reset();
      return std::optional<PipeEnds>();
    }
  }
  UniqueFD Write = openFifo(Out, O_WRONLY);
  if (!Write) {
    // The model side has not opened the FIFO yet, or has removed it.
    if (errno == ENXIO || errno == ENOENT)
      return std::optional<PipeEnds>();
    return Error::fromErrno(errno, "cannot open " + printable(Out));
  }
  if (!posix::isTrustedFile(Write.get()))
    return untrusted(Out);
  // Try again if the model side has replaced the pair between the two calls of
  // open(2).
  if (!posix::FileIdentity::ofDescriptor(Read.get())
           .isSameAs(posix::FileIdentity::ofPath(In)))
    return std::optional<PipeEnds>();
  return std::optional<PipeEnds>(PipeEnds{std::move(Read), std::move(Write),
                                          UniqueFD(),
                                          /*IsNumbered=*/false});
}

Expected<BarePipePair::NamedFifo>
BarePipePair::NamedFifo::make(std::string Path) {
  Expected<posix::FileKind> Kind = posix::fileKind(Path);
  if (!Kind)
    return Kind.takeError();
  if (*Kind == posix::FileKind::Fifo)
    ::unlink(Path.c_str());
  else if (*Kind != posix::FileKind::Missing)
    return Error(ErrorCode::System, printable(Path) +
                                        ": expected a FIFO or nothing, found " +
                                        posix::describeFile(Path) +
                                        "; remove it or choose another name");
  if (::mkfifo(Path.c_str(), S_IRUSR | S_IWUSR) != 0)
    return Error::fromErrno(errno, "cannot create the FIFO " + printable(Path));
  NamedFifo Made;
  Made.Identity = posix::FileIdentity::ofPath(Path);
  Made.Path = std::move(Path);
  return Made;
}

Expected<BarePipePair> BarePipePair::create(const std::string &Name) {
  BarePipePair Pair;
  // Create NAME.out first, because a compiler opens NAME.in first and then
  // needs NAME.out.
  Expected<NamedFifo> Out = NamedFifo::make(Name + ".out");
  if (!Out)
    return Out.takeError();
  Pair.Out = std::move(*Out);
  Pair.Read = openFifo(Pair.Out.path(), O_RDONLY);
  if (!Pair.Read)
    return Error::fromErrno(errno, "cannot open " + Pair.Out.path());
  Expected<NamedFifo> In = NamedFifo::make(Name + ".in");
  if (!In)
    return In.takeError();
  Pair.In = std::move(*In);
  return Pair;
}

std::optional<PipeEnds> BarePipePair::tryAccept() {
  if (!Read)
    return std::nullopt;
  UniqueFD Write = openFifo(In.path(), O_WRONLY);
  if (!Write)
    return std::nullopt;
  return PipeEnds{std::move(Read), std::move(Write), UniqueFD(),
                  /*IsNumbered=*/false};
}

bool MLBridge::hasWriter(int ReadEnd) {
  // Use tee(2), because it consumes no data and its results differ between an
  // empty FIFO and a FIFO without a writer. No other call does both.
  Expected<posix::Pipe> Copy = posix::makePipe();
  return !Copy || ::tee(ReadEnd, Copy->Write.get(), 1, SPLICE_F_NONBLOCK) != 0;
}
