// Runs Cap'n Proto's compiler and its generators of code, or uses its libraries with
// random messages. The program's arguments are `tool`, `generate` or `print` and what
// these need, or the number of rounds, a folder and the schema there.
#include "driver.h"
#include <capnp/any.h>
#include <capnp/compat/json.h>
#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/pretty-print.h>
#include <capnp/schema-parser.h>
#include <capnp/serialize-packed.h>
#include <capnp/serialize-text.h>
#include <capnp/serialize.h>
#include <kj/encoding.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <kj/map.h>
#include <kj/mutex.h>
#include <kj/string-tree.h>
#include <kj/thread.h>

#include <cstdlib>
#include <unistd.h>

using namespace capnp;

int toolMain(int Count, char **Arguments);
int generateMain(int Count, char **Arguments);
int printMain(int Count, char **Arguments);

static void add(Checksum &Sum, kj::StringPtr Text) {
  Sum.add(std::string_view(Text.begin(), Text.size()));
}

template <typename Item>
static void addBytes(Checksum &Sum, kj::ArrayPtr<Item> Array) {
  const auto Bytes = Array.asBytes();
  Sum.add(std::string_view(reinterpret_cast<const char *>(Bytes.begin()),
                           Bytes.size()));
}

// Calls an action that may fail.
template <typename Action> static void attempt(Checksum &Sum, Action Try) {
  KJ_IF_MAYBE(Error, kj::runCatchingExceptions(Try))
  add(Sum, Error->getDescription());
}

static void fill(DynamicStruct::Builder Into, int Depth, Draw &Random);

static kj::String makeText(Draw &Random) {
  return kj::heapString(Random.text(3).c_str());
}

static bool isShallow(Type Of, int Depth) {
  return Depth > 0 || !(Of.isStruct() || Of.isList());
}

// Calls Set with a random value of a type. Depth limits the nesting.
template <typename Action>
static void draw(Type Of, Draw &Random, const Action &Set) {
  const auto Number = static_cast<int64_t>(Random.below(100));
  switch (Of.which()) {
  case schema::Type::BOOL:
    return Set(DynamicValue::Reader(Number % 2 == 0));
  case schema::Type::INT8:
  case schema::Type::INT16:
  case schema::Type::INT32:
  case schema::Type::INT64:
    return Set(DynamicValue::Reader(-Number));
  case schema::Type::UINT8:
  case schema::Type::UINT16:
  case schema::Type::UINT32:
  case schema::Type::UINT64:
    return Set(DynamicValue::Reader(Number));
  case schema::Type::FLOAT32:
  case schema::Type::FLOAT64:
    return Set(DynamicValue::Reader(static_cast<double>(Number) / 8));
  case schema::Type::TEXT: {
    const kj::String Text = makeText(Random);
    return Set(DynamicValue::Reader(Text.asPtr()));
  }
  case schema::Type::DATA: {
    const kj::String Text = makeText(Random);
    return Set(DynamicValue::Reader(Data::Reader(Text.asBytes())));
  }
  case schema::Type::ENUM: {
    const auto Names = Of.asEnum().getEnumerants();
    return Set(
        DynamicValue::Reader(DynamicEnum(Names[Random.below(Names.size())])));
  }
  default: // Other values are built in their places.
    return;
  }
}

static void fill(DynamicList::Builder Into, int Depth, Draw &Random) {
  const Type Element = Into.getSchema().getElementType();
  for (uint Index = 0; Index < Into.size(); ++Index)
    if (Element.isStruct())
      fill(Into[Index].as<DynamicStruct>(), Depth - 1, Random);
    else if (Element.isList())
      fill(Into.init(Index, Random.below(4)).as<DynamicList>(), Depth - 1,
           Random);
    else
      draw(Element, Random, [&](DynamicValue::Reader Value) {
        Into.set(Index, Value);
      });
}

