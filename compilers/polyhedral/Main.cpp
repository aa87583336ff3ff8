//===- Main.cpp - mlbridge-polyhedral -------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A tool that tiles loop nests with isl. A model chooses the schedule, the
/// tile sizes and the order of the loops inside a tile.
///
//===----------------------------------------------------------------------===//

#include "Candidates.h"
#include "Emitter.h"
#include "Features.h"
#include "Model.h"
#include "Program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <getopt.h>
#include <iostream>
#include <memory>
#include <sstream>

namespace MLBridge::polyhedral {

namespace {

constexpr const char *Help =
    R"(Usage: mlbridge-polyhedral [OPTION...] KERNEL.json

Prints a kernel as a C function. A model chooses the schedule, the tile sizes and
the order of the loops. Without a model, the original order is kept.

  -m, --model SPEC           the model; see docs/reference/model-specs.md
  -c, --choice CHOICE        SCHEDULE:SIZES:ORDER instead of a model's choice,
                             as in 1:32,32,0:0,2,1; may be repeated with --verify,
                             --run and --measure
  -p, --parameter NAME=VALUE value of a parameter of the kernel
  -o, --output FILE          file for the result [default: stdout]
      --verify               run the choice and compare its results with those of
                             the original order, bit for bit
      --run                  verify, and print times
      --list                 print all candidates and their features as JSON
      --measure              run all candidates, or the choice and the original
                             order, and print JSON with their times
      --rounds N             number of runs [default: 7]
      --seconds S            time limit of gcc, and of the program, and limit of
                             this tool's own CPU time [default: 600]
  -h, --help                 print this help
)";

enum class Action { Print, Verify, Run, List, Measure };

struct Options {
  std::string Path;
  std::string Model;
  std::vector<std::string> Choices;
  Parameters Values;
  std::string Output;
  Action Do = Action::Print;
  int Rounds = 7;
  int Seconds = 600;
};

/// A function that takes this many times as long as the original runs once.
constexpr double Slow = 1.7;

struct ContextDeleter {
  void operator()(isl_ctx *Context) const { isl_ctx_free(Context); }
};

/// Limits the CPU time of this process, because isl needs minutes for kernels
/// with many statements or irregular loops. Beyond the limit, isl's functions
/// fail. Programs that this process starts have no part in the limit.
class TimeLimit {
public:
  /// Throws UserError. \p Context must outlive the object.
  TimeLimit(isl_ctx *Context, int Seconds) {
    struct sigaction Action = {};
    Action.sa_flags = SA_SIGINFO | SA_RESTART;
    Action.sa_sigaction = [](int, siginfo_t *About, void *) {
      if (About->si_code == SI_TIMER)
        isl_ctx_abort(static_cast<isl_ctx *>(About->si_value.sival_ptr));
    };
    sigaction(SIGPROF, &Action, nullptr);
    sigevent Event = {};
    Event.sigev_notify = SIGEV_SIGNAL;
    Event.sigev_signo = SIGPROF;
    Event.sigev_value.sival_ptr = Context;
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &Event, &Timer) != 0)
      throw UserError("cannot create a timer");
    const itimerspec End = {{}, {Seconds, 0}};
    timer_settime(Timer, 0, &End, nullptr);
  }
  TimeLimit(const TimeLimit &) = delete;
  TimeLimit &operator=(const TimeLimit &) = delete;
  ~TimeLimit() { timer_delete(Timer); }

private:
  timer_t Timer = {};
};

} // namespace

static std::int64_t parseInteger(std::string_view Text, const char *What) {
  std::int64_t Number = 0;
  const char *Begin = Text.data(); // NOLINT: the end is passed too
  const char *End = Begin + Text.size();
  const auto [Rest, Code] = std::from_chars(Begin, End, Number);
  if (Code != std::errc() || Rest != End)
    throw UserError(std::string(What) + ": expected an integer, found '" +
                    std::string(Text) + "'");
  return Number;
}

