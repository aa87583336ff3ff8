// Draws, quantizes, writes, reads and damages GIF images with giflib. The program's
// arguments are the number of rounds and the names of images.
#include "driver.h"
extern "C" {
#include "gif_lib.h"
}

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <vector>

using Bytes = std::vector<GifByteType>;

// Bytes from which a GIF is read.
struct Source {
  Bytes Data;
  size_t At = 0;

  static int read(GifFileType *File, GifByteType *Into, int Count) {
    auto &From = *static_cast<Source *>(File->UserData);
    const size_t Size =
        std::min(static_cast<size_t>(Count), From.Data.size() - From.At);
    std::copy_n(From.Data.begin() + static_cast<ptrdiff_t>(From.At), Size,
                Into);
    From.At += Size;
    return static_cast<int>(Size);
  }
};

static int append(GifFileType *File, const GifByteType *From, int Count) {
  auto &Into = *static_cast<Bytes *>(File->UserData);
  Into.insert(Into.end(), From, From + Count);
  return Count;
}

static std::string_view view(const void *Data, size_t Size) {
  return {static_cast<const char *>(Data), Size};
}

static void addError(int Code, Checksum &Sum) {
  const char *Text = GifErrorString(Code);
  Sum.add(Text != nullptr ? Text : "no error");
}

static void addMap(const ColorMapObject *Map, Checksum &Sum) {
  Sum.add(Map != nullptr ? Map->ColorCount : 0);
  for (int Index = 0; Map != nullptr && Index < Map->ColorCount; ++Index)
    Sum.add(view(&Map->Colors[Index], sizeof(GifColorType)));
}

static void addExtensions(int Count, const ExtensionBlock *Blocks,
                          Checksum &Sum) {
  for (int Index = 0; Index < Count; ++Index) {
    Sum.add(Blocks[Index].Function);
    Sum.add(view(Blocks[Index].Bytes,
                 static_cast<size_t>(Blocks[Index].ByteCount)));
  }
}

static size_t sizeOf(const GifImageDesc &Image) {
  return static_cast<size_t>(Image.Width) * static_cast<size_t>(Image.Height);
}

static void addAll(GifFileType *File, Checksum &Sum) {
  Sum.add(File->SWidth * 10000 + File->SHeight);
  addMap(File->SColorMap, Sum);
  addExtensions(File->ExtensionBlockCount, File->ExtensionBlocks, Sum);
  for (int Index = 0; Index < File->ImageCount; ++Index) {
    const SavedImage &Image = File->SavedImages[Index];
    Sum.add(Image.ImageDesc.Left * 10000 + Image.ImageDesc.Top);
    addMap(Image.ImageDesc.ColorMap, Sum);
    Sum.add(view(Image.RasterBits, sizeOf(Image.ImageDesc)));
    addExtensions(Image.ExtensionBlockCount, Image.ExtensionBlocks, Sum);
    GraphicsControlBlock Control{};
    if (DGifSavedExtensionToGCB(File, Index, &Control) == GIF_OK)
      Sum.add(Control.DelayTime * 1000 + Control.TransparentColor);
  }
}

// Adds all images of a GIF, and returns whether it has no error.
static bool readAll(const Bytes &Data, Checksum &Sum) {
  Source From{Data};
  int Error = 0;
  GifFileType *File = DGifOpen(&From, Source::read, &Error);
  addError(Error, Sum);
  if (File == nullptr)
    return false;
  const bool IsRead = DGifSlurp(File) == GIF_OK;
  if (IsRead)
    addAll(File, Sum);
  else
    addError(File->Error, Sum);
  Sum.add(DGifGetGifVersion(File));
  DGifCloseFile(File, &Error);
  return IsRead;
}

static void readExtension(GifFileType *File, Checksum &Sum) {
  int Code = 0;
  GifByteType *Block = nullptr;
  DGifGetExtension(File, &Code, &Block);
  Sum.add(Code);
  GraphicsControlBlock Control{};
  if (Code == GRAPHICS_EXT_FUNC_CODE && Block != nullptr &&
      DGifExtensionToGCB(Block[0], Block + 1, &Control) == GIF_OK)
    Sum.add(Control.DisposalMode);
  while (Block != nullptr) {
    Sum.add(view(Block + 1, Block[0]));
    DGifGetExtensionNext(File, &Block);
  }
}

