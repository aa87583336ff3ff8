// Parses, changes, copies, packs, unpacks and prints JSON with Jansson. The program's
// argument is a file with a record of JSON in each line.
#include "driver.h"
#include "jansson.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>
#include <vector>

static void addError(const json_error_t &Error, Checksum &Sum) {
  Sum.add(Error.text);
  Sum.add(Error.source);
  Sum.add(Error.line * 1000 + Error.column);
  Sum.add(static_cast<int>(json_error_code(&Error)));
}

static void addText(const json_t *Value, size_t Flags, Checksum &Sum) {
  char *Text = json_dumps(Value, Flags | JSON_ENCODE_ANY);
  Sum.add(Text != nullptr ? Text : "none");
  std::free(Text);
}

static int append(const char *Text, size_t Size, void *Into) {
  static_cast<std::string *>(Into)->append(Text, Size);
  return 0;
}

// A text that Jansson reads in small parts.
struct Source {
  const std::string &Text;
  size_t At = 0;

  static size_t read(void *Into, size_t Most, void *From) {
    auto &Self = *static_cast<Source *>(From);
    const size_t Size = Self.Text.copy(static_cast<char *>(Into),
                                       Most < 77 ? Most : 77, Self.At);
    Self.At += Size;
    return Size;
  }
};

// Adds all values in a value.
static void visit(json_t *Value, Checksum &Sum) {
  switch (json_typeof(Value)) {
  case JSON_OBJECT: {
    const char *Key = nullptr;
    size_t Size = 0;
    json_t *Member = nullptr;
    json_object_keylen_foreach(Value, Key, Size, Member) {
      Sum.add(std::string_view(Key, Size));
      visit(Member, Sum);
    }
    break;
  }
  case JSON_ARRAY: {
    size_t Index = 0;
    json_t *Item = nullptr;
    json_array_foreach(Value, Index, Item) visit(Item, Sum);
    break;
  }
  case JSON_STRING:
    Sum.add(std::string_view(json_string_value(Value),
                             json_string_length(Value)));
    break;
  case JSON_INTEGER:
  case JSON_REAL:
    Sum.add(json_number_value(Value));
    break;
  default:
    Sum.add(json_is_true(Value) + 2 * json_is_null(Value));
  }
}

static void changeObject(json_t *Object, Draw &Random, Checksum &Sum) {
  json_object_set_new(Object, "price", json_real(Random.below(99) / 4.0));
  json_object_set_new_nocheck(Object, "more", json_integer(Random.below(99)));
  json_object_setn_new(Object, "name and more", 4, json_string("a name"));
  json_object_setn_new_nocheck(Object, "x\0y", 3, json_false());
  Sum.add(json_object_del(Object, "open"));
  Sum.add(json_object_deln(Object, "nothing here", 7));
  json_t *Price = json_object_get(Object, "price");
  Sum.add(json_real_value(Price));
  json_real_set(Price, 2.5);
  json_t *More = json_object_getn(Object, "more", 4);
  json_integer_set(More, json_integer_value(More) * 2);
  json_string_set(json_object_get(Object, "group"), Random.word().c_str());
  json_string_setn(json_object_get(Object, "name"), "another name", 7);
  json_string_set_nocheck(json_object_get(Object, "text"), "short");
  void *Place = json_object_iter_at(Object, "name");
  json_object_iter_set_new(Object, Place, json_stringn("a\0b", 3));
  Sum.add(json_object_iter_key(Place));
  json_t *Other = json_pack("{s:i, s:[b,n,f], s:{s:s}}", "id", 5, "tags", 1,
                            0.5, "inner", "key", "value");
  json_object_update_existing(Object, Other);
  json_object_update_missing(Object, Other);
  json_object_update_recursive(Object, Other);
  json_object_update(Other, Object);
  Sum.add(json_equal(Object, Other));
  Sum.add(static_cast<uint64_t>(json_object_size(Other)));
  json_object_clear(Other);
  json_decref(Other);
}