static void fill(DynamicStruct::Builder Into, StructSchema::Field Field,
                 int Depth, Draw &Random) {
  const Type Of = Field.getType();
  if (Field.getProto().isGroup())
    fill(Into.init(Field).as<DynamicStruct>(), Depth, Random);
  else if (!isShallow(Of, Depth))
    return;
  else if (Of.isStruct())
    fill(Into.init(Field).as<DynamicStruct>(), Depth - 1, Random);
  else if (Of.isList())
    fill(Into.init(Field, Random.below(4)).as<DynamicList>(), Depth - 1,
         Random);
  else
    draw(Of, Random, [&](DynamicValue::Reader Value) {
      Into.set(Field, Value);
    });
}

static void fill(DynamicStruct::Builder Into, int Depth, Draw &Random) {
  const StructSchema Schema = Into.getSchema();
  for (const auto Field : Schema.getNonUnionFields())
    fill(Into, Field, Depth, Random);
  const auto Choices = Schema.getUnionFields();
  if (Choices.size() > 0)
    fill(Into, Choices[Random.below(Choices.size())], Depth, Random);
}

// Adds a message in all formats, and reads it again.
static void store(MallocMessageBuilder &Message, StructSchema Schema,
                  Checksum &Sum) {
  const auto Root = Message.getRoot<DynamicStruct>(Schema).asReader();
  Sum.add(static_cast<uint64_t>(Root.totalSize().wordCount));
  const kj::Array<word> Words = messageToFlatArray(Message);
  addBytes(Sum, Words.asPtr());
  FlatArrayMessageReader Flat(Words);
  const auto Read = Flat.getRoot<DynamicStruct>(Schema);
  Sum.add(AnyStruct::Reader(Root) == AnyStruct::Reader(Read));
  add(Sum, kj::str(Read));
  add(Sum, prettyPrint(Read).flatten());
  kj::VectorOutputStream Packed;
  writePackedMessage(Packed, Message);
  addBytes(Sum, Packed.getArray());
  kj::ArrayInputStream Input(Packed.getArray());
  kj::BufferedInputStreamWrapper Buffered(Input);
  PackedMessageReader Unpacked(Buffered);
  addBytes(Sum, AnyStruct::Reader(Unpacked.getRoot<DynamicStruct>(Schema))
                    .canonicalize()
                    .asPtr());
  Sum.add(static_cast<uint64_t>(
      computeUnpackedSizeInWords(Packed.getArray())));
  kj::VectorOutputStream Segments;
  writeMessage(Segments, Message);
  kj::ArrayInputStream Plain(Segments.getArray());
  InputStreamMessageReader Streamed(Plain);
  TextCodec Texts;
  const kj::String Text =
      Texts.encode(Streamed.getRoot<DynamicStruct>(Schema));
  add(Sum, Text);
  MallocMessageBuilder Other(64, AllocationStrategy::FIXED_SIZE);
  attempt(Sum, [&] {
    Texts.decode(Text, Other.initRoot<DynamicStruct>(Schema));
    Sum.add(Other.getRoot<AnyPointer>().asReader() ==
            Flat.getRoot<AnyPointer>());
  });
}

static void useJson(MallocMessageBuilder &Message, StructSchema Schema,
                    Checksum &Sum) {
  JsonCodec Codec;
  for (bool IsPretty : {false, true})
    attempt(Sum, [&] {
      Codec.setPrettyPrint(IsPretty);
      Codec.setHasMode(IsPretty ? HasMode::NON_DEFAULT : HasMode::NON_NULL);
      const kj::String Text = Codec.encode(
          DynamicValue::Reader(
              Message.getRoot<DynamicStruct>(Schema).asReader()),
          Schema);
      add(Sum, Text);
      MallocMessageBuilder Read, Raw;
      Codec.decode(Text, Read.initRoot<DynamicStruct>(Schema));
      add(Sum, kj::str(Read.getRoot<DynamicStruct>(Schema)));
      const auto Value = Raw.initRoot<JsonValue>();
      Codec.decodeRaw(Text, Value);
      add(Sum, Codec.encodeRaw(Value.asReader()));
      add(Sum, kj::str(Value));
    });
}