// Reads an image as lines, pixels, compressed blocks or codes.
static void readImage(GifFileType *File, int Way, Checksum &Sum) {
  if (DGifGetImageDesc(File) != GIF_OK)
    return;
  Bytes Line(static_cast<size_t>(File->Image.Width));
  for (int Row = 0; Way < 2 && Row < File->Image.Height; ++Row) {
    if (Way == 0)
      DGifGetLine(File, Line.data(), File->Image.Width);
    for (int Column = 0; Way == 1 && Column < File->Image.Width; ++Column)
      DGifGetPixel(File, static_cast<GifPixelType>(Column & 1));
    Sum.add(view(Line.data(), Line.size()));
  }
  int Code = 0;
  GifByteType *Block = nullptr;
  if (Way == 2) {
    DGifGetCode(File, &Code, &Block);
    while (Block != nullptr) {
      Sum.add(view(Block + 1, Block[0]));
      DGifGetCodeNext(File, &Block);
    }
  }
  while (Way == 3 && Code >= 0 && DGifGetLZCodes(File, &Code) == GIF_OK)
    Sum.add(Code);
}

static void readParts(const char *Path, int Way, Checksum &Sum) {
  int Error = 0;
  GifFileType *File = Way % 2 == 0
                          ? DGifOpenFileName(Path, &Error)
                          : DGifOpenFileHandle(open(Path, O_RDONLY), &Error);
  if (File == nullptr)
    return addError(Error, Sum);
  GifRecordType Type = UNDEFINED_RECORD_TYPE;
  while (DGifGetRecordType(File, &Type) == GIF_OK &&
         Type != TERMINATE_RECORD_TYPE) {
    Sum.add(static_cast<int>(Type));
    if (Type == IMAGE_DESC_RECORD_TYPE)
      readImage(File, Way, Sum);
    else
      readExtension(File, Sum);
  }
  Sum.add(File->ImageCount);
  DGifCloseFile(File, &Error);
}

static ColorMapObject *makeMap(int Count, Draw &Random) {
  std::vector<GifColorType> Colors(static_cast<size_t>(Count));
  for (GifColorType &Each : Colors)
    Each = {static_cast<GifByteType>(1 + Random.below(200)),
            static_cast<GifByteType>(Random.below(256)),
            static_cast<GifByteType>(Random.below(9))};
  return GifMakeMapObject(Count, Colors.data());
}

static void draw(SavedImage &Image, Draw &Random) {
  for (int Left = 0; Left < 12; ++Left) {
    const int X = static_cast<int>(Random.below(60));
    const int Y = static_cast<int>(Random.below(60));
    const int Color = static_cast<int>(Random.below(16));
    GifDrawRectangle(&Image, X, Y, 30, 20, Color);
    GifDrawBox(&Image, Y, X, 25, 12, Color + 1);
    GifDrawText8x8(&Image, X, Y + 30, Random.word().substr(0, 6).c_str(),
                   Color + 2);
    GifDrawBoxedText8x8(&Image, X, Y, "ab\ncd\tef", 2, Color, Color + 3);
  }
}

// Writes several images with the interface for whole files.
static Bytes writeAll(Draw &Random, Checksum &Sum) {
  Bytes Written;
  int Error = 0;
  GifFileType *File = EGifOpen(&Written, append, &Error);
  File->SWidth = File->SHeight = 160;
  File->SColorResolution = 8;
  File->SColorMap = makeMap(32, Random);
  for (int Index = 0; Index < 3; ++Index) {
    SavedImage *Image = GifMakeSavedImage(File, nullptr);
    Image->ImageDesc = {Index, 2 * Index, 150, 140, Index == 1, nullptr};
    Image->RasterBits =
        static_cast<GifByteType *>(std::calloc(1, sizeOf(Image->ImageDesc)));
    for (size_t At = 0; At < sizeOf(Image->ImageDesc); ++At)
      Image->RasterBits[At] =
          static_cast<GifByteType>(At / 19 % 16 + Random.below(2));
    draw(*Image, Random);
    if (Index == 2)
      Image->ImageDesc.ColorMap = makeMap(32, Random);
    const GraphicsControlBlock Control{DISPOSE_BACKGROUND, false, 7 + Index,
                                       Index - 1};
    for (int Time = 0; Time < 2; ++Time)
      Sum.add(EGifGCBToSavedExtension(&Control, File, Index));
  }
  // The library moves its images, so it cannot read one of them at the same time.
  const SavedImage Last = File->SavedImages[2];
  SavedImage *Copy = GifMakeSavedImage(File, &Last);
  GifPixelType Changed[256];
  ColorMapObject *Other = makeMap(64, Random);
  ColorMapObject *Union = GifUnionColorMap(File->SColorMap, Other, Changed);
  addMap(Union, Sum);
  for (int Index = 64; Index < 256; ++Index)
    Changed[Index] = 0;
  GifApplyTranslation(Copy, Changed);
  GifFreeMapObject(Copy->ImageDesc.ColorMap);
  Copy->ImageDesc.ColorMap = Union;
  GifFreeMapObject(Other);
  std::string Comment = Random.text(20);
  GifAddExtensionBlock(&File->ExtensionBlockCount, &File->ExtensionBlocks,
                       COMMENT_EXT_FUNC_CODE,
                       static_cast<unsigned>(Comment.size()),
                       reinterpret_cast<unsigned char *>(Comment.data()));
  Sum.add(EGifGetGifVersion(File));
  // Frees the file, but not what it has saved.
  SavedImage *Images = File->SavedImages;
  const int Count = File->ImageCount;
  int Blocks = File->ExtensionBlockCount;
  ExtensionBlock *Extensions = File->ExtensionBlocks;
  Sum.add(EGifSpew(File));
  GifFileType Saved{};
  Saved.SavedImages = Images;
  Saved.ImageCount = Count;
  GifFreeSavedImages(&Saved);
  GifFreeExtensions(&Blocks, &Extensions);
  return Written;
}

