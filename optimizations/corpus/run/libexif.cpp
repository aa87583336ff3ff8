// Reads, changes and writes, with libexif, the EXIF data of the pictures that the
// program's arguments name. The first argument is the number of rounds.
#include "driver.h"
#include "libexif/exif-data.h"
#include "libexif/exif-loader.h"
#include "libexif/exif-log.h"
#include "libexif/exif-mem.h"
#include "libexif/exif-utils.h"

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

// The library writes the time of day into new entries. With this function, the results
// are always the same.
extern "C" time_t time(time_t *) noexcept { return 1000000000; }

static void addText(Checksum &Sum, const char *Text) {
  Sum.add(Text != nullptr ? Text : "none");
}

static void addEntry(ExifEntry *Entry, void *Into) {
  auto &Sum = *static_cast<Checksum *>(Into);
  char Text[300];
  Sum.add(static_cast<int>(Entry->tag));
  addText(Sum, exif_format_get_name(Entry->format));
  Sum.add(static_cast<uint64_t>(Entry->components));
  // The library copies from the null pointer of an entry without data.
  addText(Sum, Entry->data != nullptr
                   ? exif_entry_get_value(Entry, Text, sizeof(Text))
                   : "no data");
}

static void addContent(ExifContent *Content, void *Into) {
  auto &Sum = *static_cast<Checksum *>(Into);
  addText(Sum, exif_ifd_get_name(exif_content_get_ifd(Content)));
  exif_content_foreach_entry(Content, addEntry, Into);
}

static void addNotes(ExifData *Data, Checksum &Sum) {
  ExifMnoteData *Notes = exif_data_get_mnote_data(Data);
  const unsigned Count = Notes != nullptr ? exif_mnote_data_count(Notes) : 0;
  for (unsigned Index = 0; Index < Count; ++Index) {
    char Text[300];
    Sum.add(exif_mnote_data_get_id(Notes, Index));
    addText(Sum, exif_mnote_data_get_name(Notes, Index));
    addText(Sum, exif_mnote_data_get_title(Notes, Index));
    addText(Sum, exif_mnote_data_get_description(Notes, Index));
    addText(Sum,
            exif_mnote_data_get_value(Notes, Index, Text, sizeof(Text)));
  }
}

static void addAll(ExifData *Data, Checksum &Sum) {
  addText(Sum, exif_byte_order_get_name(exif_data_get_byte_order(Data)));
  exif_data_foreach_content(Data, addContent, &Sum);
  addNotes(Data, Sum);
}

static void addMessage(ExifLog *, ExifLogCode Code, const char *,
                       const char *Format, va_list Values, void *Into) {
  // The format's text is enough. Some values are addresses.
  (void)Values;
  auto &Sum = *static_cast<Checksum *>(Into);
  addText(Sum, exif_log_code_get_title(Code));
  Sum.add(Format);
}

static void save(ExifData *Data, Checksum &Sum) {
  unsigned char *Bytes = nullptr;
  unsigned Size = 0;
  exif_data_save_data(Data, &Bytes, &Size);
  Sum.add(std::string_view(reinterpret_cast<char *>(Bytes), Size));
  ExifData *Again = exif_data_new_from_data(Bytes, Size);
  addAll(Again, Sum);
  exif_data_unref(Again);
  std::free(Bytes);
}

// Adds an entry of each tag, and removes some entries.
static void change(ExifData *Data, Checksum &Sum) {
  for (int Number = 0; Number < EXIF_IFD_COUNT; ++Number) {
    const auto Ifd = static_cast<ExifIfd>(Number);
    ExifContent *Content = Data->ifd[Ifd];
    for (unsigned Index = 0; Index < exif_tag_table_count(); Index += 3) {
      const ExifTag Tag = exif_tag_table_get_tag(Index);
      if (exif_content_get_entry(Content, Tag) != nullptr)
        continue;
      ExifEntry *Entry = exif_entry_new();
      exif_content_add_entry(Content, Entry);
      exif_entry_initialize(Entry, Tag);
      // An entry without data has no value to fix.
      if (Entry->data != nullptr && Entry->size > 0) {
        const std::string_view Name(exif_format_get_name(Entry->format));
        if (Name == "Ascii" || Name == "Undefined")
          std::memset(Entry->data, 'a', Entry->size);
        exif_entry_fix(Entry);
      }
      addEntry(Entry, &Sum);
      if (Index % 2 == 0)
        exif_content_remove_entry(Content, Entry);
      exif_entry_unref(Entry);
    }
    exif_content_fix(Content);
  }
}

