//===- examples/environment/spills.cpp - Learns what to spill ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register allocator as an environment, in which a model chooses the live
// range to spill. The allocator visits the instructions of a function in order,
// like linear scan. If a live range begins while all registers are in use, one
// of the live ranges must move to memory. Each episode is a new function. A use
// inside a loop costs more than a use outside. The environment also computes
// the minimum cost. Rewards are relative to that cost, so the best possible
// return is -1.
//
//   mlbridge train examples/environment/spills.py
//   build/release/examples/environment/spills pipe:/tmp/trainer
//
// With --classes=2, there are two register classes and two agents, "int" and
// "float". The agent of the class that needs a register acts next. With
// --graph=1, an observation is the interference graph of the agent's class,
// with a node for each live range that can be spilled now or begins later.
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/EnvironmentServer.h"
#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Training/gRPCTraining.h"
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string_view>
#include <vector>

using namespace MLBridge;

namespace {

/// The range of instructions from a value's definition to its last use.
struct LiveRange {
  unsigned Begin, End;
  /// The cost of loads and stores if the value is in memory. Each loop around a
  /// use multiplies the use's cost by 4.
  double Cost;
  unsigned Class;
};

struct Settings {
  std::string Spec;
  unsigned Registers = 4;
  unsigned Values = 32;
  unsigned Classes = 1;
  unsigned Graph = 0;
};

} // namespace

/// Returns the live ranges of a random function. The function is a straight
/// line of instructions, and each instruction defines a value. Some parts of
/// the line are loops.
static std::vector<LiveRange> randomFunction(std::mt19937_64 &Random,
                                             const Settings &Options) {
  auto Roll = [&](unsigned Sides) { return unsigned(Random() % Sides); };
  std::vector<double> Weight(Options.Values);
  for (unsigned I = 0, Depth = 0; I < Options.Values; ++I) {
    if (Roll(4) == 0)
      Depth = Depth == 0 ? 1 : Depth == 2 ? 1 : 2 * Roll(2);
    Weight[I] = Depth == 0 ? 1 : Depth == 1 ? 4 : 16;
  }
  std::vector<LiveRange> Ranges;
  for (unsigned I = 0; I < Options.Values; ++I) {
    LiveRange Range{I, I + 1, Weight[I], Roll(Options.Classes)};
    const unsigned Reach = Roll(3) == 0 ? 24 : 8;
    for (unsigned Uses = 1 + Roll(3); Uses != 0; --Uses) {
      unsigned At = std::min(I + 1 + Roll(Reach), Options.Values - 1);
      Range.Cost += Weight[At];
      Range.End = std::max(Range.End, At + 1);
    }
    Ranges.push_back(Range);
  }
  return Ranges;
}

/// Returns the minimum cost of spills. Dynamic programming computes, after each
/// definition, the minimum cost of every possible set of ranges in registers.
static double optimum(const std::vector<LiveRange> &Ranges,
                      const Settings &Options) {
  using Live = std::vector<unsigned>;
  std::map<Live, double> Ways{{{}, 0}};
  for (unsigned I = 0; I < Ranges.size(); ++I) {
    std::map<Live, double> Next;
    auto Reach = [&Next](const Live &Set, double Cost) {
      auto [At, IsNew] = Next.emplace(Set, Cost);
      At->second = std::min(At->second, Cost);
    };
    for (const auto &[Before, Cost] : Ways) {
      Live Set = Before;
      std::erase_if(Set, [&](unsigned R) { return Ranges[R].End <= I; });
      Set.push_back(I);
      if (std::ranges::count(Set, Ranges[I].Class, [&](unsigned R) {
            return Ranges[R].Class;
          }) <= Options.Registers) {
        Reach(Set, Cost);
        continue;
      }
      for (unsigned Victim : Set)
        if (Ranges[Victim].Class == Ranges[I].Class) {
          Live Rest = Set;
          std::erase(Rest, Victim);
          Reach(Rest, Cost + Ranges[Victim].Cost);
        }
    }
    Ways = std::move(Next);
  }
  double Best = Ways.begin()->second;
  for (const auto &Way : Ways)
    Best = std::min(Best, Way.second);
  return Best;
}

