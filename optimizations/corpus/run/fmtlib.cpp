// Formats values of all kinds in all ways of fmt, with formats that are known
// at compile time and with formats that are not.
#include "driver.h"
#include "fmt/args.h"
#include "fmt/chrono.h"
#include "fmt/color.h"
#include "fmt/compile.h"
#include "fmt/format.h"
#include "fmt/os.h"
#include "fmt/ostream.h"
#include "fmt/printf.h"
#include "fmt/ranges.h"
#include "fmt/std.h"
#include "fmt/xchar.h"

#include <cstdlib>
#include <iterator>
#include <locale>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

struct Point {
  int X, Y;
};

template <> struct fmt::formatter<Point> {
  char Kind = 'c';
  constexpr auto parse(format_parse_context &Context) {
    auto At = Context.begin();
    if (At != Context.end() && (*At == 'c' || *At == 'p'))
      Kind = *At++;
    return At;
  }
  template <typename Context> auto format(const Point &P, Context &Into) const {
    return Kind == 'p'
               ? fmt::format_to(Into.out(), "{} at {:.3f}", P.X, P.Y / 7.0)
               : fmt::format_to(Into.out(), "({}, {})", P.X, P.Y);
  }
};

struct Streamed {
  int Value;
};
static std::ostream &operator<<(std::ostream &Out, const Streamed &Each) {
  return Out << "<" << Each.Value << ">";
}
template <> struct fmt::formatter<Streamed> : ostream_formatter {};

// Groups of three digits.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  std::string do_truename() const override { return "yes"; }
};

static void fixedFormats(Draw &Random, Checksum &Sum) {
  const int Number = static_cast<int>(Random.below(1u << 31)) - (1 << 30);
  const uint64_t Large = Random.below(1u << 31) * 999999937ull;
  const double Real = Number / 1000.0 * (Random.below(2) ? 1e-9 : 1e12);
  const std::string Word = Random.word();
  Sum.add(fmt::format("{} {:>12} {:<9}|{:^20}|{:*^+15}", Number, Number, Word,
                      Word, Number));
  Sum.add(fmt::format("{:#x} {:#X} {:#b} {:B} {:o} {:08d} {:c}", Large, Large,
                      Number, Large, Number, Number, 'x'));
  Sum.add(fmt::format("{} {:e} {:G} {:.3f} {:+.0f} {:a} {:%>20.5g} {:#.2g}",
                      Real, Real, Real, Real, Real, Real, Real, Real));
  Sum.add(fmt::format("{} {:.3} {:>10.2f} {}", static_cast<float>(Real), Real,
                      static_cast<long double>(Real), -0.0f));
  Sum.add(fmt::format("{1} {0} {name:.{size}}", 1, 2, fmt::arg("name", Word),
                      fmt::arg("size", 3)));
  Sum.add(fmt::format("{} {} {} {:?} {:?}", true, 'c', "text", Word + "\n\t\"é",
                      'q'));
  Sum.add(fmt::format("{} {:p} {}", Point{Number, 3}, Point{1, Number},
                      Streamed{Number}));
  Sum.add(
      fmt::format(FMT_COMPILE("{} {:x} {:>8} {}"), Number, Number, Word, Real));
  Sum.add(fmt::to_string(Number) + fmt::to_string(Real) +
          fmt::to_string(Large) + fmt::to_string(true));
  Sum.add(fmt::format_int(Number).str() + fmt::format_int(Large).c_str());
  Sum.add(static_cast<uint64_t>(fmt::formatted_size("{:>7} {}", Number, Word)));
  char Buffer[20];
  const auto Result = fmt::format_to_n(Buffer, 19, "{} {}", Word, Large);
  Sum.add(std::string_view(Buffer, std::min<size_t>(Result.size, 19)));
  fmt::memory_buffer Memory;
  fmt::format_to(fmt::appender(Memory), "{:>600} {}", Word, Large);
  Sum.add(fmt::to_string(Memory));
  std::vector<char> Characters;
  fmt::format_to(std::back_inserter(Characters), "{} {}", Word, Real);
  Sum.add(std::string_view(Characters.data(), Characters.size()));
  Sum.add(fmt::format(FMT_STRING("{:d} {:s}"), Number, Word));
  Sum.add(fmt::format("{} {:d}", static_cast<__int128>(Large) * Number,
                      static_cast<unsigned __int128>(Large) << 50));
  Sum.add(fmt::format("{}", fmt::ptr(static_cast<int *>(nullptr))));
  Sum.add(fmt::format("{} {}", fmt::streamed(Streamed{1}),
                      fmt::group_digits(Large)));
}

