// Packs and unpacks a text and random bytes by all functions of snappy.
#include "snappy.h"
#include "driver.h"
#include "snappy-c.h"
#include "snappy-sinksource.h"

#include <fstream>
#include <sstream>
#include <vector>

#include <sys/uio.h>

// Keeps bytes in a string.
struct StringSink : snappy::Sink {
  std::string Text;
  void Append(const char *Bytes, size_t Size) override {
    Text.append(Bytes, Size);
  }
};

// Gives bytes in small pieces.
struct PieceSource : snappy::ByteArraySource {
  using ByteArraySource::ByteArraySource;
  const char *Peek(size_t *Size) override {
    const char *Start = ByteArraySource::Peek(Size);
    *Size = std::min<size_t>(*Size, 37);
    return Start;
  }
};

static void packAndUnpack(const std::string &Text, Checksum &Sum) {
  std::string Packed, Back;
  snappy::Compress(Text.data(), Text.size(), &Packed);
  Sum.add(Packed);
  Sum.add(snappy::Uncompress(Packed.data(), Packed.size(), &Back));
  Sum.add(Back == Text);
  Sum.add(snappy::IsValidCompressedBuffer(Packed.data(), Packed.size()));

  StringSink Sink, Unpacked;
  PieceSource Source(Text.data(), Text.size());
  Sum.add(static_cast<uint64_t>(snappy::Compress(&Source, &Sink)));
  Sum.add(Sink.Text);
  PieceSource Pieces(Packed.data(), Packed.size());
  Sum.add(snappy::Uncompress(&Pieces, &Unpacked));
  Sum.add(Unpacked.Text == Text);
  PieceSource Again(Packed.data(), Packed.size());
  Sum.add(snappy::IsValidCompressed(&Again));

  std::vector<char> Room(Text.size() + 1);
  iovec Parts[] = {
      {Room.data(), Text.size() / 3},
      {Room.data() + Text.size() / 3, 0},
      {Room.data() + Text.size() / 3, Text.size() - Text.size() / 3}};
  Sum.add(snappy::RawUncompressToIOVec(Packed.data(), Packed.size(), Parts, 3));
  Sum.add(std::string_view(Room.data(), Text.size()) == Text);
  PieceSource Raw(Packed.data(), Packed.size());
  Sum.add(snappy::RawUncompress(&Raw, Room.data()));
  snappy::UncheckedByteArraySink Unchecked(Room.data());
  snappy::ByteArraySource All(Packed.data(), Packed.size());
  Sum.add(snappy::Uncompress(&All, &Unchecked));
  Sum.add(Unchecked.CurrentDestination() == Room.data() + Text.size());

  std::vector<char> Small(snappy_max_compressed_length(Text.size()));
  size_t Size = Small.size(), Length = 0;
  Sum.add(snappy_compress(Text.data(), Text.size(), Small.data(), &Size));
  Sum.add(snappy_uncompressed_length(Small.data(), Size, &Length));
  Sum.add(snappy_uncompress(Small.data(), Size, Room.data(), &Length));
  Sum.add(snappy_validate_compressed_buffer(Small.data(), Size));

  // Damaged data must be rejected, or give other bytes.
  Draw Random(Text.size());
  for (int Round = 0; Round < 20; ++Round) {
    std::string Damaged = Packed;
    for (int Byte = 0; Byte < 3; ++Byte)
      Damaged[Random.below(Damaged.size())] = Random.below(256);
    Damaged.resize(Damaged.size() - Round % 2);
    Sum.add(snappy::IsValidCompressedBuffer(Damaged.data(), Damaged.size()));
    snappy::ByteArraySource Broken(Damaged.data(), Damaged.size());
    StringSink Part;
    if (size_t Needed; snappy::GetUncompressedLength(Damaged.data(),
                                                     Damaged.size(), &Needed) &&
                       Needed < 2 * Text.size())
      Sum.add(static_cast<uint64_t>(
          snappy::UncompressAsMuchAsPossible(&Broken, &Part)));
  }
}

int main(int, char **Arguments) {
  std::ifstream File(Arguments[1]);
  std::stringstream Read;
  Read << File.rdbuf();
  const std::string Text = Read.str();
  Checksum Sum;
  Draw Random(1);
  for (size_t Size : {1, 100, 5000, 66000, 1000000})
    for (size_t Start = 0; Start + Size <= Text.size();
         Start += Size * 1.7 + 9000)
      packAndUnpack(Text.substr(Start, Size), Sum);
  std::string Noise(100000, ' ');
  for (char &Byte : Noise)
    Byte = static_cast<char>(Random.below(256));
  packAndUnpack(Noise, Sum);
  packAndUnpack(std::string(200000, 'a'), Sum);
  Sum.print("snappy");
}