namespace {

class SpillEnvironment final : public Environment {
public:
  explicit SpillEnvironment(Settings Given) : Given(std::move(Given)) {}

  Error reset(FeatureSet &Observation) override {
    if (seed())
      Random.seed(static_cast<std::uint64_t>(*seed()));
    do {
      Ranges = randomFunction(Random, Given);
      Best = optimum(Ranges, Given);
    } while (Best == 0); // Skip functions that need no spill.
    Registers.assign(Given.Classes, {});
    At = 0;
    Spent = LastCost = 0;
    advance();
    return observe(Observation);
  }

  Error step(const Advice &Action, FeatureSet &Observation) override {
    Expected<unsigned> Choice = Action.get<unsigned>();
    if (!Choice)
      return Choice.takeError();
    if (*Choice >= Candidates->size())
      return {ErrorCode::SchemaMismatch,
              "expected the index of one of " +
                  std::to_string(Candidates->size()) + " live ranges, found " +
                  std::to_string(*Choice)};
    LastCost = Ranges[(*Candidates)[*Choice]].Cost;
    Spent += LastCost;
    Candidates->erase(Candidates->begin() + *Choice);
    advance();
    return observe(Observation);
  }

  double reward() const override { return -LastCost / Best; }

private:
  /// Moves to the next definition that finds all registers of its class in use.
  void advance() {
    for (; At < Ranges.size(); ++At) {
      std::vector<unsigned> &Live = Registers[Ranges[At].Class];
      std::erase_if(Live, [&](unsigned R) { return Ranges[R].End <= At; });
      Live.push_back(At);
      if (Live.size() > Given.Registers) {
        Candidates = &Live;
        // Sort by decreasing end.
        std::ranges::sort(Live, [&](unsigned A, unsigned B) {
          return std::pair(Ranges[B].End, A) < std::pair(Ranges[A].End, B);
        });
        ++At;
        return;
      }
    }
    setDone();
  }

  Error observe(FeatureSet &Observation) {
    if (checkDone())
      setInfo("{\"cost\": " + std::to_string(Spent) +
              ", \"optimum\": " + std::to_string(Best) + "}");
    else if (Given.Classes == 2)
      setNextAgent(Ranges[At - 1].Class == 0 ? "int" : "float");
    Rows.clear();
    if (Given.Graph) {
      observeGraph(Observation);
      return Error::success();
    }
    if (!checkDone())
      for (unsigned R : *Candidates)
        describe(R);
    Rows.resize(3 * std::size_t(Given.Registers + 1));
    // The feature is a view. Its data is copied when the observation is sent.
    Observation.set("ranges", Span<const float>(Rows));
    return Error::success();
  }

  /// Appends a row of features for a live range: its remaining length, its
  /// spill cost, and its spill cost per remaining instruction.
  void describe(unsigned R) {
    const double Reach = Ranges[R].End - std::max(At, Ranges[R].Begin) + 1;
    Rows.push_back(float(Reach / 24));
    Rows.push_back(float(std::log2(1 + Ranges[R].Cost) / 6));
    Rows.push_back(float(std::log2(1 + Ranges[R].Cost / Reach) / 6));
  }