static int parseCount(std::string_view Text, const char *What, int Most) {
  const std::int64_t Number = parseInteger(Text, What);
  if (Number < 1 || Number > Most)
    throw UserError(std::string(What) + ": expected a number from 1 to " +
                    std::to_string(Most) + ", found " + std::to_string(Number));
  return static_cast<int>(Number);
}

/// Returns false if the help was printed.
static bool parseOptions(int Count, char **Arguments, Options &Found) {
  constexpr int Verify = 256, Run = 257, List = 258, Measure = 259;
  constexpr int Rounds = 260, Seconds = 261;
  const option Long[] = {{"model", required_argument, nullptr, 'm'},
                         {"choice", required_argument, nullptr, 'c'},
                         {"parameter", required_argument, nullptr, 'p'},
                         {"output", required_argument, nullptr, 'o'},
                         {"verify", no_argument, nullptr, Verify},
                         {"run", no_argument, nullptr, Run},
                         {"list", no_argument, nullptr, List},
                         {"measure", no_argument, nullptr, Measure},
                         {"rounds", required_argument, nullptr, Rounds},
                         {"seconds", required_argument, nullptr, Seconds},
                         {"help", no_argument, nullptr, 'h'},
                         {}};
  int Next = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  while ((Next = getopt_long(Count, Arguments, "m:c:p:o:h", Long, nullptr)) !=
         -1) {
    const std::string Value = optarg ? optarg : "";
    const std::size_t Equals = Value.find('=');
    switch (Next) {
    case 'm':
      Found.Model = Value;
      break;
    case 'c':
      Found.Choices.push_back(Value);
      break;
    case 'p':
      if (Equals == std::string::npos)
        throw UserError("--parameter: expected NAME=VALUE, found '" + Value +
                        "'");
      Found.Values[Value.substr(0, Equals)] = parseInteger(
          std::string_view(Value).substr(Equals + 1), "--parameter");
      break;
    case 'o':
      Found.Output = Value;
      break;
    case Verify:
    case Run:
    case List:
    case Measure:
      Found.Do = static_cast<Action>(Next - Verify + 1);
      break;
    case Rounds:
      Found.Rounds = parseCount(Value, "--rounds", 1000);
      break;
    case Seconds:
      Found.Seconds = parseCount(Value, "--seconds", 86'400);
      break;
    case 'h':
      std::cout << Help;
      return false;
    default:
      throw UserError("see --help");
    }
  }
  if (optind + 1 != Count)
    throw UserError("expected one kernel; see --help");
  Found.Path = Arguments[optind];
  if (!Found.Model.empty() && !Found.Choices.empty())
    throw UserError("expected --model or --choice, found both");
  return true;
}

namespace {

/// The work on one kernel.
class Session {
public:
  Session(isl::ctx Context, const Options &O, std::ostream &Out)
      : O(O), Out(Out), K(readKernel(Context, O.Path, O.Values)), S(K) {}

  /// Returns the exit status.
  int run();

private:
  Choice decide(const std::vector<Choice> &Candidates);
  std::vector<Choice> chosen();
  int compare();
  void printCandidates();
  std::vector<std::string> functionsOf(const std::vector<Choice> &Choices,
                                       std::vector<std::size_t> &Numbers) const;

  const Options &O;
  std::ostream &Out;
  Kernel K;
  Scheduler S;
};

} // namespace

static std::vector<int> rowOf(const Choice &C, int Depth) {
  std::vector<int> Row = {C.Schedule};
  std::vector<int> Sizes = C.Sizes;
  std::vector<int> Order = C.Order;
  Sizes.resize(Depth, 0);
  for (int I = static_cast<int>(Order.size()); I < Depth; ++I)
    Order.push_back(I);
  Row.insert(Row.end(), Sizes.begin(), Sizes.end());
  Row.insert(Row.end(), Order.begin(), Order.end());
  return Row;
}

Choice Session::decide(const std::vector<Choice> &Candidates) {
  int Depth = 0;
  for (int Number = 1; Number < S.numSchedules(); ++Number)
    Depth = std::max(Depth, S.depth(Number));
  const FeatureExtractor Extractor(K, S);
  Question Q;
  Q.Count = Candidates.size();
  for (const Choice &C : Candidates) {
    const std::vector<int> Row = rowOf(C, Depth);
    const std::vector<float> Features = Extractor.featuresOf(C);
    Q.Candidates.insert(Q.Candidates.end(), Row.begin(), Row.end());
    Q.Features.insert(Q.Features.end(), Features.begin(), Features.end());
  }
  std::string Warning;
  const int Index = askModel(O.Model, Q, Warning);
  if (!Warning.empty())
    std::cerr << "mlbridge-polyhedral: warning: " << Warning
              << "; the original order is kept\n";
  return Candidates[Index];
}

std::vector<Choice> Session::chosen() {
  std::vector<Choice> Found;
  Found.reserve(O.Choices.size());
  for (const std::string &Text : O.Choices)
    Found.push_back(parseChoice(Text, S));
  if (Found.empty())
    Found.push_back(O.Model.empty() ? Choice() : decide(candidatesOf(S)));
  return Found;
}

/// Returns the functions without duplicates. \p Numbers receives, for each
/// choice, the number of its function.
std::vector<std::string>
Session::functionsOf(const std::vector<Choice> &Choices,
                     std::vector<std::size_t> &Numbers) const {
  std::vector<isl::ast_node> Loops;
  std::vector<std::string> Texts;
  std::vector<std::string> Functions;
  for (const Choice &C : Choices) {
    const isl::ast_node New = S.loops(C);
    const std::string Text = New.to_C_str();
    auto Known = std::ranges::find(Texts, Text);
    Numbers.push_back(Known - Texts.begin());
    if (Known != Texts.end())
      continue;
    Functions.push_back(functionOf(K, New, variantName(Texts.size())));
    Texts.push_back(Text);
  }
  return Functions;
}

int Session::compare() {
  std::vector<Choice> Choices = chosen();
  Choices.insert(Choices.begin(), Choice());
  std::vector<std::size_t> Numbers;
  const std::vector<std::string> Functions = functionsOf(Choices, Numbers);
  const bool IsTimed = O.Do == Action::Run;
  const std::vector<Measured> Found = runProgram(
      programOf(K, Functions, IsTimed ? O.Rounds : 0, IsTimed ? Slow : 1e9),
      O.Seconds);
  bool AllSame = true;
  for (std::size_t I = IsTimed ? 0 : 1; I < Choices.size(); ++I) {
    const Measured &M = Found.at(Numbers[I]);
    AllSame &= M.IsSame;
    Out << K.Name << " " << textOf(Choices[I]) << ": "
        << (M.IsSame ? "same results" : "other results");
    if (IsTimed)
      Out << ", " << medianOf(M.Times) / 1e6 << " ms, "
          << medianOf(M.Times) / medianOf(Found[0].Times)
          << " of the original order's time";
    Out << "\n";
  }
  return AllSame ? 0 : 1;
}

template <typename T>
static void printList(std::ostream &Out, const std::vector<T> &Values) {
  for (std::size_t I = 0; I < Values.size(); ++I)
    Out << (I ? ", " : "[") << Values[I];
  Out << "]";
}

void Session::printCandidates() {
  std::vector<Choice> Candidates;
  if (O.Choices.empty() && O.Model.empty()) {
    Candidates = candidatesOf(S);
  } else {
    Candidates = chosen();
    Candidates.insert(Candidates.begin(), Choice());
  }
  std::vector<std::size_t> Numbers;
  std::vector<Measured> Found;
  if (O.Do == Action::Measure) {
    std::vector<std::string> Functions = functionsOf(Candidates, Numbers);
    // Measure the original order twice, because the difference shows the noise.
    Functions.push_back(
        functionOf(K, S.loops(Choice()), variantName(Functions.size())));
    Found = runProgram(programOf(K, Functions, O.Rounds, Slow), O.Seconds);
    if (Found.size() != Functions.size())
      throw UserError("the program printed " + std::to_string(Found.size()) +
                      " lines, expected " + std::to_string(Functions.size()));
  }
  const FeatureExtractor Extractor(K, S);
  Out.precision(10);
  Out << "{\"kernel\": \"" << K.Name << "\", \"candidates\": [\n";
  for (std::size_t I = 0; I < Candidates.size(); ++I) {
    Out << (I ? ",\n" : "") << "{\"choice\": \"" << textOf(Candidates[I])
        << "\", \"features\": ";
    printList(Out, Extractor.featuresOf(Candidates[I]));
    if (!Found.empty()) {
      Out << ", \"same\": " << (Found.at(Numbers[I]).IsSame ? "true" : "false")
          << ", \"nanoseconds\": ";
      printList(Out, Found.at(Numbers[I]).Times);
    }
    Out << "}";
  }
  Out << "\n]";
  if (!Found.empty()) {
    Out << ", \"again\": ";
    printList(Out, Found.back().Times);
  }
  Out << "}\n";
}

int Session::run() {
  if (O.Do == Action::Verify || O.Do == Action::Run)
    return compare();
  if (O.Do != Action::Print) {
    printCandidates();
    return 0;
  }
  const std::vector<Choice> Choices = chosen();
  if (Choices.size() != 1)
    throw UserError("several --choice need --verify or --run");
  Out << "/* " << K.Name << ", choice " << textOf(Choices[0])
      << ". Made by mlbridge-polyhedral. The arrays must not overlap. */\n"
      << preamble(K) << functionOf(K, S.loops(Choices[0]), K.Name);
  return 0;
}

static int runTool(int Count, char **Arguments) {
  Options O;
  if (!parseOptions(Count, Arguments, O))
    return 0;
  const std::unique_ptr<isl_ctx, ContextDeleter> Context(isl_ctx_alloc());
  isl_options_set_on_error(Context.get(), ISL_ON_ERROR_CONTINUE);
  const TimeLimit Limit(Context.get(), O.Seconds);
  // Check this first, because a measurement takes long.
  if (!O.Output.empty()) {
    const bool IsNew = !std::filesystem::exists(O.Output);
    if (!std::ofstream(O.Output, std::ios::app))
      throw UserError(O.Output + ": cannot write this file");
    if (IsNew)
      std::filesystem::remove(O.Output);
  }
  // Write the file last, so that a failure leaves it as it is.
  std::ostringstream Result;
  int Status = 0;
  try {
    Status = Session(Context.get(), O, Result).run();
  } catch (const std::exception &) {
    if (!isl_ctx_aborted(Context.get()))
      throw;
  }
  if (isl_ctx_aborted(Context.get()))
    throw UserError(O.Path + ": isl took more than " +
                    std::to_string(O.Seconds) +
                    " s of CPU time; use --seconds or fewer statements");
  std::ofstream File;
  if (!O.Output.empty())
    File.open(O.Output);
  std::ostream &Out = O.Output.empty() ? std::cout : File;
  Out << Result.str() << std::flush;
  if (!Out)
    throw UserError("cannot write the result");
  return Status;
}

} // namespace MLBridge::polyhedral

int main(int Count, char **Arguments) {
  // Ignore the signal, so that writing beyond `ulimit -f` is an ordinary error.
  std::signal(SIGXFSZ, SIG_IGN); // NOLINT(cert-err33-c)
  try {
    return MLBridge::polyhedral::runTool(Count, Arguments);
  } catch (const std::exception &E) {
    std::cerr << "mlbridge-polyhedral: " << E.what() << "\n";
    return 1;
  }
}
