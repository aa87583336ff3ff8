// Evaluates expressions with muParser, with functions of all types, and expressions
// with errors. The program's argument is the number of rounds.
#include "driver.h"
#include "muParser.h"
#include "muParserInt.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

using mu::value_type;

template <size_t> using Value = value_type;

static value_type Extra = 0.25;

static value_type extra(void *Data) { return *static_cast<value_type *>(Data); }

// Defines functions with as many numbers as Index, and returns their number.
template <size_t... Index>
static void addFunctions(mu::Parser &Parser, std::index_sequence<Index...>) {
  const std::string Count = std::to_string(sizeof...(Index));
  Parser.DefineFun("f" + Count, +[](Value<Index>... Each) -> value_type {
    return (1.5 + ... + Each);
  });
  Parser.DefineFunUserData(
      "g" + Count,
      +[](void *Data, Value<Index>... Each) -> value_type {
        return (extra(Data) + ... + Each);
      },
      &Extra, false);
  Parser.DefineFun(
      "h" + Count,
      +[](int Row, int, Value<Index>... Each) -> value_type {
        return ((Row * 1.0) + ... + Each);
      },
      false);
  Parser.DefineFunUserData(
      "i" + Count,
      +[](void *Data, int Row, int, Value<Index>... Each) -> value_type {
        return ((Row * extra(Data)) + ... + Each);
      },
      &Extra, false);
}

template <size_t... Index>
static void addTextFunctions(mu::Parser &Parser,
                             std::index_sequence<Index...>) {
  const std::string Count = std::to_string(sizeof...(Index));
  Parser.DefineFun(
      "s" + Count,
      +[](const char *Text, Value<Index>... Each) -> value_type {
        return ((std::string_view(Text).size() * 1.0) + ... + Each);
      },
      false);
  Parser.DefineFunUserData(
      "t" + Count,
      +[](void *Data, const char *Text, Value<Index>... Each) -> value_type {
        return ((Text[0] * extra(Data)) + ... + Each);
      },
      &Extra, false);
}

template <size_t... Count>
static void addAllFunctions(mu::Parser &Parser,
                            std::index_sequence<Count...>) {
  (addFunctions(Parser, std::make_index_sequence<Count>()), ...);
}

template <size_t... Count>
static void addAllTextFunctions(mu::Parser &Parser,
                                std::index_sequence<Count...>) {
  (addTextFunctions(Parser, std::make_index_sequence<Count>()), ...);
}

static int readHex(const char *Text, int *Position, value_type *Found) {
  if (Text[0] != '0' || Text[1] != 'x')
    return 0;
  char *End = nullptr;
  *Found = static_cast<value_type>(std::strtoul(Text + 2, &End, 16));
  if (End == Text + 2)
    return 0;
  *Position += static_cast<int>(End - Text);
  return 1;
}

// Makes variables on demand.
struct Variables {
  std::array<value_type, 100> Values{};
  size_t Used = 0;

  static value_type *make(const char *, void *Into) {
    auto &All = *static_cast<Variables *>(Into);
    value_type &New = All.Values[All.Used % All.Values.size()];
    New = static_cast<value_type>(All.Used++);
    return &New;
  }
};

static void prepare(mu::Parser &Parser, std::array<value_type, 4> &Values) {
  addAllFunctions(Parser, std::make_index_sequence<11>());
  addAllTextFunctions(Parser, std::make_index_sequence<6>());
  Parser.DefineFun("all", +[](const value_type *Each, int Count) {
    return Count * Each[0];
  });
  Parser.DefineFunUserData(
      "most",
      +[](void *Data, const value_type *Each, int Count) {
        return extra(Data) * Count + Each[Count - 1];
      },
      &Extra);
  const char *Names[] = {"a", "b", "c", "d"};
  for (size_t Index = 0; Index < Values.size(); ++Index)
    Parser.DefineVar(Names[Index], &Values[Index]);
  Parser.DefineConst("seven", 7.0);
  Parser.DefineStrConst("greeting", "hello");
  Parser.DefinePostfixOprt("k", [](value_type Of) { return Of * 1000; });
  Parser.DefineInfixOprt("~", [](value_type Of) { return 1 - Of; });
  Parser.DefineOprt(
      "xor",
      [](value_type One, value_type Two) {
        return static_cast<value_type>(static_cast<int>(One) ^
                                       static_cast<int>(Two));
      },
      mu::prLOGIC);
  Parser.AddValIdent(readHex);
}