  /// Writes the interference graph. The first nodes are the ranges that can be
  /// spilled now, and the action mask is 1 for them. The other nodes are ranges
  /// that begin later. An edge joins two ranges that are live at the same time.
  /// Its feature is the length of their overlap.
  void observeGraph(FeatureSet &Observation) {
    std::vector<unsigned> Nodes;
    if (!checkDone()) {
      Nodes = *Candidates;
      for (unsigned R = At; R < Ranges.size(); ++R)
        if (Ranges[R].Class == Ranges[At - 1].Class)
          Nodes.push_back(R);
    }
    Overlaps.clear();
    Links.clear();
    Mask.clear();
    for (unsigned R : Nodes) {
      describe(R);
      Mask.push_back(R < At);
    }
    for (std::size_t A = 0; A < Nodes.size(); ++A)
      for (std::size_t B = 0; B < A; ++B) {
        const LiveRange &One = Ranges[Nodes[A]], &Other = Ranges[Nodes[B]];
        const unsigned Begin = std::max(One.Begin, Other.Begin);
        const unsigned End = std::min(One.End, Other.End);
        if (Begin >= End)
          continue;
        Overlaps.push_back(float(End - Begin) / 24);
        Links.insert(Links.end(), {std::int64_t(A), std::int64_t(B)});
      }
    const auto Count = std::int64_t(Nodes.size());
    const auto Edges = std::int64_t(Overlaps.size());
    Observation.set("action_mask", Span<const std::int8_t>(Mask));
    Observation.set("graph.nodes", TensorRef(Rows, {Count, 3}));
    Observation.set("graph.edges", TensorRef(Overlaps, {Edges, 1}));
    Observation.set("graph.edge_links", TensorRef(Links, {Edges, 2}));
  }

  Settings Given;
  std::mt19937_64 Random{std::random_device()()};
  std::vector<LiveRange> Ranges;
  /// For each class, the ranges that are in registers.
  std::vector<std::vector<unsigned>> Registers;
  std::vector<unsigned> *Candidates = nullptr;
  unsigned At = 0;
  double Best = 0, Spent = 0, LastCost = 0;
  std::vector<float> Rows, Overlaps;
  std::vector<std::int64_t> Links;
  std::vector<std::int8_t> Mask;
};

} // namespace

static int usage(const char *Program) {
  std::fprintf(stderr,
               "usage: %s [SPEC] [--registers=4] [--values=32] [--classes=1] "
               "[--graph=0]\n"
               "SPEC (default: MLBRIDGE_SPEC): where the trainer listens, such "
               "as pipe:/tmp/trainer\n",
               Program);
  return 2;
}

/// Parses \p Argument if it is \p Option followed by a number.
static bool readNumber(std::string_view Argument, std::string_view Option,
                       unsigned &Number) {
  if (!Argument.starts_with(Option))
    return false;
  const char *End = Argument.data() + Argument.size();
  auto [Rest, Status] =
      std::from_chars(Argument.data() + Option.size(), End, Number);
  return Status == std::errc() && Rest == End;
}

int main(int argc, char **argv) {
  Settings Given;
  if (const char *Spec = std::getenv("MLBRIDGE_SPEC"))
    Given.Spec = Spec;
  for (int I = 1; I < argc; ++I)
    if (!readNumber(argv[I], "--registers=", Given.Registers) &&
        !readNumber(argv[I], "--values=", Given.Values) &&
        !readNumber(argv[I], "--classes=", Given.Classes) &&
        !readNumber(argv[I], "--graph=", Given.Graph)) {
      if (argv[I][0] == '-')
        return usage(argv[0]);
      Given.Spec = argv[I];
    }
  // Limit the registers, because computing the optimum for more of them takes
  // long.
  if (Given.Spec.empty() || Given.Registers < 1 || Given.Registers > 8 ||
      Given.Values <= Given.Registers || Given.Values > 256 ||
      Given.Classes < 1 || Given.Classes > 2 || Given.Graph > 1)
    return usage(argv[0]);

  SpillEnvironment Env(Given);
  EnvironmentServer Server;
#ifdef MLBRIDGE_HAS_GRPC
  addGRPC(Server);
#endif
  if (Error E = Server.serve(Env, Given.Spec)) {
    std::fprintf(stderr, "spills: %s\n", E.str().c_str());
    return 1;
  }
}
