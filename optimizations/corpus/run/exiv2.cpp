// Reads, prints, changes, converts and writes the metadata of images with
// Exiv2. The program's arguments are a folder of images, and the maximum size
// of an image in bytes.
#include "exiv2/exiv2.hpp"
#include "driver.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

using namespace Exiv2;

static Checksum Sum;

static void add(const byte *Bytes, size_t Size) {
  if (Size != 0)
    Sum.add(std::string_view(reinterpret_cast<const char *>(Bytes), Size));
}

static void addName(const char *Name) { Sum.add(Name ? Name : "none"); }

// Calls an action that may throw an error.
template <typename Action> static void attempt(Action Try) {
  try {
    Try();
  } catch (const std::exception &Error) {
    Sum.add(Error.what());
  }
}

template <typename Data>
static void print(const Data &Found, const ExifData *Exif) {
  for (const auto &Each : Found) {
    Sum.add(Each.key() + Each.tagName() + Each.tagLabel());
    addName(Each.typeName());
    Sum.add(Each.print(Exif));
    Sum.add(Each.toString());
    Sum.add(static_cast<int64_t>(Each.count() + Each.size()));
  }
}

static void print(const ExifData &Exif) {
  print(Exif, &Exif);
  for (auto *Find : {orientation,
                     isoSpeed,
                     dateTimeOriginal,
                     flashBias,
                     exposureMode,
                     sceneMode,
                     macroMode,
                     imageQuality,
                     whiteBalance,
                     lensName,
                     saturation,
                     sharpness,
                     contrast,
                     sceneCaptureType,
                     meteringMode,
                     make,
                     model,
                     exposureTime,
                     fNumber,
                     shutterSpeedValue,
                     apertureValue,
                     brightnessValue,
                     exposureBiasValue,
                     maxApertureValue,
                     subjectDistance,
                     lightSource,
                     flash,
                     serialNumber,
                     focalLength,
                     subjectArea,
                     flashEnergy,
                     exposureIndex,
                     sensingMethod,
                     afPoint})
    if (const auto Found = Find(Exif); Found != Exif.end())
      Sum.add(Found->key() + Found->print(&Exif));
  const ExifThumbC Thumb(Exif);
  const DataBuf Bytes = Thumb.copy();
  add(Bytes.pData_, static_cast<size_t>(Bytes.size_));
  Sum.add(std::string(Thumb.mimeType()) + Thumb.extension());
}

static void printAll(Image &Found) {
  Sum.add(Found.mimeType());
  Sum.add(Found.comment());
  Sum.add(Found.pixelWidth() + Found.pixelHeight());
  print(Found.exifData());
  print(Found.iptcData(), nullptr);
  print(Found.xmpData(), nullptr);
  Sum.add(Found.xmpPacket());
  addName(Found.iptcData().detectCharset());
  if (Found.iccProfileDefined())
    add(Found.iccProfile()->pData_,
        static_cast<size_t>(Found.iccProfile()->size_));
  PreviewManager Previews(Found);
  for (const PreviewProperties &Each : Previews.getPreviewProperties()) {
    const PreviewImage Preview = Previews.getPreviewImage(Each);
    Sum.add(Preview.mimeType() + Preview.extension());
    add(Preview.pData(), Preview.size());
  }
}

static void convert(const Image &Found) {
  ExifData Exif = Found.exifData();
  IptcData Iptc = Found.iptcData();
  XmpData Xmp = Found.xmpData();
  copyExifToXmp(Exif, Xmp);
  copyIptcToXmp(Iptc, Xmp);
  syncExifWithXmp(Exif, Xmp);
  print(Xmp, nullptr);
  ExifData FromXmp;
  copyXmpToExif(Xmp, FromXmp);
  copyXmpToIptc(Xmp, Iptc);
  print(FromXmp);
  print(Iptc, nullptr);
  Exif.sortByTag();
  Iptc.sortByKey();
  Xmp.sortByKey();
  std::string Packet;
  Sum.add(XmpParser::encode(
      Packet, Xmp, XmpParser::omitPacketWrapper | XmpParser::useCompactFormat));
  Sum.add(Packet);
}

static void change(Image &Found) {
  Found.setComment("a comment");
  ExifData &Exif = Found.exifData();
  Exif["Exif.Photo.UserComment"] = "charset=Unicode a comment";
  Exif["Exif.Image.Artist"] = "an artist";
  Exif["Exif.Image.Orientation"] = uint16_t(3);
  Exif["Exif.Photo.FNumber"] = URational(28, 10);
  Exif["Exif.GPSInfo.GPSVersionID"] = "2 2 0 0";
  ExifThumb(Exif).erase();
  if (const auto Make = Exif.findKey(ExifKey("Exif.Image.Software"));
      Make != Exif.end())
    Exif.erase(Make);
  Found.iptcData()["Iptc.Application2.Caption"] = "a caption";
  Found.iptcData()["Iptc.Application2.DateCreated"] = "2001-02-03";
  Found.iptcData()["Iptc.Application2.TimeCreated"] = "04:05:06+01:00";
  XmpData &Xmp = Found.xmpData();
  Xmp["Xmp.dc.title"] = "lang=de-DE ein Titel";
  Xmp["Xmp.dc.subject"] = "a subject";
  Xmp["Xmp.xmp.Rating"] = 4;
  Xmp["Xmp.xmpDM.pick"] = true;
}