static void otherKinds(Draw &Random, Checksum &Sum) {
  std::vector<int> Numbers(Random.below(8));
  for (int &Each : Numbers)
    Each = static_cast<int>(Random.below(100));
  const std::map<std::string, double> Map = {{Random.word(), 0.5}, {"b", 7.25}};
  const std::tuple<int, std::string, char> Tuple(4, Random.word(), 'z');
  Sum.add(fmt::format("{} {::#x} {} {} {}", Numbers, Numbers, Map, Tuple,
                      std::set<std::string>{"q", Random.word()}));
  Sum.add(fmt::format("{} {} {:02}", fmt::join(Numbers, "; "),
                      fmt::join(std::make_tuple(1, 'a', "b"), "/"),
                      fmt::join(Numbers.begin(), Numbers.end(), ":")));
  Sum.add(fmt::sprintf("%5d|%-8s|%+.3f|%x|%c|%%|%*d|%lld", 7, Random.word(),
                       2.5, 255, 'c', 6, 9, -1ll));
  Sum.add(fmt::sprintf("%2$s %1$i %2$.3s", 7, Random.word()));
  const std::chrono::seconds Seconds(Random.below(1u << 31));
  const std::tm Time = fmt::gmtime(static_cast<std::time_t>(Seconds.count()));
  Sum.add(fmt::format("{:%Y-%m-%d %H:%M:%S %a %A %b %B %j %y %e %I %p %U %W %V "
                      "%G %u %w %C %D %F %R %T %n %t %%}",
                      Time));
  Sum.add(
      fmt::format("{:%c %x %X %r %h %d %g %z %Z %Ey %Od}", Time).substr(0, 20));
  Sum.add(fmt::format("{} {:%H:%M:%S} {:%Q %q}", Seconds, Seconds,
                      std::chrono::milliseconds(Random.below(100000)),
                      Seconds));
  Sum.add(fmt::format("{:.2} {:%S} {:%I %p} {}",
                      std::chrono::duration<double>(1.2345),
                      std::chrono::milliseconds(-12345), std::chrono::hours(15),
                      std::chrono::duration<int, std::ratio<60>>(3)));
  Sum.add(fmt::format(fmt::fg(fmt::color::red) | fmt::bg(fmt::rgb(1, 2, 3)) |
                          fmt::emphasis::bold | fmt::emphasis::underline,
                      "styled {} {}", Numbers.size(), Random.word()));
  Sum.add(
      fmt::format("{}", fmt::styled(1.5, fmt::fg(fmt::terminal_color::green))));
  const std::wstring Wide =
      fmt::format(L"{:>10} {:.2f} {:#x} {:%Y}", L"wide", 2.5, 77, Time);
  Sum.add(std::string(Wide.begin(), Wide.end()));
  const std::locale Local(std::locale::classic(), new Grouping);
  Sum.add(fmt::format(Local, "{:L} {:L} {:L}", 1234567890, 1234567.891, true));
}

static void dynamicFormats(Draw &Random, Checksum &Sum) {
  fmt::dynamic_format_arg_store<fmt::format_context> Store;
  Store.push_back(static_cast<int>(Random.below(1000)));
  Store.push_back(Random.word());
  Store.push_back(Random.below(1000) / 8.0);
  Store.push_back(fmt::arg("named", Random.word()));
  Store.push_back('c');
  Store.push_back(Random.below(2) == 0);
  static const char *Pieces[] = {"{}",         "{:d}",
                                 "{:x}",       "{:>{}}",
                                 "{:s}",       "{:.2f}",
                                 "{named}",    "{0}",
                                 "{1:>9}",     "{:",
                                 "}",          "{9}",
                                 "{{}}",       "{:.{}}",
                                 "{:+08}",     "{:?}",
                                 "{:,^11}",    "{0:c}",
                                 "{2:e}",      "{:#b}",
                                 "{named:>8}", "{:p}",
                                 "{3}",        "{4:d}",
                                 "{5:d}",      "{:99999999999}",
                                 "{:L}"};
  std::string Format;
  for (int Count = 1 + static_cast<int>(Random.below(3)); Count > 0; --Count)
    Format += Pieces[Random.below(std::size(Pieces))];
  try {
    Sum.add(fmt::vformat(Format, Store));
  } catch (const fmt::format_error &Error) {
    Sum.add(Error.what());
  }
}

static void files(Checksum &Sum) {
  {
    fmt::ostream Out = fmt::output_file("made", fmt::buffer_size = 100);
    for (int Line = 0; Line < 200; ++Line)
      Out.print("line {} of {:>7}\n", Line, "made");
    Out.flush();
  }
  {
    fmt::file File("made", fmt::file::RDONLY);
    char Start[40];
    Sum.add(std::string_view(Start, File.read(Start, sizeof(Start))));
    Sum.add(static_cast<int64_t>(File.size()));
    fmt::file Copy = fmt::file::dup(File.descriptor());
    fmt::buffered_file Buffered = Copy.fdopen("r");
    Sum.add(std::fgetc(Buffered.get()));
  }
  fmt::file Read, Write;
  fmt::file::pipe(Read, Write);
  Write.write("piped", 5);
  Write.close();
  char Piped[5];
  Sum.add(std::string_view(Piped, Read.read(Piped, 5)));
  try {
    fmt::file Missing("not/there", fmt::file::RDONLY);
  } catch (const std::system_error &Error) {
    Sum.add(Error.what());
  }
  Sum.add(fmt::system_error(2, "cannot open {}", "it").what());
  std::ostringstream Stream;
  fmt::print(Stream, "{} {}\n", Streamed{4}, "printed");
  Sum.add(Stream.str());
  fmt::print(fmt::emphasis::italic, "{}\n", 3);
  fmt::print("{} {}\n", "printed", 0.1);
  fmt::printf("%s %d\n", "printed", 5);
}

int main(int, char **Arguments) {
  Checksum Sum;
  Draw Random(1);
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    fixedFormats(Random, Sum);
    otherKinds(Random, Sum);
    for (int Index = 0; Index < 9; ++Index)
      dynamicFormats(Random, Sum);
  }
  files(Sum);
  Sum.print("fmtlib");
}