static void add(Checksum &Sum, value_type Of) {
  // The sign of NaN is not defined.
  if (std::isnan(Of))
    Sum.add("nan");
  else
    Sum.add(std::abs(Of) < 1e15 ? Of : 1e15);
}

static void addError(const mu::ParserError &Error, Checksum &Sum) {
  Sum.add(Error.GetMsg());
  Sum.add(Error.GetExpr());
  Sum.add(Error.GetToken());
  Sum.add(Error.GetPos());
  Sum.add(static_cast<int>(Error.GetCode()));
}

// Calls an action that may throw an error.
template <typename Action> static void attempt(Checksum &Sum, Action Try) {
  try {
    Try();
    Sum.add("done");
  } catch (const mu::ParserError &Error) {
    addError(Error, Sum);
  }
}

static std::string list(Draw &Random, int Depth, uint32_t Count);

// Returns a random expression.
static std::string expression(Draw &Random, int Depth) {
  if (Depth == 0)
    switch (Random.below(6)) {
    case 0:
      return std::to_string(Random.below(100)) + ".5e-1";
    case 1:
      return "0x1f";
    case 2:
      return "_pi";
    case 3:
      return "seven";
    default:
      return std::string(1, static_cast<char>('a' + Random.below(4)));
    }
  const auto part = [&] { return expression(Random, Depth - 1); };
  static const char *Binary[] = {"+",  "-",  "*",  "/",  "^",  "<",    ">",
                                 "<=", ">=", "==", "!=", "&&", " xor ", "||"};
  static const char *Single[] = {
      "sin",  "cos",   "tan",   "asin", "acos",  "atan", "sinh", "cosh",
      "tanh", "asinh", "acosh", "atanh", "log2", "log10", "ln",   "exp",
      "sqrt", "sign",  "rint",  "abs",   "-",    "~",     "+"};
  const uint32_t Count = Random.below(11);
  const char Kind = static_cast<char>('f' + Random.below(4));
  switch (Random.below(9)) {
  case 0:
    return std::string(Single[Random.below(std::size(Single))]) + "(" +
           part() + ")";
  case 1:
    return "(" + part() + ">" + part() + "?" + part() + ":" + part() + ")";
  case 2:
    return Kind + std::to_string(Count) + "(" + list(Random, 0, Count) + ")";
  case 3: {
    static const char *Many[] = {"sum", "avg", "min", "max", "all", "most"};
    return std::string(Many[Random.below(std::size(Many))]) + "(" +
           list(Random, Depth - 1, 1 + Random.below(4)) + ")";
  }
  case 4: {
    const uint32_t More = Random.below(6);
    return std::string(1, "st"[Random.below(2)]) + std::to_string(More) +
           (Random.below(2) == 0 ? "(\"a text\"" : "(greeting") +
           (More > 0 ? "," : "") + list(Random, 0, More) + ")";
  }
  case 5:
    return "atan2(" + list(Random, Depth - 1, 2) + ")+2k";
  default:
    return "(" + part() + Binary[Random.below(std::size(Binary))] + part() +
           ")";
  }
}

static std::string list(Draw &Random, int Depth, uint32_t Count) {
  std::string Joined;
  for (uint32_t Index = 0; Index < Count; ++Index)
    Joined += (Index > 0 ? "," : "") + expression(Random, Depth);
  return Joined;
}