static void use(const std::string &Bytes) {
  const auto *Data = reinterpret_cast<const byte *>(Bytes.data());
  const auto Size = static_cast<long>(Bytes.size());
  attempt([&] {
    std::ostringstream Text;
    const auto Found = ImageFactory::open(Data, Size);
    attempt([&] { Found->printStructure(Text, kpsRecursive, 0); });
    attempt([&] { Found->printStructure(Text, kpsXMP, 0); });
    attempt([&] { Found->printStructure(Text, kpsIccProfile, 0); });
    Sum.add(Text.str());
  });
  attempt([&] {
    const auto Found = ImageFactory::open(Data, Size);
    Found->readMetadata();
    printAll(*Found);
    attempt([&] { convert(*Found); });
    change(*Found);
    Found->writeMetadata();
    BasicIo &Written = Found->io();
    IoCloser Closer(Written);
    if (Written.open() == 0)
      add(Written.mmap(), Written.size());
    Closer.close();
    Found->readMetadata();
    printAll(*Found);
    Found->clearMetadata();
    Found->writeMetadata();
    Sum.add(static_cast<uint64_t>(Found->io().size()));
  });
}

static std::vector<std::filesystem::path> findImages(const char *Folder,
                                                     uintmax_t Largest) {
  static const std::set<std::string> Suffixes = {
      ".avif", ".bmp", ".crw", ".dng",  ".eps",  ".exv", ".gif", ".heic",
      ".jp2",  ".jpg", ".jxl", ".mrw",  ".orf",  ".pgf", ".png", ".psd",
      ".raf",  ".rw2", ".tga", ".tiff", ".webp", ".xmp"};
  std::vector<std::filesystem::path> Found;
  for (const auto &Each : std::filesystem::directory_iterator(Folder))
    if (Each.is_regular_file() && Each.file_size() <= Largest &&
        Suffixes.count(Each.path().extension()) != 0)
      Found.push_back(Each.path());
  std::sort(Found.begin(), Found.end());
  return Found;
}

// Prints all tags that the library has a description of.
static void printTables() {
  std::ostringstream Text;
  ExifTags::taglist(Text);
  for (const GroupInfo *Each = ExifTags::groupList(); Each->tagList_; ++Each) {
    ExifTags::taglist(Text, Each->groupName_);
    Sum.add(ExifTags::isMakerGroup(Each->groupName_));
  }
  IptcDataSets::dataSetList(Text);
  for (const char *Prefix : {"dc", "exif", "xmpDM", "iptc", "crs"})
    XmpProperties::printProperties(Text, Prefix);
  Sum.add(Text.str());
  Sum.add(IptcKey("Iptc.Application2.City").tagLabel());
  Sum.add(XmpKey("Xmp.dc.title").tagLabel());
  Sum.add(ExifKey("Exif.Photo.ISOSpeed").tagDesc());
  XmpProperties::registerNs("own/", "own");
  Sum.add(XmpProperties::prefix("own/") + XmpProperties::ns("own"));
  XmpProperties::unregisterNs("own/");
}

// Reads and writes values of all types.
static void useValues() {
  for (int Type = unsignedByte; Type <= directory; ++Type)
    for (const char *Text :
         {"1", "-3", "7/2", "2.5", "1 2 3", "2001-02-03", "04:05:06+02:00",
          "text", "charset=Ascii text", "lang=x text"})
      attempt([&] {
        const auto Made = Value::create(static_cast<TypeId>(Type));
        Sum.add(Made->read(Text));
        std::vector<byte> Bytes(static_cast<size_t>(Made->size()) + 8);
        const long Size = Made->copy(Bytes.data(), bigEndian);
        add(Bytes.data(), static_cast<size_t>(Size));
        const auto Read = Value::create(static_cast<TypeId>(Type));
        Sum.add(Read->read(Bytes.data(), Size, littleEndian));
        Sum.add(Read->toString());
        Sum.add(static_cast<int64_t>(Made->count()));
        if (Made->count() > 0)
          Sum.add(Made->clone()->toString(0));
      });
  for (const char *Text : {"12", "0x1f", "true", "3/4", "1.25", "none"}) {
    bool IsOk = false;
    Sum.add(static_cast<int64_t>(parseLong(Text, IsOk)));
    Sum.add(parseFloat(Text, IsOk));
    Sum.add(parseRational(Text, IsOk).first);
    Sum.add(IsOk);
  }
}

// Writes metadata to new images of all types that can be created.
static void createImages() {
  for (int Type = ImageType::jpeg; Type <= ImageType::xmp; ++Type)
    attempt([&] {
      const auto Made = ImageFactory::create(Type);
      change(*Made);
      Made->writeMetadata();
      Made->readMetadata();
      printAll(*Made);
    });
  attempt([] {
    const auto Made = ImageFactory::create(ImageType::exv, "made.exv");
    change(*Made);
    Made->writeMetadata();
    const auto Read = ImageFactory::open(std::string("made.exv"));
    Read->readMetadata();
    printAll(*Read);
  });
  attempt([] { ImageFactory::open(std::string("absent.jpg")); });
}

int main(int, char **Arguments) {
  LogMsg::setHandler([](int Level, const char *Text) {
    Sum.add(Level);
    Sum.add(Text);
  });
  XmpParser::initialize();
  enableBMFF();
  printTables();
  useValues();
  createImages();
  Sum.print("tables");
  for (const auto &Path :
       findImages(Arguments[1], std::strtoull(Arguments[2], nullptr, 10))) {
    std::ifstream File(Path, std::ios::binary);
    use({std::istreambuf_iterator<char>(File),
         std::istreambuf_iterator<char>()});
    Sum.print(Path.filename().c_str());
  }
  XmpParser::terminate();
}
