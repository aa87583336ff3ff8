// Compiles schemas to all languages with the compiler of Protocol Buffers, and
// fills, writes, reads, compares and prints random messages of their types. The
// program's arguments are the folder of the schemas and the number of messages
// of a type.
#include "driver.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/api.pb.h"
#include "google/protobuf/compiler/command_line_interface.h"
#include "google/protobuf/compiler/cpp/cpp_generator.h"
#include "google/protobuf/compiler/csharp/csharp_generator.h"
#include "google/protobuf/compiler/importer.h"
#include "google/protobuf/compiler/java/java_generator.h"
#include "google/protobuf/compiler/java/kotlin_generator.h"
#include "google/protobuf/compiler/objectivec/objectivec_generator.h"
#include "google/protobuf/compiler/parser.h"
#include "google/protobuf/compiler/php/php_generator.h"
#include "google/protobuf/compiler/plugin.pb.h"
#include "google/protobuf/compiler/python/pyi_generator.h"
#include "google/protobuf/compiler/python/python_generator.h"
#include "google/protobuf/compiler/ruby/ruby_generator.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/delimited_message_util.h"
#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/field_mask_util.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "google/protobuf/util/time_util.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "google/protobuf/wrappers.pb.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

using namespace google::protobuf;

static Checksum Sum;

static const char *const Schemas[] = {"map_unittest",
                                      "test_messages_proto2",
                                      "test_messages_proto3",
                                      "unittest",
                                      "unittest_arena",
                                      "unittest_custom_options",
                                      "unittest_lite",
                                      "unittest_mset",
                                      "unittest_no_field_presence",
                                      "unittest_proto3_optional",
                                      "unittest_well_known_types"};

static std::string pathOf(const std::string &Schema) {
  return "google/protobuf/" + Schema + ".proto";
}

// Adds each file of a folder.
static void addFiles(const std::string &Folder) {
  std::vector<std::filesystem::path> Found;
  for (const auto &Each : std::filesystem::recursive_directory_iterator(Folder))
    if (Each.is_regular_file())
      Found.push_back(Each.path());
  std::sort(Found.begin(), Found.end());
  for (const auto &Path : Found) {
    std::ifstream File(Path, std::ios::binary);
    Sum.add(Path.c_str());
    Sum.add(std::string(std::istreambuf_iterator<char>(File),
                        std::istreambuf_iterator<char>()));
  }
  std::filesystem::remove_all(Folder);
}

// Runs the compiler with arguments, like the program protoc.
static void compile(std::vector<std::string> Arguments) {
  compiler::cpp::CppGenerator Cpp;
  compiler::java::JavaGenerator Java;
  compiler::java::KotlinGenerator Kotlin;
  compiler::python::Generator Python;
  compiler::python::PyiGenerator Pyi;
  compiler::csharp::Generator CSharp;
  compiler::objectivec::ObjectiveCGenerator ObjectiveC;
  compiler::php::Generator Php;
  compiler::ruby::Generator Ruby;
  compiler::CommandLineInterface Compiler;
  Compiler.RegisterGenerator("--cpp_out", "--cpp_opt", &Cpp, "C++");
  Compiler.RegisterGenerator("--java_out", "--java_opt", &Java, "Java");
  Compiler.RegisterGenerator("--kotlin_out", "--kotlin_opt", &Kotlin, "Kotlin");
  Compiler.RegisterGenerator("--python_out", "--python_opt", &Python, "Python");
  Compiler.RegisterGenerator("--pyi_out", &Pyi, "Python's types");
  Compiler.RegisterGenerator("--csharp_out", "--csharp_opt", &CSharp, "C#");
  Compiler.RegisterGenerator("--objc_out", "--objc_opt", &ObjectiveC,
                             "Objective-C");
  Compiler.RegisterGenerator("--php_out", "--php_opt", &Php, "PHP");
  Compiler.RegisterGenerator("--ruby_out", "--ruby_opt", &Ruby, "Ruby");
  Compiler.SetVersionInfo("version");
  Arguments.insert(Arguments.begin(), "protoc");
  std::vector<const char *> Pointers;
  for (const std::string &Each : Arguments)
    Pointers.push_back(Each.c_str());
  Sum.add(Compiler.Run(static_cast<int>(Pointers.size()), Pointers.data()));
}