static void useData(const std::string &Bytes, Draw &Random, Checksum &Sum) {
  ExifLoader *Loader = exif_loader_new();
  for (size_t At = 0; At < Bytes.size();) {
    const size_t Size = std::min<size_t>(1 + Random.below(900),
                                         Bytes.size() - At);
    std::string Part = Bytes.substr(At, Size);
    if (exif_loader_write(Loader,
                          reinterpret_cast<unsigned char *>(Part.data()),
                          static_cast<unsigned>(Size)) == 0)
      break;
    At += Size;
  }
  ExifData *Data = exif_loader_get_data(Loader);
  exif_loader_unref(Loader);
  Sum.add(Data != nullptr);
  if (Data == nullptr)
    return;
  addAll(Data, Sum);
  for (ExifByteOrder Order :
       {EXIF_BYTE_ORDER_INTEL, EXIF_BYTE_ORDER_MOTOROLA}) {
    exif_data_set_byte_order(Data, Order);
    addAll(Data, Sum);
    save(Data, Sum);
  }
  exif_data_set_data_type(Data, EXIF_DATA_TYPE_COMPRESSED);
  exif_data_fix(Data);
  change(Data, Sum);
  save(Data, Sum);
  exif_data_unref(Data);
}

// Reads data with errors, which are logged.
static void useDamaged(std::string Bytes, Draw &Random, Checksum &Sum) {
  for (int Left = 0; Left < 20; ++Left)
    Bytes[Random.below(static_cast<uint32_t>(Bytes.size()))] =
        static_cast<char>(Random.below(256));
  ExifLog *Log = exif_log_new();
  exif_log_set_func(Log, addMessage, &Sum);
  ExifData *Data = exif_data_new();
  exif_data_log(Data, Log);
  exif_data_unset_option(Data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_set_option(Data, EXIF_DATA_OPTION_IGNORE_UNKNOWN_TAGS);
  exif_data_load_data(Data, reinterpret_cast<unsigned char *>(Bytes.data()),
                      static_cast<unsigned>(Bytes.size()));
  addAll(Data, Sum);
  exif_data_unref(Data);
  exif_log_unref(Log);
}

static void useTables(Checksum &Sum) {
  for (unsigned Index = 0; Index < exif_tag_table_count(); ++Index) {
    const ExifTag Tag = exif_tag_table_get_tag(Index);
    const char *Name = exif_tag_table_get_name(Index);
    addText(Sum, Name);
    Sum.add(Name != nullptr ? static_cast<int>(exif_tag_from_name(Name)) : 0);
    for (int Number = 0; Number < EXIF_IFD_COUNT; ++Number) {
      const auto Ifd = static_cast<ExifIfd>(Number);
      addText(Sum, exif_tag_get_name_in_ifd(Tag, Ifd));
      addText(Sum, exif_tag_get_title_in_ifd(Tag, Ifd));
      addText(Sum, exif_tag_get_description_in_ifd(Tag, Ifd));
      for (int Type = 0; Type < EXIF_DATA_TYPE_COUNT; ++Type)
        Sum.add(static_cast<int>(exif_tag_get_support_level_in_ifd(
            Tag, Ifd, static_cast<ExifDataType>(Type))));
    }
  }
}

int main(int Count, char **Arguments) {
  Checksum Sum;
  Draw Random(1);
  setenv("TZ", "UTC", 1);
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round)
    for (int Index = 2; Index < Count; ++Index) {
      std::ifstream File(Arguments[Index], std::ios::binary);
      const std::string Bytes((std::istreambuf_iterator<char>(File)), {});
      useData(Bytes, Random, Sum);
      // The data begin after the picture's first marker.
      const size_t At = Bytes.find("Exif");
      if (At != std::string::npos)
        useDamaged(Bytes.substr(At), Random, Sum);
    }
  useTables(Sum);
  Sum.print("libexif");
}