// Moves and copies parts of a message.
static void useOrphans(MallocMessageBuilder &Message, StructSchema Schema,
                       Draw &Random, Checksum &Sum) {
  auto Root = Message.getRoot<DynamicStruct>(Schema);
  MallocMessageBuilder Target(16);
  const Orphanage Place = Target.getOrphanage();
  auto Copy = Place.newOrphanCopy(Root.asReader());
  for (const auto Field : Schema.getFields()) {
    const Type Of = Field.getType();
    if (Field.getProto().isGroup() || !Root.has(Field))
      continue;
    if (Random.below(3) == 0)
      Copy.get().clear(Field);
    else if (Random.below(2) == 0)
      Copy.get().adopt(Field, Place.newOrphanCopy(
                                  Root.asReader().get(Field)));
    else if (Of.isText() || Of.isData() || Of.isList())
      Copy.get().adopt(Field, Copy.get().disown(Field));
  }
  add(Sum, kj::str(Copy.getReader()));
  Target.adoptRoot(kj::mv(Copy));
  for (const auto Segment : Target.getSegmentsForOutput())
    addBytes(Sum, Segment);
  MallocMessageBuilder Last;
  Last.setRoot(Target.getRoot<DynamicStruct>(Schema).asReader());
  Sum.add(Last.isCanonical());
  for (const char *Name : {"int32Field", "textList", "nothing"})
    attempt(Sum, [&] {
      add(Sum, kj::str(Root.get(Name)));
      Root.set(Name, "text");
    });
}

// Reads a message of which bytes have been changed.
static void readDamaged(MallocMessageBuilder &Message, StructSchema Schema,
                        Draw &Random, Checksum &Sum) {
  kj::Array<word> Words = messageToFlatArray(Message);
  kj::ArrayPtr<kj::byte> Bytes = Words.asBytes();
  for (int Left = 0; Left < 5; ++Left)
    Bytes[8 + Random.below(static_cast<uint32_t>(Bytes.size() - 8))] ^=
        static_cast<kj::byte>(1 << Random.below(8));
  attempt(Sum, [&] {
    ReaderOptions Options;
    Options.traversalLimitInWords = 10000;
    Options.nestingLimit = 8;
    FlatArrayMessageReader Read(Words, Options);
    add(Sum, kj::str(Read.getRoot<DynamicStruct>(Schema)));
  });
}

static void addSchema(ParsedSchema Of, Checksum &Sum) {
  add(Sum, Of.getProto().getDisplayName());
  add(Sum, Of.getShortDisplayName());
  for (const ParsedSchema Each : Of.getAllNested())
    addSchema(Each, Sum);
  if (!Of.getProto().isStruct() || Of.getProto().getIsGeneric())
    return;
  for (const auto Field : Of.asStruct().getFields())
    add(Sum, kj::str(Field.getProto()));
}

static void useEncodings(Draw &Random, Checksum &Sum) {
  const std::string Text = Random.text(4) + "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
                                            " \"&=?/\n\t%";
  const kj::ArrayPtr<const char> Chars(Text.data(), Text.size());
  const auto Bytes = Chars.asBytes();
  add(Sum, kj::encodeHex(Bytes));
  addBytes(Sum, kj::decodeHex(kj::encodeHex(Bytes)).asPtr());
  add(Sum, kj::encodeUriComponent(Chars));
  add(Sum, kj::decodeUriComponent(kj::encodeUriComponent(Chars)));
  add(Sum, kj::encodeUriFragment(Chars));
  add(Sum, kj::encodeUriPath(Chars));
  add(Sum, kj::encodeUriUserInfo(Chars));
  add(Sum, kj::encodeWwwForm(Chars));
  add(Sum, kj::decodeWwwForm(kj::encodeWwwForm(Chars)));
  add(Sum, kj::encodeCEscape(Chars));
  add(Sum, kj::decodeCEscape(kj::encodeCEscape(Chars)));
  add(Sum, kj::encodeBase64(Bytes, true));
  add(Sum, kj::encodeBase64Url(Bytes));
  addBytes(Sum, kj::decodeBase64(kj::encodeBase64(Bytes)).asPtr());
  add(Sum, kj::decodeUtf16(kj::encodeUtf16(Chars)));
  add(Sum, kj::decodeUtf32(kj::encodeUtf32(Chars)));
}