static void compileAll(const std::string &Folder) {
  const std::string Path = "--proto_path=" + Folder;
  for (const char *Schema : Schemas) {
    std::filesystem::create_directory("made");
    compile({Path, "--cpp_out=made", "--java_out=made", "--kotlin_out=made",
             "--python_out=made", "--pyi_out=made", "--objc_out=made",
             "--csharp_out=made", pathOf(Schema)});
    compile({Path, "--php_out=made", "--ruby_out=made", pathOf(Schema)});
    compile({Path, "--java_out=lite:made/lite.jar",
             "--cpp_out=lite,annotate_headers:made/lite.zip",
             "--dependency_out=made/dependencies", pathOf(Schema)});
    compile({Path, "--descriptor_set_out=made/set", "--include_imports",
             "--include_source_info", pathOf(Schema)});
    compile({"--descriptor_set_in=made/set", "--java_out=annotate_code:made",
             pathOf(Schema)});
    addFiles("made");
  }
  compile({"--version"});
  compile({"--help"});
  compile({Path, "--print_free_field_numbers", pathOf("unittest")});
  compile({Path, "--cpp_out=absent", pathOf("unittest")});
  compile({Path, "--cpp_out=.", pathOf("absent")});
}

// Fills a message with random values.
static void fill(Message &Filled, Draw &Random, int Depth) {
  const Reflection &Fields = *Filled.GetReflection();
  std::vector<const FieldDescriptor *> All;
  const Descriptor &Type = *Filled.GetDescriptor();
  for (int Index = 0; Index < Type.field_count(); ++Index)
    All.push_back(Type.field(Index));
  std::vector<const FieldDescriptor *> Extensions;
  Type.file()->pool()->FindAllExtensions(&Type, &Extensions);
  for (const FieldDescriptor *Each : Extensions)
    if (Random.below(3) == 0)
      All.push_back(Each);
  for (const FieldDescriptor *Field : All) {
    if (!Field->is_required() && Random.below(3) == 0)
      continue;
    const bool IsMessage =
        Field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (IsMessage && Depth == 0 && !Field->is_required())
      continue;
    for (uint32_t Left = Field->is_repeated() ? Random.below(4) : 1; Left > 0;
         --Left) {
      const auto Number = static_cast<int32_t>(Random.below(1 << 30));
#define SET(KIND, VALUE)                                                       \
  Field->is_repeated() ? Fields.Add##KIND(&Filled, Field, VALUE)               \
                       : Fields.Set##KIND(&Filled, Field, VALUE)
      switch (Field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        SET(Int32, Number - (1 << 29));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        SET(Int64, int64_t(Number) * Number);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        SET(UInt32, uint32_t(Number));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        SET(UInt64, uint64_t(Number) << 9);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        SET(Double, Number / 1024.0);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        SET(Float, static_cast<float>(Number % 1000) / 8.0F);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        SET(Bool, Number % 2 == 0);
        break;
      case FieldDescriptor::CPPTYPE_ENUM: {
        const EnumDescriptor &Enum = *Field->enum_type();
        SET(Enum, Enum.value(Number % Enum.value_count()));
        break;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        SET(String, Random.text(1 + Number % 3));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        fill(Field->is_repeated() ? *Fields.AddMessage(&Filled, Field)
                                  : *Fields.MutableMessage(&Filled, Field),
             Random, Depth > 0 ? Depth - 1 : 0);
        break;
      }
#undef SET
    }
  }
}

// Returns a message's bytes, in which the fields of a map have a fixed order.
static std::string bytesOf(const Message &Written) {
  std::string Bytes;
  io::StringOutputStream Stream(&Bytes);
  io::CodedOutputStream Coded(&Stream);
  Coded.SetSerializationDeterministic(true);
  Written.SerializePartialToCodedStream(&Coded);
  Coded.Trim();
  return Bytes;
}

static void add(const Message &Added) { Sum.add(bytesOf(Added)); }

// Returns whether a message's fields can be listed in the order of their bytes.
static bool hasMaps(const Descriptor &Type, int Depth = 4) {
  for (int Index = 0; Index < Type.field_count(); ++Index)
    if (const FieldDescriptor &Field = *Type.field(Index);
        Field.is_map() || (Field.message_type() && Depth > 0 &&
                           hasMaps(*Field.message_type(), Depth - 1)))
      return true;
  return false;
}

static void readAndWrite(const Message &Filled) {
  const std::string Bytes = bytesOf(Filled);
  Sum.add(Bytes);
  std::unique_ptr<Message> Read(Filled.New());
  Sum.add(Read->ParsePartialFromString(Bytes));
  Sum.add(util::MessageDifferencer::Equals(Filled, *Read));
  Sum.add(static_cast<uint64_t>(Read->ByteSizeLong()));
  add(*Read);
  // The type Empty has no fields, so all fields are unknown.
  Empty None;
  None.ParsePartialFromString(Bytes);
  add(None);
  if (!hasMaps(*Filled.GetDescriptor()))
    Sum.add(None.DebugString());
  std::string Packed;
  {
    io::StringOutputStream Stream(&Packed);
    io::GzipOutputStream Zipped(&Stream);
    util::SerializeDelimitedToZeroCopyStream(None, &Zipped);
  }
  io::ArrayInputStream Stream(Packed.data(), static_cast<int>(Packed.size()));
  io::GzipInputStream Zipped(&Stream);
  Empty Unpacked;
  Sum.add(util::ParseDelimitedFromZeroCopyStream(&Unpacked, &Zipped, nullptr));
  add(Unpacked);
  std::istringstream Text(Bytes.substr(0, Bytes.size() / 2));
  Sum.add(Read->ParsePartialFromIstream(&Text));
  add(*Read);
}

static void printAndParse(const Message &Filled) {
  std::string Text;
  TextFormat::Printer Printer;
  Printer.SetUseShortRepeatedPrimitives(true);
  Printer.SetExpandAny(true);
  Printer.SetUseUtf8StringEscaping(true);
  Sum.add(Printer.PrintToString(Filled, &Text));
  Sum.add(Text);
  std::unique_ptr<Message> Parsed(Filled.New());
  TextFormat::Parser Parser;
  Parser.AllowPartialMessage(true);
  Sum.add(Parser.ParseFromString(Text, Parsed.get()));
  add(*Parsed);
  Text[Text.size() / 2] = '}';
  Sum.add(TextFormat::ParseFromString(Text, Parsed.get()));
}

static void useJson(const Message &Filled, util::TypeResolver &Types) {
  const std::string Url =
      "type.googleapis.com/" + Filled.GetDescriptor()->full_name();
  std::string Json, Bytes;
  util::JsonPrintOptions Options;
  Options.add_whitespace = true;
  Options.preserve_proto_field_names = true;
  Options.always_print_primitive_fields = Filled.ByteSizeLong() % 2 == 0;
  Sum.add(util::BinaryToJsonString(&Types, Url, bytesOf(Filled), &Json, Options)
              .ToString());
  Sum.add(Json);
  Sum.add(util::JsonToBinaryString(&Types, Url, Json, &Bytes).ToString());
  std::unique_ptr<Message> Read(Filled.New());
  Sum.add(Read->ParsePartialFromString(Bytes));
  add(*Read);
  Json[Json.size() / 2] = ']';
  Sum.add(util::JsonToBinaryString(&Types, Url, Json, &Bytes).ok());
}

static void compare(const Message &First, const Message &Second) {
  util::MessageDifferencer Differencer;
  Differencer.set_repeated_field_comparison(util::MessageDifferencer::AS_SET);
  Differencer.set_scope(util::MessageDifferencer::PARTIAL);
  util::DefaultFieldComparator Comparator;
  Comparator.set_float_comparison(util::DefaultFieldComparator::APPROXIMATE);
  Differencer.set_field_comparator(&Comparator);
  Sum.add(Differencer.Compare(First, Second));
  Sum.add(util::MessageDifferencer::ApproximatelyEquivalent(First, Second));
  if (hasMaps(*First.GetDescriptor()))
    return;
  std::string Report;
  util::MessageDifferencer Reporting;
  Reporting.set_report_moves(true);
  Reporting.ReportDifferencesToString(&Report);
  Sum.add(Reporting.Compare(First, Second));
  Sum.add(Report);
}

static void change(Message &First, Message &Second, Draw &Random) {
  const Reflection &Fields = *First.GetReflection();
  std::vector<const FieldDescriptor *> Set;
  Fields.ListFields(First, &Set);
  for (const FieldDescriptor *Field : Set) {
    if (!Field->is_repeated()) {
      if (Random.below(4) == 0)
        Fields.ClearField(&First, Field);
      continue;
    }
    const int Size = Fields.FieldSize(First, Field);
    Fields.SwapElements(&First, Field, 0, Size - 1);
    if (Random.below(2) == 0)
      Fields.RemoveLast(&First, Field);
  }
  add(First);
  Fields.SwapFields(&First, &Second, Set);
  First.MergeFrom(Second);
  add(First);
  Fields.Swap(&First, &Second);
  Second.DiscardUnknownFields();
  std::vector<std::string> Missing;
  Second.FindInitializationErrors(&Missing);
  for (const std::string &Each : Missing)
    Sum.add(Each);
  Sum.add(Second.IsInitialized());
  add(Second);
  Arena Space;
  std::unique_ptr<Message> Copy(Second.New());
  Message *Owned = Second.New(&Space);
  Owned->CopyFrom(Second);
  Copy->CopyFrom(*Owned);
  Fields.Swap(Copy.get(), Owned);
  add(*Owned);
  Sum.add(Second.SpaceUsedLong() > 0);
}

static void use(const Message &Prototype, util::TypeResolver &Types,
                int Count) {
  Draw Random(Prototype.GetDescriptor()->full_name().size());
  for (int Left = Count; Left > 0; --Left) {
    std::unique_ptr<Message> First(Prototype.New()), Second(Prototype.New());
    fill(*First, Random, 3);
    fill(*Second, Random, 2);
    readAndWrite(*First);
    printAndParse(*First);
    useJson(*First, Types);
    compare(*First, *Second);
    change(*First, *Second, Random);
    First->Clear();
  }
}

struct Errors : compiler::MultiFileErrorCollector {
  void AddError(const std::string &File, int Line, int Column,
                const std::string &Message) override {
    Sum.add(File + Message);
    Sum.add(Line * 1000 + Column);
  }
  void AddWarning(const std::string &File, int Line, int Column,
                  const std::string &Message) override {
    AddError(File, Line, Column, Message);
  }
};

// Compares descriptors after a round trip through each kind of database.
static void useDatabases(const FileDescriptor &File) {
  FileDescriptorProto Proto;
  File.CopyTo(&Proto);
  add(Proto);
  Sum.add(File.DebugString());
  SimpleDescriptorDatabase Simple;
  Sum.add(Simple.Add(Proto));
  const std::string Bytes = bytesOf(Proto);
  EncodedDescriptorDatabase Encoded;
  Sum.add(Encoded.Add(Bytes.data(), static_cast<int>(Bytes.size())));
  DescriptorPoolDatabase Pool(*File.pool());
  MergedDescriptorDatabase Merged(&Encoded, &Pool);
  for (DescriptorDatabase *Each :
       {static_cast<DescriptorDatabase *>(&Simple),
        static_cast<DescriptorDatabase *>(&Encoded),
        static_cast<DescriptorDatabase *>(&Merged)}) {
    FileDescriptorProto Found;
    Sum.add(Each->FindFileByName(File.name(), &Found));
    for (int Index = 0; Index < File.message_type_count(); ++Index) {
      const std::string &Name = File.message_type(Index)->full_name();
      Sum.add(Each->FindFileContainingSymbol(Name, &Found));
      Sum.add(Each->FindFileContainingExtension(Name, 100, &Found));
      std::vector<int> Numbers;
      Sum.add(Each->FindAllExtensionNumbers(Name, &Numbers));
    }
    std::vector<std::string> Names;
    Sum.add(Each->FindAllMessageNames(&Names));
    Sum.add(static_cast<uint64_t>(Names.size()));
  }
  DescriptorPool Copy(&Merged);
  if (const FileDescriptor *Found = Copy.FindFileByName(File.name()))
    Sum.add(Found->DebugString());
}

// Compiles a damaged schema.
static void damage(compiler::SourceTree &Tree, const std::string &Schema) {
  std::unique_ptr<io::ZeroCopyInputStream> File(Tree.Open(pathOf(Schema)));
  std::string Text;
  const void *Data = nullptr;
  for (int Size = 0; File->Next(&Data, &Size);)
    Text.append(static_cast<const char *>(Data), static_cast<size_t>(Size));
  struct Lines : io::ErrorCollector {
    void AddError(int Line, io::ColumnNumber Column,
                  const std::string &Message) override {
      Errors().AddError("", Line, Column, Message);
    }
  } Found;
  struct Problems : DescriptorPool::ErrorCollector {
    void AddError(const std::string &File, const std::string &Element,
                  const Message *, ErrorLocation,
                  const std::string &Text) override {
      Sum.add(File + Element + Text);
    }
  } Wrong;
  Draw Random(Schema.size());
  for (int Round = 0; Round < 12; ++Round) {
    std::string Damaged = Text;
    for (int Left = Round % 4; Left > 0; --Left)
      Damaged[Random.below(static_cast<uint32_t>(Damaged.size()))] =
          "{};=19a\"[]("[Random.below(11)];
    io::ArrayInputStream Stream(Damaged.data(),
                                static_cast<int>(Damaged.size()), 100);
    io::Tokenizer Tokens(&Stream, &Found);
    compiler::Parser Parser;
    Parser.RecordErrorsTo(&Found);
    FileDescriptorProto Proto;
    Sum.add(Parser.Parse(&Tokens, &Proto));
    Proto.set_name("damaged.proto");
    add(Proto);
    DescriptorPool Pool(DescriptorPool::generated_pool());
    Sum.add(Pool.BuildFileCollectingErrors(Proto, &Wrong) != nullptr);
  }
}

static void useWellKnownTypes() {
  for (int64_t Value : {0LL, 1LL, -1500000000LL, 123456789012345LL}) {
    const Duration Length = util::TimeUtil::NanosecondsToDuration(Value);
    const Timestamp Time = util::TimeUtil::MillisecondsToTimestamp(Value / 999);
    Sum.add(util::TimeUtil::ToString(Length) + util::TimeUtil::ToString(Time));
    add(Length * int64_t(3) + util::TimeUtil::MinutesToDuration(Value % 99));
    add(Time - Length);
    Sum.add(util::TimeUtil::DurationToMicroseconds(Length / int64_t(7)));
    Duration Read;
    Sum.add(util::TimeUtil::FromString("1.5s", &Read));
    add(Read);
  }
  FieldMask First, Second, Both;
  util::FieldMaskUtil::FromString("name,options.packed,number", &First);
  util::FieldMaskUtil::FromString("label,options", &Second);
  util::FieldMaskUtil::Union(First, Second, &Both);
  Sum.add(util::FieldMaskUtil::ToString(Both));
  util::FieldMaskUtil::Intersect(First, Second, &Both);
  Sum.add(util::FieldMaskUtil::ToString(Both));
  util::FieldMaskUtil::Subtract<FieldDescriptorProto>(Second, First, &Both);
  Sum.add(util::FieldMaskUtil::ToString(Both));
  FieldDescriptorProto Type, Merged;
  FieldDescriptorProto::descriptor()->field(0)->CopyTo(&Type);
  util::FieldMaskUtil::MergeMessageTo(Type, First, {}, &Merged);
  Sum.add(util::FieldMaskUtil::TrimMessage(Second, &Type));
  add(Merged);
  add(Type);
  Any Packed;
  Sum.add(Packed.PackFrom(Merged) && Packed.Is<FieldDescriptorProto>());
  Sum.add(Packed.UnpackTo(&Type));
  add(Packed);
  Struct Values;
  Sum.add(util::JsonStringToMessage("{\"a\":[1,2.5,null,true,{\"b\":\"c\"}]}",
                                    &Values)
              .ToString());
  add(Values);
}

int main(int, char **Arguments) {
  const std::string Folder = Arguments[1];
  const int Count = std::atoi(Arguments[2]);
  compileAll(Folder);
  Sum.print("compiled");
  useWellKnownTypes();
  compiler::DiskSourceTree Tree;
  Tree.MapPath("", Folder);
  Errors Found;
  compiler::Importer Importer(&Tree, &Found);
  DynamicMessageFactory Factory;
  for (const char *Schema : Schemas) {
    const FileDescriptor &File = *Importer.Import(pathOf(Schema));
    useDatabases(File);
    damage(Tree, Schema);
    std::unique_ptr<util::TypeResolver> Types(
        util::NewTypeResolverForDescriptorPool("type.googleapis.com",
                                               File.pool()));
    for (int Index = 0; Index < File.message_type_count(); ++Index)
      use(*Factory.GetPrototype(File.message_type(Index)), *Types, Count);
    Sum.print(Schema);
  }
  // The library's own types have generated code.
  std::unique_ptr<util::TypeResolver> Types(
      util::NewTypeResolverForDescriptorPool("type.googleapis.com",
                                             DescriptorPool::generated_pool()));
  for (const FileDescriptor *File :
       {FileDescriptorProto::descriptor()->file(), Api::descriptor()->file(),
        Type::descriptor()->file(), Struct::descriptor()->file(),
        BoolValue::descriptor()->file(), FieldMask::descriptor()->file(),
        compiler::CodeGeneratorRequest::descriptor()->file()})
    for (int Index = 0; Index < File->message_type_count(); ++Index)
      use(*MessageFactory::generated_factory()->GetPrototype(
              File->message_type(Index)),
          *Types, Count);
  Sum.print("generated");
}
