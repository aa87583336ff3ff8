// Parses, changes and writes, with JsonCpp, the JSON records of the file that
// the program's argument names.
#include "driver.h"
#include "json/json.h"

#include <fstream>
#include <memory>
#include <sstream>

using namespace Json;

static void readAll(const char *Path, Value &Records, Checksum &Sum) {
  std::ifstream File(Path);
  Reader Simple;
  CharReaderBuilder Builder;
  std::unique_ptr<CharReader> Fast(Builder.newCharReader());
  for (std::string Line; std::getline(File, Line);) {
    Value First, Second, Third;
    std::string Errors;
    Sum.add(Simple.parse(Line, First));
    Sum.add(
        Fast->parse(Line.data(), Line.data() + Line.size(), &Second, &Errors));
    std::istringstream Stream(Line);
    Stream >> Third;
    Sum.add(First == Second && !(Second < Third) && First.compare(Third) == 0);
    Records.append(std::move(Third));
  }
}

static void write(const Value &Records, Checksum &Sum) {
  FastWriter Fast;
  Sum.add(Fast.write(Records));
  Fast.enableYAMLCompatibility();
  Fast.dropNullPlaceholders();
  Fast.omitEndingLineFeed();
  StyledWriter Styled;
  StyledStreamWriter Streamed("  ");
  StreamWriterBuilder Builder;
  Builder["indentation"] = " ";
  Builder["commentStyle"] = "All";
  Builder["precision"] = 6;
  Builder["emitUTF8"] = true;
  std::unique_ptr<StreamWriter> Writer(Builder.newStreamWriter());
  for (const Value &Record : Records) {
    std::ostringstream Out, Other;
    Sum.add(Fast.write(Record));
    Sum.add(Styled.write(Record));
    Streamed.write(Out, Record);
    Writer->write(Record, &Other);
    Other << Record;
    Sum.add(Out.str());
    Sum.add(Other.str());
    Sum.add(Record.toStyledString());
  }
  Sum.add(writeString(Builder, Records[0]));
}

static void change(Value &Record, Checksum &Sum) {
  Record["sum"] = Record["price"].asDouble() + Record["id"].asInt();
  Record["big"] = UInt64(1) << 40;
  Record["flag"] = Record["open"].isNull();
  Record[StaticString("fixed")] = "text";
  Record["tags"].append(Record.get("group", "none"));
  Record["tags"].insert(1, Value("inserted"));
  Value Removed;
  Record["tags"].removeIndex(0, &Removed);
  Record.removeMember("open", &Removed);
  Record.removeMember("text");
  Record["nested"] = Value(objectValue);
  Record["nested"].copy(Record["tags"]);
  Record["nested"].resize(2);
  Record["empty"] = Value(arrayValue);
  Record["empty"].swap(Record["sum"]);
  Record["note"].setComment(std::string("// a comment"), commentBefore);
  Record["note"].setComment(std::string("/* after */"), commentAfterOnSameLine);
  Sum.add(Record["note"].getComment(commentBefore));
  Path Way(".tags[%].x", PathArgument(1u));
  Sum.add(Path(".tags[1]").resolve(Record).asString());
  Sum.add(Path(".nothing[3].%", "key").resolve(Record, "default").asString());
  Path(".made.[2].new").make(Record) = 3.25;
  for (const std::string &Name : Record.getMemberNames())
    Sum.add(Name);
  for (auto At = Record.begin(); At != Record.end(); ++At) {
    const Value &Member = *At;
    Sum.add(At.name());
    Sum.add(At.key().asString() + std::to_string(Member.type()));
    Sum.add(Member.isBool() + 2 * Member.isInt() + 4 * Member.isUInt64() +
            8 * Member.isIntegral() + 16 * Member.isDouble() +
            32 * Member.isNumeric() + 64 * Member.isString() +
            128 * Member.isArray() + 256 * Member.isObject());
    Sum.add(static_cast<unsigned>(Member.size()) + Member.empty());
    if (Member.isConvertibleTo(stringValue) && !Member.isNull())
      Sum.add(Member.asString());
    if (Member.isConvertibleTo(intValue))
      Sum.add(Member.asInt64() + Member.asLargestInt());
    if (Member.isConvertibleTo(realValue))
      Sum.add(Member.asDouble() + static_cast<double>(Member.asFloat()));
    if (Member.isConvertibleTo(booleanValue))
      Sum.add(Member.asBool());
  }
  for (auto At = Record["made"].end(); At != Record["made"].begin();)
    Sum.add(static_cast<unsigned>((--At).index()));
  const Value &Constant = Record;
  Sum.add(Constant["missing"].isNull() && !Constant.isMember("missing"));
  Sum.add(Constant["tags"][0].asCString());
  Sum.add(Constant["tags"].isValidIndex(9) || !Constant["tags"]);
  Sum.add(Constant["tags"].get(7u, "default").asString());
}

static void fail(Checksum &Sum) {
  for (const char *Text :
       {"{\"a\": }", "[1, 2", "{\"a\" 1}", "\"\\u12\"", "\"\\x\"", "tru",
        "[1 2]", "-", "1e999999", "/* open", "{1: 2}", "[1,,2]", "\"\\ud800\"",
        "\"\\ud83d\\ude00\\b\\f\\n\\r\\t\\/\\\\\\\"\"", "{\"a\":1,\"a\":2}",
        "// only\n[1, /* in */ 2] // after\n", "[18446744073709551615, -1]"}) {
    Reader Old;
    Value Root;
    Sum.add(Old.parse(Text, Root));
    Sum.add(Old.getFormattedErrorMessages());
    for (const auto &Error : Old.getStructuredErrors())
      Sum.add(Error.message + std::to_string(Error.offset_start));
    Sum.add(Old.pushError(Root, "pushed") && Old.good());
    CharReaderBuilder Builder;
    CharReaderBuilder::strictMode(&Builder.settings_);
    Value Invalid;
    Sum.add(Builder.validate(&Invalid));
    Builder["rejectDupKeys"] = true;
    std::istringstream Stream(Text);
    std::string Errors;
    Sum.add(parseFromStream(Builder, Stream, &Root, &Errors));
    Sum.add(Errors);
  }
  for (const Value &Each :
       {Value("text"), Value(1e300), Value(-1), Value(true), Value(~UInt64(0))})
    try {
      Sum.add(Each.asUInt());
      Sum.add(Each.asInt());
      Sum.add(Each["key"].isNull());
    } catch (const std::exception &Error) {
      Sum.add(Error.what());
    }
}

int main(int, char **Arguments) {
  Checksum Sum;
  Value Records(arrayValue);
  readAll(Arguments[1], Records, Sum);
  for (Value &Record : Records)
    change(Record, Sum);
  write(Records, Sum);
  fail(Sum);
  Sum.print("libjsoncpp");
}