static void changeArray(json_t *Array, Draw &Random, Checksum &Sum) {
  json_array_append_new(Array, json_string_nocheck(Random.word().c_str()));
  json_array_insert_new(Array, 1, json_stringn_nocheck("abc", 2));
  json_array_set_new(Array, 0, json_integer(Random.below(1000)));
  json_t *Other = json_array();
  for (uint32_t Left = Random.below(30); Left > 0; --Left)
    json_array_insert_new(Other, 0, json_integer(Left));
  json_array_extend(Array, Other);
  json_array_remove(Array, 2);
  Sum.add(json_integer_value(json_array_get(Array, 0)) + 0.0);
  Sum.add(static_cast<uint64_t>(json_array_size(Array)));
  json_array_clear(Other);
  json_decref(Other);
}

static void unpack(json_t *Object, Checksum &Sum) {
  json_error_t Error{};
  int Number = 0, IsSet = 0;
  double Price = 0;
  const char *Group = "", *Text = "";
  size_t Size = 0;
  json_t *Tags = nullptr;
  Sum.add(json_unpack_ex(Object, &Error, 0,
                         "{s:i, s:s, s:F, s:o, s:s%, s?:b}", "id", &Number,
                         "group", &Group, "price", &Price, "tags", &Tags,
                         "text", &Text, &Size, "open", &IsSet));
  addError(Error, Sum);
  Sum.add(Number + Price);
  Sum.add(Group);
  Sum.add(std::string_view(Text, Size));
  json_int_t First = 0;
  Sum.add(json_unpack(Tags, "[I, s*]", &First, &Text));
  for (const char *Format :
       {"{s:i!}", "[i]", "{s:s}", "{s:q}", "", "{s:i}}", "{s:n}"}) {
    Sum.add(json_unpack_ex(Object, &Error, JSON_VALIDATE_ONLY, Format, "id"));
    addError(Error, Sum);
  }
}

static void pack(Draw &Random, Checksum &Sum) {
  json_error_t Error{};
  json_t *Item = json_integer(3);
  const std::string Word = Random.word();
  json_t *Made = json_pack_ex(
      &Error, 0, "{s:[i,I,f,b,n], s+#:s#, s:o, s:O?, s:s?, s:s++, s:[o*,s*]}",
      "list", 1, static_cast<json_int_t>(Random.below(999)), 0.25, 0,
      Word.c_str(), "keyless", 3, "a long text", 6, "item",
      json_deep_copy(Item), "same", Item, "none", nullptr, "joined", "one",
      "two", "three", "rest", nullptr, nullptr);
  addError(Error, Sum);
  if (Made != nullptr)
    addText(Made, JSON_SORT_KEYS, Sum);
  json_decref(Made);
  json_decref(Item);
  for (const char *Format : {"{i:i}", "[", "{s:}", "q", "ss", "[s", "{s:i"}) {
    json_t *Wrong = json_pack_ex(&Error, 0, Format, "key", 1);
    addError(Error, Sum);
    json_decref(Wrong);
  }
  json_t *Printed = json_sprintf("%s %d", Word.c_str(), 5);
  addText(Printed, 0, Sum);
  json_decref(Printed);
}

