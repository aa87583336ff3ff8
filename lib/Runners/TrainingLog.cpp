//===- TrainingLog.cpp - Writes LLVM's training logs ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the format of the log and writes its file.
///
//===----------------------------------------------------------------------===//

#include "Runners/TrainingLog.h"

#include "SerDes/JSONText.h"
#include "Support/PrintableText.h"
#include "Support/RegularFile.h"

#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace MLBridge;
using serdes::appendInteger;
using serdes::appendQuoted;

//===----------------------------------------------------------------------===//
// Tensors in the header
//===----------------------------------------------------------------------===//

static bool isUTF8(std::string_view Text) {
  return simdjson::validate_utf8(Text.data(), Text.size());
}

/// Returns the shape of \p Tensor in LLVM's format. The extent of text is its
/// number of bytes, and a scalar has the shape [1].
static Shape loggedShape(const TensorView &Tensor) {
  if (Tensor.Type == ElementType::String)
    return {static_cast<std::int64_t>(Tensor.NumBytes)};
  return Tensor.Dims.isScalar() ? Shape{1} : Tensor.Dims;
}

Error LoggedTensor::assign(const TensorView &Tensor) {
  if (!isUTF8(Tensor.Name))
    return {ErrorCode::InvalidArgument,
            "feature '" + printable(Tensor.Name) + "': its name is not UTF-8"};
  Name = Tensor.Name;
  Type = Tensor.Type;
  Dims = loggedShape(Tensor);
  NumBytes = Tensor.NumBytes;
  Lengths.assign(Tensor.Lengths.begin(), Tensor.Lengths.end());
  IsStringList = Tensor.isStringList();
  return Error::success();
}

Error LoggedTensor::check(const TensorView &Tensor) const {
  if (Tensor.Name == Name && Tensor.Type == Type &&
      loggedShape(Tensor) == Dims && Tensor.isStringList() == IsStringList &&
      std::ranges::equal(Lengths, Tensor.Lengths))
    return Error::success();
  std::string Message = "feature '" + printable(Tensor.Name) + "': ";
  LoggedTensor Found;
  if (Error E = Found.assign(Tensor))
    return E;
  if (Name != Tensor.Name)
    Message += "the log has '" + printable(Name) + "' here";
  else
    Message += "the log has " + typeStr() + ", found " + Found.typeStr();
  return {ErrorCode::SchemaMismatch, std::move(Message)};
}

std::string LoggedTensor::typeStr() const {
  std::string Text(elementTypeName(Type));
  if (Type != ElementType::String)
    return Text + Dims.str();
  if (!IsStringList)
    return Text + " of " + std::to_string(NumBytes) + " bytes";
  Text += "s of [";
  for (std::uint64_t Length : Lengths)
    Text += (Text.back() == '[' ? "" : ",") + std::to_string(Length);
  return Text + "] bytes";
}

template <typename Numbers>
static void appendList(std::string &Out, const Numbers &List) {
  Out += '[';
  for (auto Number : List) {
    if (Out.back() != '[')
      Out += ',';
    appendInteger(Out, Number);
  }
  Out += ']';
}

void LoggedTensor::appendJSON(std::string &Out) const {
  bool IsText = Type == ElementType::String;
  bool IsForeign = IsText || Type == ElementType::Bool;
  Out += "{\"name\":";
  appendQuoted(Out, Name);
  Out += ",\"type\":";
  appendQuoted(Out, elementTypeName(IsForeign ? ElementType::UInt8 : Type));
  Out += ",\"port\":0,\"shape\":";
  appendList(Out, Dims);
  if (IsForeign) {
    Out += ",\"semantics\":";
    appendQuoted(Out, !IsText ? "bool" : IsStringList ? "strings" : "string");
  }
  if (IsStringList) {
    Out += ",\"lengths\":";
    appendList(Out, Lengths);
  }
  Out += '}';
}