// Writes an image with the interface for parts.
static void writeParts(const char *Path, bool HasPixels, Draw &Random,
                       Checksum &Sum) {
  int Error = 0;
  GifFileType *File =
      HasPixels
          ? EGifOpenFileHandle(open(Path, O_RDWR | O_CREAT | O_TRUNC, 0600),
                               &Error)
          : EGifOpenFileName(Path, false, &Error);
  ColorMapObject *Map = makeMap(128, Random);
  EGifSetGifVersion(File, true);
  Sum.add(EGifPutScreenDesc(File, 120, 90, 7, 0, Map));
  EGifPutComment(File, Random.text(HasPixels ? 8 : 90).c_str());
  GifByteType Packed[4];
  const GraphicsControlBlock Control{DISPOSE_PREVIOUS, true, 30, 5};
  const size_t Size = EGifGCBToExtension(&Control, Packed);
  EGifPutExtension(File, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(Size),
                   Packed);
  EGifPutExtensionLeader(File, APPLICATION_EXT_FUNC_CODE);
  EGifPutExtensionBlock(File, 11, "NETSCAPE2.0");
  EGifPutExtensionTrailer(File);
  Sum.add(EGifPutImageDesc(File, 0, 0, 120, 90, false, nullptr));
  for (int Row = 0; Row < 90; ++Row) {
    Bytes Line(120);
    for (GifByteType &Each : Line)
      Each = static_cast<GifByteType>(Random.below(128));
    if (!HasPixels)
      EGifPutLine(File, Line.data(), 120);
    for (int Column = 0; HasPixels && Column < 120; ++Column)
      EGifPutPixel(File, Line[static_cast<size_t>(Column)]);
  }
  Sum.add(EGifCloseFile(File, &Error));
  GifFreeMapObject(Map);
  if (EGifOpenFileName(Path, true, &Error) == nullptr)
    addError(Error, Sum);
}

static void quantize(Draw &Random, Checksum &Sum) {
  constexpr unsigned Width = 80, Height = 60;
  Bytes Planes[3];
  for (Bytes &Plane : Planes)
    for (unsigned At = 0; At < Width * Height; ++At)
      Plane.push_back(
          static_cast<GifByteType>(At / Width * 3 + Random.below(40)));
  Bytes Indices(Width * Height);
  std::vector<GifColorType> Colors(256);
  int Count = 32;
  Sum.add(GifQuantizeBuffer(Width, Height, &Count, Planes[0].data(),
                            Planes[1].data(), Planes[2].data(), Indices.data(),
                            Colors.data()));
  Sum.add(Count);
  Sum.add(view(Indices.data(), Indices.size()));
  Sum.add(view(Colors.data(), static_cast<size_t>(Count) * 3));
}

static Bytes load(const char *Path) {
  std::ifstream File(Path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(File), {});
}

int main(int Count, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    for (int Index = 2; Index < Count; ++Index) {
      readAll(load(Arguments[Index]), Sum);
      readParts(Arguments[Index], Round % 4, Sum);
    }
    Bytes Written = writeAll(Random, Sum);
    Sum.add(view(Written.data(), Written.size()));
    Sum.add(readAll(Written, Sum));
    for (int Left = 0; Left < 30; ++Left) {
      Bytes Damaged = Written;
      if (Left % 3 == 0)
        Damaged.resize(Random.below(static_cast<uint32_t>(Damaged.size())));
      else
        Damaged[Random.below(900)] ^= static_cast<GifByteType>(Left);
      readAll(Damaged, Sum);
    }
    writeParts("written.gif", Round % 2 == 0, Random, Sum);
    for (int Way = 0; Way < 4; ++Way)
      readParts("written.gif", Way, Sum);
    readParts("not-there.gif", 0, Sum);
    quantize(Random, Sum);
  }
  for (int Code = 0; Code < 120; ++Code)
    addError(Code, Sum);
  Sum.print("giflib");
}
