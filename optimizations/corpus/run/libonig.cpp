// Compiles patterns in all syntaxes and encodings with Oniguruma, and searches the text
// of the file that the program's argument names.
#include "driver.h"
#include "oniguruma.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

static const OnigUChar *bytes(const std::string &Text) {
  return reinterpret_cast<const OnigUChar *>(Text.data());
}
static const OnigUChar *endOf(const std::string &Text) {
  return bytes(Text) + Text.size();
}

// Converts ASCII to an encoding whose characters have Width bytes or more.
static std::string widen(const std::string &Text, int Width, bool IsBig) {
  std::string Wide;
  for (char Each : Text)
    for (int Index = 0; Index < Width; ++Index)
      Wide += Index == (IsBig ? Width - 1 : 0) ? Each : '\0';
  return Wide;
}

// Returns null, and adds the error's text, if the pattern is wrong.
static OnigRegex compile(const std::string &Pattern, OnigOptionType Options,
                         OnigEncoding Encoding, OnigSyntaxType *Syntax,
                         Checksum &Sum) {
  OnigRegex Made = nullptr;
  OnigErrorInfo Info = {};
  const int Status = onig_new(&Made, bytes(Pattern), endOf(Pattern), Options,
                              Encoding, Syntax, &Info);
  if (Status == ONIG_NORMAL)
    return Made;
  OnigUChar Message[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int Size = onig_error_code_to_str(Message, Status, &Info);
  Sum.add(std::string(reinterpret_cast<char *>(Message), Size));
  return nullptr;
}

static void addRegion(const OnigRegion &Found, Checksum &Sum) {
  for (int Index = 0; Index < Found.num_regs; ++Index)
    Sum.add(Found.beg[Index] * 7 + Found.end[Index]);
}

static int addMatch(int Count, int At, OnigRegion *Found, void *Into) {
  static_cast<Checksum *>(Into)->add(Count + At);
  addRegion(*Found, *static_cast<Checksum *>(Into));
  return 0;
}

static int addName(const OnigUChar *Begin, const OnigUChar *End, int Count,
                   int *Groups, OnigRegex, void *Into) {
  auto &Sum = *static_cast<Checksum *>(Into);
  Sum.add(std::string(Begin, End));
  for (int Index = 0; Index < Count; ++Index)
    Sum.add(Groups[Index]);
  return 0;
}

static int addGroup(int Group, int Begin, int End, int Level, int, void *Into) {
  static_cast<Checksum *>(Into)->add(Group + 10 * Begin + 100 * End + Level);
  return 0;
}

static void describe(OnigRegex Made, Checksum &Sum) {
  Sum.add(onig_number_of_captures(Made));
  Sum.add(onig_number_of_names(Made));
  Sum.add(onig_number_of_capture_histories(Made));
  Sum.add(onig_noname_group_capture_is_active(Made));
  Sum.add(onig_get_options(Made));
  onig_foreach_name(Made, addName, &Sum);
}

// Adds all matches, and searches backwards from the end.
static void search(OnigRegex Made, const std::string &Text, Checksum &Sum) {
  OnigRegion *Found = onig_region_new();
  Sum.add(onig_scan(Made, bytes(Text), endOf(Text), Found, ONIG_OPTION_NONE,
                    addMatch, &Sum));
  const OnigUChar *From = endOf(Text);
  for (int Left = 0; Left < 20; ++Left) {
    const int At = onig_search(Made, bytes(Text), endOf(Text), From,
                               bytes(Text), Found, ONIG_OPTION_NONE);
    Sum.add(At);
    if (At <= 0)
      break;
    onig_capture_tree_traverse(Found, ONIG_TRAVERSE_CALLBACK_AT_FIRST, addGroup,
                               &Sum);
    From = onigenc_get_prev_char_head(onig_get_encoding(Made), bytes(Text),
                                      bytes(Text) + At);
  }
  Sum.add(onig_match(Made, bytes(Text), endOf(Text), bytes(Text), Found,
                     ONIG_OPTION_NOTBOL));
  onig_region_free(Found, 1);
}

static void searchAll(const std::string &Pattern, OnigOptionType Options,
                      OnigEncoding Encoding, OnigSyntaxType *Syntax,
                      const std::string &Text, Checksum &Sum) {
  OnigRegex Made = compile(Pattern, Options, Encoding, Syntax, Sum);
  if (Made == nullptr)
    return;
  describe(Made, Sum);
  search(Made, Text, Sum);
  onig_free(Made);
}

static void searchPart(const std::string &Text, Checksum &Sum) {
  for (const char *Pattern :
       {R"(\b(\w+) [^\n]*\b\1\b)", R"((?i)(TH|an)([a-f]{2,4})(?=\s\d))",
        R"(^(?:[^aeiou\s]+[aeiou]){3,}.*(?<!\d)77\b)",
        R"((?<word>[h-t]++)(?:\s\g<word>){2})", R"(\p{L}{9,}\R|^\X{70,}$)",
        R"((?~the)ing)", R"((?<n>\d+)(?:\s(?<n>\w+)))", R"(\d{3,}?+\s\S+?\K\s)",
        R"(shared|single|letter|straight|nation)", R"((?>a|an|ane)t(?!e)|e\Z)",
        R"((?(?=\d)\d+ \w|[a-e]+ \d))", R"([[:alpha:]&&[^aeiou]]{5,})",
        R"((*MAX{2}[A]:<|>)(?:(*COUNT[B])t)+e)"})
    searchAll(Pattern, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
              ONIG_SYNTAX_ONIGURUMA, Text, Sum);
  for (OnigOptionType Options :
       {ONIG_OPTION_IGNORECASE, ONIG_OPTION_EXTEND, ONIG_OPTION_MULTILINE,
        ONIG_OPTION_FIND_LONGEST, ONIG_OPTION_FIND_NOT_EMPTY,
        ONIG_OPTION_DONT_CAPTURE_GROUP,
        ONIG_OPTION_CAPTURE_GROUP | ONIG_OPTION_WORD_IS_ASCII})
    searchAll(R"((?<x>TE?|s t)(.)?n* (\w+))", Options, ONIG_ENCODING_UTF8,
              ONIG_SYNTAX_RUBY, Text, Sum);
}

static void searchSet(const std::string &Text, Checksum &Sum) {
  std::vector<OnigRegex> All;
  for (const char *Pattern : {R"(s\w+ \d+$)", "er(?= an)", R"(\d{4})", "^to "})
    All.push_back(compile(Pattern, ONIG_OPTION_NEGATE_SINGLELINE,
                          ONIG_ENCODING_ASCII, ONIG_SYNTAX_PERL_NG, Sum));
  OnigRegSet *Set = nullptr;
  Sum.add(
      onig_regset_new(&Set, static_cast<int>(All.size()) - 1, All.data()));
  Sum.add(onig_regset_add(Set, All.back()));
  for (OnigRegSetLead Lead :
       {ONIG_REGSET_POSITION_LEAD, ONIG_REGSET_REGEX_LEAD}) {
    const OnigUChar *From = bytes(Text), *End = endOf(Text);
    for (int Left = 0; Left < 400; ++Left) {
      int At = 0;
      const int Which = onig_regset_search(Set, From, End, From, End, Lead,
                                           ONIG_OPTION_NONE, &At);
      Sum.add(Which);
      if (Which < 0)
        break;
      addRegion(*onig_regset_get_region(Set, Which), Sum);
      From += At + 1;
    }
  }
  onig_regset_free(Set);
}

static void trySyntaxes(const std::string &Text, Checksum &Sum) {
  for (OnigSyntaxType *Syntax :
       {ONIG_SYNTAX_ASIS, ONIG_SYNTAX_POSIX_BASIC, ONIG_SYNTAX_POSIX_EXTENDED,
        ONIG_SYNTAX_EMACS, ONIG_SYNTAX_GREP, ONIG_SYNTAX_GNU_REGEX,
        ONIG_SYNTAX_JAVA, ONIG_SYNTAX_PERL, ONIG_SYNTAX_PERL_NG,
        ONIG_SYNTAX_RUBY, ONIG_SYNTAX_PYTHON, ONIG_SYNTAX_ONIGURUMA})
    for (const char *Pattern :
         {R"(\(a\|b\)\{2,3\})", R"((a|e){2,3}+[[:digit:]]*)", R"(\<t\w\>)",
          R"((?P<one>t)(?P=one)|(?<two>e)\k<two>)", R"((?#note)x(?i:T)\Qt.\E)",
          R"(\x{74}\u0065\t?\cA?)", R"((?m-i:s.$)|\Ap\z|\Gq)", "[a-", "(",
          "a{2,1}", "*x", R"(\p{Nothing})", R"((?<n>a)\k<m>)", "[z-a]",
          R"(\g<9>)", R"((?<=a+)b)", R"((?y{w})\y\w+\Y)", R"([\w-%][^]]a])"})
      searchAll(Pattern, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, Syntax, Text,
                Sum);
}

static void tryEncodings(const std::string &Text, Draw &Random,
                         Checksum &Sum) {
  std::string Bytes;
  for (int Index = 0; Index < 2000; ++Index)
    Bytes += static_cast<char>(Random.below(256));
  for (OnigEncoding Encoding :
       {ONIG_ENCODING_ASCII,      ONIG_ENCODING_ISO_8859_1,
        ONIG_ENCODING_ISO_8859_2, ONIG_ENCODING_ISO_8859_3,
        ONIG_ENCODING_ISO_8859_4, ONIG_ENCODING_ISO_8859_5,
        ONIG_ENCODING_ISO_8859_6, ONIG_ENCODING_ISO_8859_7,
        ONIG_ENCODING_ISO_8859_8, ONIG_ENCODING_ISO_8859_9,
        ONIG_ENCODING_ISO_8859_10, ONIG_ENCODING_ISO_8859_11,
        ONIG_ENCODING_ISO_8859_13, ONIG_ENCODING_ISO_8859_14,
        ONIG_ENCODING_ISO_8859_15, ONIG_ENCODING_ISO_8859_16,
        ONIG_ENCODING_UTF8,       ONIG_ENCODING_UTF16_BE,
        ONIG_ENCODING_UTF16_LE,   ONIG_ENCODING_UTF32_BE,
        ONIG_ENCODING_UTF32_LE,   ONIG_ENCODING_EUC_JP,
        ONIG_ENCODING_EUC_TW,     ONIG_ENCODING_EUC_KR,
        ONIG_ENCODING_SJIS,       ONIG_ENCODING_KOI8_R,
        ONIG_ENCODING_CP1251,     ONIG_ENCODING_BIG5,
        ONIG_ENCODING_GB18030}) {
    const int Width = ONIGENC_MBC_MINLEN(Encoding);
    const bool IsBig = Encoding == ONIG_ENCODING_UTF16_BE ||
                       Encoding == ONIG_ENCODING_UTF32_BE;
    const std::string Wide = widen(Text, Width, IsBig);
    Sum.add(onigenc_strlen(Encoding, bytes(Wide), endOf(Wide)));
    Sum.add(ONIGENC_IS_VALID_MBC_STRING(Encoding, bytes(Bytes), endOf(Bytes)));
    for (const char *Pattern :
         {R"((?i)[b-e]ST|k\w[[:space:]]\d)", R"([^\w\s]+|\p{Upper}\p{Punct})",
          R"((?i)ss|[[:alpha:]&&\w]{6})"}) {
      OnigRegex Made = compile(widen(Pattern, Width, IsBig), ONIG_OPTION_NONE,
                               Encoding, ONIG_SYNTAX_RUBY, Sum);
      if (Made == nullptr)
        continue;
      search(Made, Wide, Sum);
      if (Width == 1 &&
          ONIGENC_IS_VALID_MBC_STRING(Encoding, bytes(Bytes), endOf(Bytes)))
        search(Made, Bytes, Sum);
      onig_free(Made);
    }
  }
}

// Searches Unicode text, whose letters of other case may have another length.
static void tryUnicode(Checksum &Sum) {
  const std::string Text = "Straße STRASSE ſharp İstanbul ıI ΑΣ ας ﬁn FIN Ǆ ǆ "
                           "Привет ПРИВЕТ 한국 e\u0301 \u0e01\u0e33 🇩🇪🇫🇷 "
                           "👩\u200d🚀 12½ ١٢ a\r\nb\u2028c \u00a0.";
  OnigCodePoint Ranges[] = {2, 0x41, 0x5a, 0x391, 0x3a9};
  Sum.add(onig_unicode_define_user_property("Chosen", Ranges));
  for (const char *Pattern :
       {"(?i)strasse", "(?i)ß", "(?i)[ß-ſ]+", "(?i)fin", "(?i)ΑΣ|ǆ", "\\X",
        R"(\p{Greek}+|\p{^Latin}{3})", R"(\p{Chosen}+)", R"((?y{g})\y.)",
        R"((?y{w})\y.+?\y)", R"([[:word:]]+\b.)", R"((?W)\w+|(?D)\d)",
        R"(\R|\O|\N)", R"(\p{Nd}\p{No}?|\p{Emoji})", R"((?I)(?i)K|s)"})
    searchAll(Pattern, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
              ONIG_SYNTAX_ONIGURUMA, Text, Sum);
}

int main(int, char **Arguments) {
  std::ifstream File(Arguments[1]);
  const std::string Text((std::istreambuf_iterator<char>(File)), {});
  const std::string Part = Text.substr(0, 2000);
  const size_t Size = 3000; // Some patterns need quadratic time.
  Checksum Sum;
  OnigEncoding First[] = {ONIG_ENCODING_UTF8, ONIG_ENCODING_ASCII};
  Sum.add(onig_initialize(First, 2));
  Sum.add(onig_version());
  for (size_t At = 0; At < Text.size(); At += Size)
    searchPart(Text.substr(At, Size), Sum);
  searchSet(Text, Sum);
  trySyntaxes(Part, Sum);
  Draw Random(1);
  tryEncodings(Part, Random, Sum);
  tryUnicode(Sum);
  onig_end();
  Sum.print("libonig");
}