Error MLBridge::checkFeatures(Span<const LoggedTensor> Logged,
                              Span<const TensorView> Features) {
  for (std::size_t I = 0; I < Features.size(); ++I) {
    if (I == Logged.size())
      return {ErrorCode::SchemaMismatch,
              "feature '" + printable(Features[I].Name) +
                  "': expected the log's " + std::to_string(I) +
                  " features, found one more"};
    if (Error E = Logged[I].check(Features[I]))
      return E;
  }
  if (Features.size() < Logged.size())
    return {ErrorCode::SchemaMismatch,
            "feature '" + printable(Logged[Features.size()].Name) +
                "': expected by the log, but missing"};
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

TrainingLog::TrainingLog(std::string Path, posix::UniqueFD File)
    : Path(std::move(Path)), File(std::move(File)) {}

static void append(std::string &Out, Span<const std::byte> Bytes) {
  Out.append(reinterpret_cast<const char *>(Bytes.data()), Bytes.size());
}

void TrainingLog::writeHeader(Span<const LoggedTensor> Features,
                              const LoggedTensor &Advice, bool WithScore,
                              const Metadata &Model) {
  HasHeader = true;
  HasScore = WithScore;
  Buffer += "{\"features\":[";
  for (const LoggedTensor &Feature : Features) {
    Feature.appendJSON(Buffer);
    Buffer += ',';
  }
  Advice.appendJSON(Buffer);
  Buffer += ']';
  if (WithScore) {
    LoggedTensor Score;
    Score.Name = "reward";
    Score.Type = ElementType::Double;
    Score.Dims = {1};
    Buffer += ",\"score\":";
    Score.appendJSON(Buffer);
  }
  Buffer += ",\"advice\":";
  Advice.appendJSON(Buffer);
  if (!Model.empty()) {
    const char *Separator = ",\"metadata\":{";
    for (const auto &[Key, Value] : Model) {
      Buffer += std::exchange(Separator, ",");
      appendQuoted(Buffer, Key);
      Buffer += ':';
      appendQuoted(Buffer, Value);
    }
    Buffer += '}';
  }
  Buffer += "}\n";
}

/// Returns \p Text, which is not UTF-8, with U+FFFD in place of each non-ASCII
/// byte.
static std::string markNonASCII(std::string_view Text) {
  std::string Clean;
  for (char C : Text)
    if (static_cast<unsigned char>(C) < 0x80)
      Clean += C;
    else
      Clean += "\xEF\xBF\xBD";
  return Clean;
}

void TrainingLog::writeContext(std::string_view Name) {
  if (Context && Context->first == Name)
    return;
  auto Known = Counts.find(Name);
  if (Known == Counts.end())
    Known = Counts.emplace(Name, 0).first;
  Context = &*Known;
  Buffer += "{\"context\":";
  // Convert a name that is not UTF-8. Function names may contain any bytes, but
  // readers expect UTF-8.
  if (isUTF8(Name))
    appendQuoted(Buffer, Name);
  else
    appendQuoted(Buffer, markNonASCII(Name));
  Buffer += "}\n";
}

Error TrainingLog::write(const Observation &O) {
  if (Failure)
    return Failure;
  writeContext(O.Context);
  std::uint64_t Number = Context->second++;
  Buffer += "{\"observation\":";
  appendInteger(Buffer, Number);
  Buffer += "}\n";
  append(Buffer, O.Features);
  append(Buffer, O.Advice);
  Buffer += '\n';
  if (HasScore) {
    Buffer += "{\"outcome\":";
    appendInteger(Buffer, Number);
    Buffer += "}\n";
    append(Buffer,
           {reinterpret_cast<const std::byte *>(&O.Reward), sizeof(O.Reward)});
    Buffer += '\n';
  }
  constexpr std::size_t FlushAt = std::size_t(64) << 10;
  return Buffer.size() >= FlushAt ? flush() : Error::success();
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

Expected<TrainingLog> TrainingLog::create(std::string Path) {
  const std::string What = "cannot create the log '" + printable(Path) + "'";
  // Open without O_TRUNC, because another process may be writing to the file.
  // Refuse a FIFO, because its reader could block the compiler or end it with
  // SIGPIPE.
  Expected<RegularFile> Opened = openRegularFile(Path, What, O_WRONLY | O_CREAT,
                                                 AlsoAllowed::CharacterDevice);
  if (!Opened)
    return Opened.takeError();
  posix::UniqueFD &File = Opened->FD;
  if (S_ISCHR(Opened->Status.st_mode)) {
    (void)::fcntl(File.get(), F_SETFL, 0);
    return TrainingLog(std::move(Path), std::move(File));
  }
  // Continue if the file system does not support locks. In this case, two
  // processes could write to the file at the same time.
  if (::flock(File.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error(ErrorCode::System,
                 What + ": another runner records or replays it");
  TrainingLog Log(std::move(Path), std::move(File));
  Log.MayHaveOldLog = true;
  return Log;
}

Error TrainingLog::removeOldLog() {
  if (std::exchange(MayHaveOldLog, false) && ::ftruncate(File.get(), 0) != 0)
    Failure = Error::fromErrno(errno, "cannot empty the log '" +
                                          printable(Path) + "'");
  return Failure;
}

void TrainingLog::unlock() { (void)::flock(File.get(), LOCK_UN); }

/// Writes \p Text as write(2) does. If \p File is a regular file of \p Written
/// bytes that would exceed RLIMIT_FSIZE, fails with EFBIG, because write(2)
/// would end the compiler with SIGXFSZ.
static ssize_t writeBounded(int File, std::string_view Text,
                            std::size_t Written) {
  rlimit Limit{};
  struct stat Status{};
  if (::getrlimit(RLIMIT_FSIZE, &Limit) == 0 &&
      Written + Text.size() > Limit.rlim_cur && ::fstat(File, &Status) == 0 &&
      S_ISREG(Status.st_mode)) {
    errno = EFBIG;
    return -1;
  }
  return ::write(File, Text.data(), Text.size());
}

Error TrainingLog::flush() {
  std::string_view Left = Buffer;
  while (!Failure && !Left.empty()) {
    ssize_t Count =
        writeBounded(File.get(), Left, Written + (Buffer.size() - Left.size()));
    if (Count > 0) {
      Left.remove_prefix(static_cast<std::size_t>(Count));
    } else if (Count == 0 || errno != EINTR) {
      Failure =
          Error::fromErrno(Count == 0 ? EIO : errno,
                           "cannot write the log '" + printable(Path) + "'");
      // Remove the incomplete observation, because readers could not parse it.
      (void)!::ftruncate(File.get(), static_cast<off_t>(Written));
    }
  }
  if (!Failure)
    Written += Buffer.size();
  Buffer.clear();
  return Failure;
}