// Writes a value in all ways, and reads it again.
static void store(json_t *Value, Checksum &Sum) {
  json_error_t Error{};
  std::vector<char> Buffer(json_dumpb(Value, nullptr, 0, 0));
  Sum.add(static_cast<uint64_t>(
      json_dumpb(Value, Buffer.data(), Buffer.size(), 0)));
  json_t *Read[5] = {
      json_loadb(Buffer.data(), Buffer.size(), JSON_ALLOW_NUL, &Error)};
  Sum.add(json_dump_file(Value, "written", JSON_INDENT(2)));
  Read[1] = json_load_file("written", JSON_ALLOW_NUL, &Error);
  const int Number = open("written", O_RDWR | O_TRUNC);
  Sum.add(json_dumpfd(Value, Number, JSON_COMPACT));
  lseek(Number, 0, SEEK_SET);
  Read[2] = json_loadfd(Number, JSON_ALLOW_NUL, &Error);
  close(Number);
  std::FILE *File = std::fopen("written", "w+");
  Sum.add(json_dumpf(Value, File, JSON_ENSURE_ASCII));
  std::rewind(File);
  Read[3] = json_loadf(File, JSON_ALLOW_NUL, &Error);
  std::fclose(File);
  std::string Text;
  Sum.add(json_dump_callback(Value, append, &Text, JSON_ESCAPE_SLASH));
  Source From{Text};
  Read[4] = json_load_callback(Source::read, &From, JSON_ALLOW_NUL, &Error);
  for (json_t *Each : Read) {
    Sum.add(json_equal(Value, Each));
    json_decref(Each);
  }
}

static void tryTexts(Checksum &Sum) {
  for (const char *Text :
       {"{\"a\": 1, \"a\": 2}", "[1e400]", "[123456789012345678901]", "[1,]",
        "{\"a\" 1}", "[\"\\ud83d\\ude00 \\u20ac\\/\"]", "[\"\\ud83d\"]",
        "[\"\\q\"]", "[\"open", "[tru]", "[\"\x01\"]", "[\"\xff\"]", "[1] 2",
        "[\"\\u0000\"]", "", "5", "\"text\"", "[-0.0e-3, 1E+2, -7]", "[01]",
        "[-]", "[1.]", "[1e]", "{", "{1:2}", "[[[[[[]]]]]]", "null",
        "[\"\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\"]", "[\"\xc0\x80\"]"})
    for (size_t Flags : {size_t(0), size_t(JSON_REJECT_DUPLICATES),
                         size_t(JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL |
                                JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL)}) {
      json_error_t Error{};
      json_t *Read = json_loads(Text, Flags, &Error);
      addError(Error, Sum);
      if (Read != nullptr) {
        visit(Read, Sum);
        addText(Read, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(5), Sum);
      }
      json_decref(Read);
    }
  json_error_t Error{};
  Sum.add(json_load_file("not-there", 0, &Error) == nullptr);
  addError(Error, Sum);
}

int main(int, char **Arguments) {
  std::ifstream File(Arguments[1]);
  Draw Random(1);
  Checksum Sum;
  // Without it, the seed would be random.
  json_object_seed(1);
  json_malloc_t Allocate = nullptr;
  json_free_t Free = nullptr;
  json_get_alloc_funcs(&Allocate, &Free);
  json_set_alloc_funcs(Allocate, Free);
  Sum.add(jansson_version_str());
  Sum.add(jansson_version_cmp(2, 1, 0) > 0);
  json_t *All = json_array();
  for (std::string Line; std::getline(File, Line);) {
    json_error_t Error{};
    json_t *Record = json_loads(Line.c_str(), 0, &Error);
    addError(Error, Sum);
    if (Record == nullptr)
      continue;
    unpack(Record, Sum);
    json_t *Copy = json_copy(Record), *Deep = json_deep_copy(Record);
    changeArray(json_object_get(Deep, "tags"), Random, Sum);
    changeObject(Deep, Random, Sum);
    Sum.add(json_equal(Record, Copy) + 2 * json_equal(Record, Deep));
    visit(Deep, Sum);
    addText(Deep, JSON_SORT_KEYS | JSON_INDENT(3), Sum);
    addText(Record, JSON_COMPACT | JSON_ENSURE_ASCII, Sum);
    pack(Random, Sum);
    json_array_append(All, Deep);
    json_decref(Record);
    json_decref(Copy);
    json_decref(Deep);
  }
  store(All, Sum);
  tryTexts(Sum);
  json_decref(All);
  Sum.print("jansson");
}