static void evaluate(mu::ParserBase &Parser, const std::string &Text,
                     Checksum &Sum) {
  attempt(Sum, [&] {
    Parser.SetExpr(Text);
    int Count = 0;
    const value_type *Results = Parser.Eval(Count);
    for (int Index = 0; Index < Count; ++Index)
      add(Sum, Results[Index]);
    add(Sum, Parser.Eval());
    Sum.add(Parser.GetNumResults());
    Sum.add(static_cast<uint64_t>(Parser.GetUsedVar().size()));
    Sum.add(static_cast<uint64_t>(Parser.GetByteCode().GetSize()));
  });
}

static void useNumbers(Draw &Random, Checksum &Sum) {
  mu::Parser Parser;
  std::array<value_type, 4> Values{};
  prepare(Parser, Values);
  Parser.EnableOptimizer(Random.below(4) != 0);
  for (int Left = 0; Left < 12; ++Left) {
    for (value_type &Each : Values)
      Each = Random.below(1000) / 64.0 - 4;
    const std::string Text =
        expression(Random, 2) + "," + expression(Random, 3);
    evaluate(Parser, Text, Sum);
    evaluate(Parser, "a=" + Text + ",b=a*c", Sum);
    attempt(Sum, [&] { add(Sum, Parser.Diff(&Values[1], 0.5, 0.001)); });
  }
  const mu::Parser Copy(Parser);
  attempt(Sum, [&] { add(Sum, Copy.Eval()); });
  Sum.add(Copy.GetExpr());
  mu::Parser Other;
  Other = Parser;
  Other.RemoveVar("a");
  evaluate(Other, "a+1", Sum);
}

// Evaluates an expression for many values of its variables.
static void useBulk(Draw &Random, Checksum &Sum) {
  mu::Parser Parser;
  std::vector<value_type> Values(200), Results(Values.size());
  for (value_type &Each : Values)
    Each = Random.below(1000) / 32.0;
  Parser.DefineVar("a", Values.data());
  for (const char *Text : {"a*a+2*a-1", "a>10?sin(a):-a", "a^3/(a+1)",
                           "min(a,20,2*a)", "(a<3)||(a>8)&&(a!=9)", "2*a+1"}) {
    Parser.SetExpr(Text);
    Parser.Eval(Results.data(), static_cast<int>(Results.size()));
    for (value_type Each : Results)
      add(Sum, Each);
  }
}

static void useIntegers(Draw &Random, Checksum &Sum) {
  mu::ParserInt Parser;
  value_type A = 0, B = 0;
  Parser.DefineVar("a", &A);
  Parser.DefineVar("b", &B);
  for (int Left = 0; Left < 4; ++Left) {
    A = Random.below(1000);
    B = 1 + Random.below(9);
    for (const char *Text :
         {"a+b*3-2", "a/b", "a%b", "b^2", "a>>1", "a<<2", "a&b", "a|b",
          "a&&b", "a||0", "a<b", "a>b", "a<=b", "a>=b", "a==b", "a!=b",
          "!(a>b)", "-a", "sign(-a)", "abs(b-a)", "if(a>b,1,2)",
          "sum(a,b,1)", "min(a,b,0x1f)", "max(a,b,#101)", "sum()", "a b"})
      evaluate(Parser, Text, Sum);
  }
}

