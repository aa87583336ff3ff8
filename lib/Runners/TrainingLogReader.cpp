//===- TrainingLogReader.cpp - Reads LLVM's training logs -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runners/TrainingLogReader.h"

#include "Support/PrintableText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/file.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::serdes;

/// Looks up \p Key in \p Object, which may have been searched before. Returns
/// false if the key is missing.
template <typename T>
static bool has(ondemand::object &Object, std::string_view Key, T &Out) {
  return Object[Key].get(Out) == simdjson::SUCCESS;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<TrainingLogReader>>
TrainingLogReader::open(std::string Path) {
  const std::string What = "cannot read the log '" + printable(Path) + "'";
  Expected<RegularFile> File = openRegularFile(Path, What);
  if (!File)
    return File.takeError();
  // Continue if the file system does not support locks.
  if (::flock(File->FD.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error(ErrorCode::System, What + ": a recorder is writing to it");
  // Read the size after locking, because a recorder may just have finished.
  if (::fstat(File->FD.get(), &File->Status) != 0)
    return Error::fromErrno(errno, What);
  std::unique_ptr<TrainingLogReader> Reader(
      new TrainingLogReader(std::move(Path), std::move(*File)));
  if (Error E = Reader->readHeader())
    return E;
  return Reader;
}

TrainingLogReader::TrainingLogReader(std::string Path, RegularFile File)
    : Path(std::move(Path)), File(std::move(File.FD)),
      Size(static_cast<std::uint64_t>(File.Status.st_size)) {}

TrainingLogReader::~TrainingLogReader() {
  // Closing the file is not enough, because a forked child shares the lock.
  if (!Fork.isForked())
    (void)::flock(File.get(), LOCK_UN);
}

Error TrainingLogReader::malformed(const std::string &What) const {
  return {ErrorCode::Malformed, "the log '" + printable(Path) + "': byte " +
                                    std::to_string(Offset()) + ": " + What};
}

Error TrainingLogReader::readPiece() {
  constexpr std::size_t Piece = std::size_t(64) << 10;
  Buffer.erase(0, Used);
  Used = 0;
  const std::size_t Old = Buffer.size();
  Buffer.resize(Old + std::min<std::uint64_t>(Piece, Size - BufferEnd));
  // A forked child shares the file's position, so read at an explicit offset.
  ssize_t Count = 0;
  do
    Count = ::pread(File.get(), Buffer.data() + Old, Buffer.size() - Old,
                    static_cast<off_t>(BufferEnd));
  while (Count < 0 && errno == EINTR);
  Buffer.resize(Old + static_cast<std::size_t>(std::max<ssize_t>(Count, 0)));
  BufferEnd += Buffer.size() - Old;
  if (Count > 0)
    return Error::success();
  return Error::fromErrno(Count == 0 ? EIO : errno,
                          "cannot read the log '" + printable(Path) + "'");
}

Expected<std::string_view>
TrainingLogReader::readLine(const std::string &What) {
  std::size_t Searched = 0;
  for (;;) {
    std::size_t End = Buffer.find('\n', Used + Searched);
    if (End != Buffer.npos) {
      const std::size_t Length = End - Used;
      Line.assign(Buffer, Used, Length);
      Line.append(BaseSerDes::Padding, '\0');
      Used = End + 1;
      return std::string_view(Line.data(), Length);
    }
    Searched = Buffer.size() - Used;
    if (BufferEnd == Size)
      return malformed("expected " + What +
                       ", found the end of the file without a newline");
    if (Searched > MaxBitstreamHeader)
      return malformed("expected " + What + ", found a line of more than " +
                       std::to_string(MaxBitstreamHeader) + " bytes");
    if (Error E = readPiece())
      return E;
  }
}

Expected<const std::byte *>
TrainingLogReader::readBytes(std::size_t NumBytes, const std::string &What) {
  // Check the size before reading, because a header may state any size.
  if (Size - Offset() <= NumBytes)
    return malformed("expected " + What + ": " + std::to_string(NumBytes) +
                     " bytes and a newline, found " +
                     std::to_string(Size - Offset()) + " bytes");
  while (Buffer.size() - Used <= NumBytes)
    if (Error E = readPiece())
      return E;
  const char *Begin = Buffer.data() + Used;
  if (Begin[NumBytes] != '\n')
    return malformed("expected a newline after the " +
                     std::to_string(NumBytes) + " bytes of " + What);
  Used += NumBytes + 1;
  return reinterpret_cast<const std::byte *>(Begin);
}

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

Error TrainingLogReader::readHeader() {
  if (isAtEnd())
    return Error::success();
  Expected<std::string_view> Text = readLine("the header");
  if (!Text)
    return Text.takeError();
  if (Error E = Header.parse(*Text, Tools))
    return E.code() == ErrorCode::Malformed ? malformed(E.message()) : E;
  if (Header.features().empty())
    return malformed("the header names no features");
  for (const BitstreamHeader::Feature &F : Header.features())
    Tensors.push_back(
        {F.Name, F.Type, F.Dims, nullptr, F.NumBytes, Header.lengthsOf(F)});
  Types.resize(Tensors.size() - 1);
  for (std::size_t I = 0; I < Types.size(); ++I)
    if (Error E = Types[I].assign(Tensors[I]))
      return malformed(E.message());
  return readHeaderKeys();
}

/// Reads the keys of the header that BitstreamHeader ignores.
Error TrainingLogReader::readHeaderKeys() {
  const std::string_view Text(Line.data(), Line.size() - BaseSerDes::Padding);
  ondemand::document Document;
  ondemand::object Top;
  if (Tools.Parser.start(Text, Document) || Document.get_object().get(Top))
    return malformed("the header is not an object");
  ondemand::object Known;
  if (has(Top, "metadata", Known)) {
    for (auto Item : Known) {
      ondemand::field Field;
      std::string_view Key;
      std::string_view Value;
      if (std::move(Item).get(Field) || Field.unescaped_key().get(Key) ||
          Field.value().get_string().get(Value))
        return malformed("the header's \"metadata\" are not strings");
      Metadata.emplace_back(Key, Value);
    }
  }
  std::string_view Score;
  ondemand::object ScoreObject;
  if (!has(Top, "score", ScoreObject))
    return Error::success();
  if (ScoreObject.raw_json().get(Score))
    return malformed("the header's \"score\" is not an object");
  // The score has the form of a feature.
  std::string Wrapped = "{\"features\":[" + std::string(Score) + "]}";
  const std::size_t Length = Wrapped.size();
  Wrapped.append(BaseSerDes::Padding, '\0');
  BitstreamHeader ScoreHeader;
  if (Error E = ScoreHeader.parse({Wrapped.data(), Length}, Tools))
    return malformed(E.message());
  ScoreSize = ScoreHeader.payloadSize();
  return Error::success();
}

const std::string *TrainingLogReader::metadata(std::string_view Key) const {
  for (const auto &[Name, Value] : Metadata)
    if (Name == Key)
      return &Value;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Observations
//===----------------------------------------------------------------------===//

Error TrainingLogReader::readMark(std::string_view &Key,
                                  std::uint64_t &Number) {
  const std::string Wanted = "an observation, an outcome or a context";
  Expected<std::string_view> Text = readLine(Wanted);
  if (!Text)
    return Text.takeError();
  ondemand::document Document;
  ondemand::object Top;
  if (!Tools.Parser.start(*Text, Document) && !Document.get_object().get(Top)) {
    std::string_view Name;
    if (has(Top, "context", Name)) {
      Context = Name;
      Key = "context";
      return Error::success();
    }
    for (std::string_view Known : {"observation", "outcome"})
      if (has(Top, Known, Number)) {
        Key = Known;
        return Error::success();
      }
  }
  return malformed("expected " + Wanted + ", found '" + printable(*Text) +
                   "' before this byte");
}

Expected<bool> TrainingLogReader::next() {
  std::string_view Key;
  do {
    if (isAtEnd())
      return false;
    if (Error E = readMark(Key, Index))
      return E;
  } while (Key == "context");
  if (Key != "observation")
    return malformed("expected an observation before an outcome");

  Expected<const std::byte *> Bytes =
      readBytes(Header.payloadSize(), describe());
  if (!Bytes)
    return Bytes.takeError();
  const TensorView &Last = Tensors.back();
  Record.assign(*Bytes, *Bytes + (Header.payloadSize() - Last.NumBytes));
  Decision.assign(*Bytes + Record.size(), *Bytes + Header.payloadSize());
  for (std::size_t I = 0; I < Types.size(); ++I)
    Tensors[I].Data = Record.data() + Header.features()[I].Offset;
  Tensors.back().Data = Decision.data();
  if (Error E = checkElements(Last, ErrorCode::Malformed))
    return malformed(E.message());
  if (Error E = readOutcome())
    return E;
  return true;
}

Error TrainingLogReader::readOutcome() {
  if (!ScoreSize)
    return Error::success();
  std::string_view Key;
  std::uint64_t Number = 0;
  if (Error E = readMark(Key, Number))
    return E;
  if (Key != "outcome" || Number != Index)
    return malformed("expected the outcome of " + describe());
  return readBytes(*ScoreSize, "the outcome of " + describe()).takeError();
}

std::string TrainingLogReader::describe() const {
  return "observation " + std::to_string(Index) + " of '" + printable(Context) +
         "'";
}
