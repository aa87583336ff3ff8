// Reads, changes, writes and describes flags with gflags.
#include "gflags/gflags.h"
#include "driver.h"
#include "gflags/gflags_completions.h"

#include <cstdlib>
#include <fstream>
#include <vector>

DEFINE_bool(flag, false, "A truth.");
DEFINE_int32(number, 3, "A number.");
DEFINE_uint32(size, 4, "A size.");
DEFINE_int64(large, 5,
             "A large number with an explanation that needs more than one "
             "line, so that the help has to break it between two words.");
DEFINE_uint64(larger, 6, "A larger number.");
DEFINE_double(real, 0.5, "A real number.");
DEFINE_string(text, "some", "A text.\nWith two lines.");

static bool isSmall(const char *, int32_t Value) { return Value < 1000; }
static bool isShort(const char *, const std::string &Value) {
  return Value.size() < 40;
}
static bool isTrue(const char *, bool Value) { return Value || true; }
static bool isReal(const char *, double Value) { return Value < 1e10; }
static bool isLarge(const char *, int64_t Value) { return Value > -100; }
static bool isLarger(const char *, uint64_t Value) { return Value < 1u << 31; }
static bool isSize(const char *, uint32_t Value) { return Value != 1077; }

static void addValues(Checksum &Sum) {
  Sum.add(FLAGS_flag);
  Sum.add(FLAGS_number + FLAGS_large);
  Sum.add(FLAGS_size + FLAGS_larger);
  Sum.add(FLAGS_real);
  Sum.add(FLAGS_text);
}

// Parses random command lines. Some values are wrong.
static void parse(Draw &Random, Checksum &Sum) {
  gflags::FlagSaver Saver;
  std::vector<std::string> Words = {"program"};
  const char *Names[] = {"number", "size", "large", "larger", "real", "text"};
  for (int Index = 0; Index < 12; ++Index) {
    const std::string Name = Names[Random.below(6)];
    const std::string Value = std::to_string(Random.below(1000));
    Words.push_back(Index % 2 ? "-" + Name + "=" + Value : "--" + Name);
    if (Index % 2 == 0)
      Words.push_back(Index % 4 ? "0x1" : Value);
    if (Index % 3 == 0)
      Words.push_back(Random.below(2) ? "--noflag" : Random.word());
  }
  Words.insert(Words.end(), {"--flag", "--", "-last"});
  std::vector<char *> Pointers;
  for (std::string &Word : Words)
    Pointers.push_back(Word.data());
  Pointers.push_back(nullptr);
  int Count = static_cast<int>(Words.size());
  char **Array = Pointers.data();
  Sum.add(gflags::ParseCommandLineFlags(&Count, &Array, true));
  Sum.add(Count);
  addValues(Sum);
}

static void set(Draw &Random, Checksum &Sum) {
  gflags::FlagSaver Saver;
  for (const char *Name :
       {"flag", "number", "size", "large", "larger", "real", "text", "unknown"})
    for (const std::string &Value :
         {std::to_string(Random.below(2000)), Random.text(5),
          std::string("yes"), std::string("-12"), std::string("1.5e3"),
          std::string("0x7f")}) {
      Sum.add(gflags::SetCommandLineOption(Name, Value.c_str()));
      Sum.add(gflags::SetCommandLineOptionWithMode(
          Name, Value.c_str(), gflags::SET_FLAG_IF_DEFAULT));
      Sum.add(gflags::SetCommandLineOptionWithMode(Name, Value.c_str(),
                                                   gflags::SET_FLAGS_DEFAULT));
      std::string Found;
      Sum.add(gflags::GetCommandLineOption(Name, &Found));
      Sum.add(Found);
    }
  Sum.add(gflags::ReadFlagsFromString(
      "# comment\n--number=" + std::to_string(Random.below(900)) +
          "\nother*\n--text=other\nprogram\n--real=7.25\n--flag\n",
      "program", false));
  addValues(Sum);
  gflags::CommandLineFlagInfo Info;
  for (const char *Name : {"number", "text", "nothing"})
    if (gflags::GetCommandLineFlagInfo(Name, &Info))
      Sum.add(Info.name + Info.type + Info.description + Info.current_value +
              Info.default_value + (Info.is_default ? "=" : "!"));
  Sum.add(gflags::GetCommandLineFlagInfoOrDie("real").current_value);
}

static void fromEnvironment(Checksum &Sum) {
  setenv("FLAGS_number", "12", 1);
  setenv("FLAGS_text", "from the environment", 1);
  setenv("OTHER", "7", 1);
  Sum.add(gflags::SetCommandLineOption("fromenv", "number,text"));
  Sum.add(gflags::SetCommandLineOption("tryfromenv", "size,real"));
  Sum.add(gflags::BoolFromEnv("NOTHING", true));
  Sum.add(gflags::Int32FromEnv("OTHER", 1) + gflags::Int64FromEnv("OTHER", 2));
  Sum.add(gflags::Uint32FromEnv("OTHER", 3) +
          gflags::Uint64FromEnv("OTHER", 4));
  Sum.add(gflags::DoubleFromEnv("OTHER", 0.5));
  Sum.add(gflags::StringFromEnv("OTHER", "none"));
  addValues(Sum);
}

int main(int Count, char **Arguments) {
  // The help contains the program's name, which must always be the same.
  static char Name[] = "gflags";
  Arguments[0] = Name;
  gflags::SetUsageMessage("Reads flags.\nUsage: gflags ROUNDS");
  gflags::SetVersionString("1.2");
  gflags::AllowCommandLineReparsing();
  gflags::ParseCommandLineFlags(&Count, &Arguments, true);
  Checksum Sum;
  Sum.add(gflags::ProgramUsage());
  Sum.add(gflags::VersionString());
  Sum.add(static_cast<int>(gflags::GetArgvs().size()));
  Sum.add(gflags::RegisterFlagValidator(&FLAGS_number, isSmall) &&
          gflags::RegisterFlagValidator(&FLAGS_text, isShort) &&
          gflags::RegisterFlagValidator(&FLAGS_flag, isTrue) &&
          gflags::RegisterFlagValidator(&FLAGS_real, isReal) &&
          gflags::RegisterFlagValidator(&FLAGS_large, isLarge) &&
          gflags::RegisterFlagValidator(&FLAGS_larger, isLarger) &&
          gflags::RegisterFlagValidator(&FLAGS_size, isSize));
  Draw Random(1);
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    parse(Random, Sum);
    set(Random, Sum);
  }
  addValues(Sum);
  fromEnvironment(Sum);
  std::vector<gflags::CommandLineFlagInfo> Flags;
  gflags::GetAllFlags(&Flags);
  for (const gflags::CommandLineFlagInfo &Flag : Flags)
    Sum.add(Flag.name + Flag.current_value);
  std::remove("flags");
  Sum.add(gflags::AppendFlagsIntoFile("flags", "program"));
  Sum.add(gflags::ReadFromFlagsFile("flags", "program", false));
  Sum.add(gflags::CommandlineFlagsIntoString().find("--number=12"));
  gflags::ReparseCommandLineNonHelpFlags();
  gflags::ShutDownCommandLineFlags();
  Sum.print("gflags");
}