static void tryErrors(Checksum &Sum) {
  mu::Parser Parser;
  std::array<value_type, 4> Values{1, 2, 3, 4};
  prepare(Parser, Values);
  for (const char *Text :
       {"", "a+", "(a", "a)", "a b", "nothing", "sin()", "sin(1,2)", "f3(1)",
        "s1(1)", "f1(\"text\")", "\"open", "1+*2", "a?b", "a:b", "1,,2",
        "a=1=2", "3=a", "a(1)", "sum()", "1k2", "greeting", "@", "()",
        "a?b:c:d", "f0(1)", "s2(greeting,1)", "(1,2)+3", "1/0", "most()"})
    evaluate(Parser, Text, Sum);
  attempt(Sum, [&] { Parser.DefineVar("1x", &Values[0]); });
  attempt(Sum, [&] { Parser.DefineVar("x", nullptr); });
  attempt(Sum, [&] { Parser.DefineConst("a", 1.0); });
  attempt(Sum, [&] { Parser.DefineOprt("+", nullptr); });
  attempt(Sum, [&] { Parser.DefineOprt("a b", nullptr); });
  attempt(Sum, [&] { Parser.DefinePostfixOprt("(", nullptr); });
  attempt(Sum, [&] { Parser.DefineStrConst("greeting", "again"); });
  attempt(Sum, [&] { Parser.DefineFun("f1", mu::fun_type1(nullptr)); });
  attempt(Sum, [&] { Parser.SetArgSep(';'), Parser.SetDecSep(';'); });
  attempt(Sum, [&] { Parser.SetExpr(std::string(6000, '1')); });
  attempt(Sum, [] { throw mu::ParserError("a message", 3, "token"); });
  attempt(Sum, [] { throw mu::ParserError(std::string("another message")); });
  attempt(Sum, [] { throw mu::ParserError(); });
  attempt(Sum, [] { throw mu::ParserError(mu::ecDIV_BY_ZERO); });
  attempt(Sum, [] { throw mu::ParserError(mu::ecUNEXPECTED_EOF, 2, "end"); });
}

static void useSettings(Checksum &Sum) {
  mu::Parser Parser;
  Variables Made;
  Parser.SetVarFactory(Variables::make, &Made);
  evaluate(Parser, "x+y*z-x", Sum);
  for (const auto &[Name, Place] : Parser.GetVar())
    Sum.add(Name + std::to_string(*Place));
  for (const auto &[Name, Constant] : Parser.GetConst())
    Sum.add(Name + std::to_string(Constant));
  for (const auto &[Name, Function] : Parser.GetFunDef())
    Sum.add(Name + std::to_string(Function.GetArgc()));
  for (const char **Name = Parser.GetOprtDef(); *Name != nullptr; ++Name)
    Sum.add(*Name);
  Sum.add(Parser.GetVersion(mu::pviBRIEF));
  Sum.add(static_cast<int>(Parser.GetArgSep()) + Parser.HasBuiltInOprt());
  Parser.SetArgSep(';');
  Parser.SetDecSep(',');
  Parser.SetThousandsSep('.');
  evaluate(Parser, "sum(1.000,5;2,25)", Sum);
  Parser.ResetLocale();
  Parser.SetArgSep(',');
  // The printed addresses differ, so the text is not used.
  std::ostringstream Printed;
  std::streambuf *Console = std::cout.rdbuf(Printed.rdbuf());
  mu::ParserBase::EnableDebugDump(true, true);
  evaluate(Parser, "x>1?sin(x)+2*x:max(x,3)", Sum);
  mu::ParserByteCode Code(Parser.GetByteCode());
  Code.AsciiDump();
  Sum.add(static_cast<uint64_t>(Code.GetMaxStackSize()));
  mu::ParserBase::EnableDebugDump(false, false);
  std::cout.rdbuf(Console);
  Parser.ClearFun();
  Parser.ClearConst();
  Parser.ClearVar();
  Parser.ClearInfixOprt();
  Parser.ClearPostfixOprt();
  Parser.ClearOprt();
  for (const char *Text : {"sin(1)", "_pi", "-1", "1+2"})
    evaluate(Parser, Text, Sum);
}

int main(int, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    useNumbers(Random, Sum);
    useBulk(Random, Sum);
    useIntegers(Random, Sum);
    tryErrors(Sum);
    useSettings(Sum);
  }
  Sum.print("muparser");
}