static void useFolder(const kj::Directory &Folder, Draw &Random,
                      Checksum &Sum) {
  using kj::Path;
  using kj::WriteMode;
  const auto Mode = WriteMode::CREATE | WriteMode::MODIFY;
  const auto Parents = Mode | WriteMode::CREATE_PARENT;
  const kj::String Text = makeText(Random);
  const auto File = Folder.openFile(Path({"a", "b", "file"}), Parents);
  File->writeAll(Text);
  File->write(5, Text.asBytes());
  File->zero(2, 2);
  File->truncate(Text.size() + 1);
  addBytes(Sum, File->readAllBytes().asPtr());
  addBytes(Sum, File->mmap(0, 4).asPtr());
  addBytes(Sum, File->mmapPrivate(0, 3).asPtr());
  {
    const auto Mapped = File->mmapWritable(0, 4);
    Mapped->get()[1] = 'x';
    Mapped->changed(Mapped->get());
    Mapped->sync(Mapped->get());
  }
  Folder.appendFile(Path("log"), Mode)->write(Text.begin(), Text.size());
  // A folder in memory cannot transfer its own files.
  const auto Source = Folder.openSubdir(Path("a"), Mode);
  auto Replacer = Source->replaceFile(Path("new"), Mode);
  Replacer->get().copy(0, *File, 0, 9);
  Replacer->commit();
  Folder.symlink(Path("link"), "a/b/file", Mode);
  add(Sum, Folder.readlink(Path("link")));
  Folder.transfer(Path("moved"), Mode, *Source, Path("new"),
                  kj::TransferMode::MOVE);
  Folder.transfer(Path("copy"), Mode, *Source, Path("b"),
                  kj::TransferMode::COPY);
  const auto Inner = Folder.openSubdir(Path("c"), Mode);
  auto Whole = Folder.replaceSubdir(Path("d"), Mode);
  Whole->get().openFile(Path("x"), Mode)->writeAll("inside");
  Whole->commit();
  Inner->createTemporary()->writeAll("nameless");
  for (const auto &Entry : Folder.listEntries()) {
    add(Sum, Entry.name);
    Sum.add(static_cast<int>(Entry.type));
  }
  for (const auto &Name : Folder.openSubdir(Path("copy"))->listNames())
    add(Sum, Name);
  Sum.add(File->stat().size + Folder.lstat(Path("moved")).size);
  add(Sum, Folder.openFile(Path("moved"))->readAllText());
  Sum.add(Folder.exists(Path("new")));
  for (const char *Name : {"a", "c", "copy", "d", "link", "log", "moved"})
    Folder.remove(Path(Name));
  attempt(Sum, [&] { Folder.openFile(Path("none")); });
  Sum.add(Folder.tryRemove(Path("none")));
}

static void usePaths(Checksum &Sum) {
  const kj::Path Base({"a", "b"});
  for (const char *Text : {"c/../d", "/root/x", "..", "../../..", "e//f/."})
    attempt(Sum, [&] { add(Sum, Base.eval(Text).toString(true)); });
  for (const char *Text : {"c:\\d\\e", "..\\f", "\\g"})
    attempt(Sum, [&] { add(Sum, Base.evalWin32(Text).toString()); });
  add(Sum, Base.append("c").parent().toString());
  add(Sum, Base.basename().toWin32String());
  Sum.add(Base.startsWith(kj::Path("a")) + 2 * (Base < kj::Path("b")));
}

static void useTables(Draw &Random, Checksum &Sum) {
  kj::HashMap<kj::String, int> ByName;
  kj::TreeMap<uint, kj::String> InOrder;
  kj::HashSet<uint> Numbers;
  kj::TreeSet<uint> Sorted;
  for (int Index = 0; Index < 300; ++Index) {
    const uint Number = Random.below(500);
    kj::String Name = makeText(Random);
    InOrder.upsert(Number, kj::heapString(Name),
                   [](kj::String &Old, kj::String &&New) { Old = kj::mv(New); });
    ByName.upsert(kj::mv(Name), Index, [](int &Old, int &&New) { Old += New; });
    Numbers.upsert(uint(Number), [](uint &, uint &&) {});
    Sorted.upsert(uint(Number), [](uint &, uint &&) {});
    if (Index % 4 == 0) {
      InOrder.erase(Random.below(500));
      Sorted.eraseMatch(Number);
    }
  }
  for (const auto &Entry : InOrder)
    add(Sum, kj::str(Entry.key, Entry.value));
  for (uint Each : Sorted)
    Sum.add(Each);
  for (const auto &Entry : InOrder.range(100, 200))
    Sum.add(Entry.key);
  Sum.add(static_cast<uint64_t>(ByName.size() * 1000 + Numbers.size()));
}

static void useThread(Checksum &Sum) {
  kj::MutexGuarded<int> Count(0);
  {
    kj::Thread Other([&] { *Count.lockExclusive() = 5; });
  }
  Sum.add(*Count.lockShared());
  kj::Lazy<int> Late;
  Sum.add(Late.get([](kj::SpaceFor<int> &Space) { return Space.construct(9); }));
}

static void useErrors(Draw &Random, Checksum &Sum) {
  const int Number = static_cast<int>(Random.below(100)) + 1;
  attempt(Sum, [&] { KJ_REQUIRE(Number == 0, "not zero", Number); });
  attempt(Sum, [&] { KJ_FAIL_ASSERT("a failure", Random.word().c_str()); });
  attempt(Sum, [&] { KJ_SYSCALL(close(-1)); });
  attempt(Sum, [&] {
    KJ_CONTEXT("in a context", Number);
    KJ_UNIMPLEMENTED("nothing here");
  });
  attempt(Sum, [&] { kj::StringPtr("12x").parseAs<int>(); });
  add(Sum, kj::strTree("a ", Number, kj::strTree(" tree ", 1.5)).flatten());
}

static void useAll(int Rounds, kj::StringPtr Folder, kj::StringPtr Name,
                   Checksum &Sum) {
  Draw Random(1);
  const auto Files = kj::newDiskFilesystem();
  const auto Path = Files->getCurrentPath().evalNative(Folder);
  const auto Base = Files->getRoot().openSubdir(Path);
  const kj::ReadableDirectory *Imports[] = {Base.get()};
  const SchemaParser Parser;
  const ParsedSchema File = Parser.parseFromDirectory(
      *Base, kj::Path::parse(Name), kj::arrayPtr(Imports, 1));
  addSchema(File, Sum);
  const auto Memory = kj::newInMemoryDirectory(kj::nullClock());
  const auto Disk = Files->getCurrent().openSubdir(
      kj::Path("folder"), kj::WriteMode::CREATE | kj::WriteMode::MODIFY);
  for (int Round = 0; Round < Rounds; ++Round) {
    for (const char *Type :
         {"TestAllTypes", "TestDefaults", "TestUnion", "TestLists",
          "TestGroups", "TestInterleavedGroups", "TestUnnamedUnion"}) {
      const StructSchema Schema = File.getNested(Type).asStruct();
      MallocMessageBuilder Message(32 + Random.below(500));
      fill(Message.initRoot<DynamicStruct>(Schema), 2, Random);
      store(Message, Schema, Sum);
      useJson(Message, Schema, Sum);
      useOrphans(Message, Schema, Random, Sum);
      readDamaged(Message, Schema, Random, Sum);
    }
    useFolder(*Memory, Random, Sum);
    useFolder(*Disk, Random, Sum);
    useEncodings(Random, Sum);
    useTables(Random, Sum);
    useErrors(Random, Sum);
    usePaths(Sum);
    useThread(Sum);
  }
}

int main(int Count, char **Arguments) {
  // Without it, the compiler ends before functions for the end of a program are called.
  setenv("KJ_CLEAN_SHUTDOWN", "1", 1);
  const std::string_view Program = Count > 1 ? Arguments[1] : "";
  if (Program == "tool")
    return toolMain(Count - 1, Arguments + 1);
  if (Program == "generate")
    return generateMain(Count - 1, Arguments + 1);
  if (Program == "print")
    return printMain(Count - 1, Arguments + 1);
  Checksum Sum;
  useAll(std::atoi(Arguments[1]), Arguments[2], Arguments[3], Sum);
  Sum.print("capnproto");
}
