//===- Pluto.cpp - mlbridge-pluto -----------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A tool that tiles loop nests with Pluto's library. A model chooses the tile
/// size and the factor of unroll-and-jam. CMake builds the tool only if Pluto
/// is installed.
///
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "Features.h"
#include "Model.h"
#include "Program.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <isl/ast_build.h>
#include <memory>
#include <numeric>
#include <pluto/pluto.h>

namespace MLBridge::polyhedral {

namespace {

/// One choice. Tile 0 is the original order, without Pluto.
struct PlutoChoice {
  int Tile = 0;
  int UnrollJam = 1;
};

struct PlutoContextDeleter {
  void operator()(PlutoContext *Context) const { pluto_context_free(Context); }
};

/// The number of tile sizes in Pluto's file. Pluto ignores sizes that it does
/// not need.
constexpr int MostTileSizes = 16;

} // namespace

static std::vector<PlutoChoice> plutoCandidates() {
  std::vector<PlutoChoice> Found = {{}};
  for (const int Tile : {8, 16, 32, 64, 128})
    for (const int Factor : {1, 2, 4, 8})
      Found.push_back({Tile, Factor});
  return Found;
}

/// Returns a map that renames the statements as Pluto expects: S_0, S_1, ...
static isl::union_map plutoNames(const Kernel &K) {
  isl::union_map Names(K.Domain.ctx(), "{}");
  for (std::size_t I = 0; I < K.Statements.size(); ++I) {
    const isl::set &Domain = K.Statements[I].Domain;
    isl_map *Map = isl_set_identity(Domain.copy());
    Map = isl_map_set_tuple_name(Map, isl_dim_out,
                                 ("S_" + std::to_string(I)).c_str());
    Names = Names.unite(isl::manage(Map).to_union_map());
  }
  return Names;
}

/// Returns Pluto's schedule. Pluto reads tile sizes only from the file
/// tile.sizes in the current folder, so each call has a folder of its own. Only
/// one thread of a process may call this function.
static isl::union_map plutoSchedule(const Kernel &K, int Tile) {
  const TemporaryFolder Folder;
  std::ofstream Sizes(Folder.file("tile.sizes"));
  for (int I = 0; I < MostTileSizes; ++I)
    Sizes << Tile << "\n";
  Sizes.close();
  const std::unique_ptr<PlutoContext, PlutoContextDeleter> Context(
      pluto_context_alloc());
  Context->options->tile = 1;
  Context->options->silent = 1;
  // Disable this, because libpluto would expect the names of statements to
  // contain the names of accesses.
  Context->options->isldepaccesswise = 0;
  const isl::union_map Names = plutoNames(K);
  const isl::union_map Order = K.Order.apply_domain(Names);
  const isl::union_map Reads = K.Reads.apply_domain(Names);
  const isl::union_map Writes = K.Writes.apply_domain(Names);
  const std::filesystem::path Before = std::filesystem::current_path();
  std::filesystem::current_path(Folder.path());
  isl_union_map *Found =
      pluto_schedule(Order.get(), Reads.get(), Writes.get(), Context.get());
  std::filesystem::current_path(Before);
  if (!Found)
    throw UserError(K.Name + ": Pluto found no schedule");
  return isl::manage(Found).apply_domain(Names.reverse());
}

/// Returns whether \p Times runs all instances of a kernel, and respects the
/// dependences \p All.
static bool isLegal(const Kernel &K, const isl::union_map &Times,
                    const isl::union_map &All) {
  bool IsLegal = K.Domain.is_subset(Times.domain());
  All.apply_domain(Times).apply_range(Times).foreach_map(
      [&](const isl::map &Pairs) {
        isl_space *Space = isl_space_domain(isl_map_get_space(Pairs.get()));
        const isl::map Later = isl::manage(isl_map_lex_lt(Space));
        IsLegal = IsLegal && Pairs.is_subset(Later);
      });
  return IsLegal;
}

/// Moves blocks of \p Factor iterations of the second innermost loop into the
/// innermost one. \p Dimensions is the number of loops.
static isl::union_map unrollJam(const isl::union_map &Times, int Dimensions,
                                int Factor) {
  std::string From;
  std::string To;
  const std::string Jammed = "t" + std::to_string(Dimensions - 2);
  const std::string Last = "t" + std::to_string(Dimensions - 1);
  for (int I = 0; I < Dimensions; ++I) {
    const std::string Name = "t" + std::to_string(I);
    From += (I ? ", " : "") + Name;
    if (I < Dimensions - 2)
      To += Name + ", ";
  }
  const isl::union_map Jam(Times.ctx(), "{ [" + From + "] -> [" + To +
                                            "floor(" + Jammed + "/" +
                                            std::to_string(Factor) + "), " +
                                            Last + ", " + Jammed + "] }");
  return Times.apply_range(Jam);
}

/// Returns the loops of a choice. Never returns an illegal order.
static isl::ast_node plutoLoops(const Kernel &K, const PlutoChoice &C) {
  const isl::ast_build Build(K.Domain.ctx());
  if (C.Tile == 0)
    return Build.node_from_schedule_map(K.Order);
  isl::union_map Flow;
  const isl::union_map All = dependencesOf(K, Flow);
  const isl::union_map Times =
      plutoSchedule(K, C.Tile).intersect_domain(K.Domain);
  if (!isLegal(K, Times, All))
    throw UserError(
        K.Name + ": Pluto's schedule breaks a dependence or lacks instances");
  unsigned Dimensions = 0;
  Times.foreach_map([&](const isl::map &Map) {
    Dimensions = static_cast<unsigned>(isl_map_dim(Map.get(), isl_dim_out));
  });
  if (C.UnrollJam == 1 || Dimensions < 2)
    return Build.node_from_schedule_map(Times);
  const isl::union_map Jammed =
      unrollJam(Times, static_cast<int>(Dimensions), C.UnrollJam);
  if (!isLegal(K, Jammed, All))
    return Build.node_from_schedule_map(Times);
  std::string Loops;
  for (unsigned I = 0; I <= Dimensions; ++I)
    Loops += (I ? ", t" : "t") + std::to_string(I);
  const isl::union_map Unroll(K.Domain.ctx(), "{ [" + Loops + "] -> unroll[" +
                                                  std::to_string(Dimensions) +
                                                  "] }");
  isl_ast_build *Unrolled =
      isl_ast_build_set_options(Build.copy(), Unroll.copy());
  return isl::manage(Unrolled).node_from_schedule_map(Jammed);
}

/// Asks the model. Each tile size has the features of isl's schedule with this
/// size.
static PlutoChoice decidePluto(const Kernel &K, const std::string &Spec) {
  const std::vector<PlutoChoice> Candidates = plutoCandidates();
  const Scheduler S(K);
  const FeatureExtractor Extractor(K, S);
  Question Q;
  Q.Count = Candidates.size();
  for (const PlutoChoice &C : Candidates) {
    Choice Similar;
    if (C.Tile > 0) {
      Similar.Schedule = 1;
      Similar.Sizes.assign(S.depth(1), C.Tile);
      Similar.Order.resize(S.depth(1));
      std::iota(Similar.Order.begin(), Similar.Order.end(), 0);
    }
    const std::vector<float> Features = Extractor.featuresOf(Similar);
    Q.Features.insert(Q.Features.end(), Features.begin(), Features.end());
    Q.Candidates.insert(Q.Candidates.end(), {C.Tile, C.UnrollJam});
  }
  std::string Warning;
  const int Index = askModel(Spec, Q, Warning);
  if (!Warning.empty())
    std::cerr << "mlbridge-pluto: warning: " << Warning
              << "; the original order is kept\n";
  return Candidates[Index];
}

/// Prints the kernel or, with --run, compares it with the original order.
static int runPluto(const std::vector<std::string> &Arguments) {
  if (Arguments.size() < 2 || Arguments.size() > 3 ||
      (Arguments.size() == 3 && Arguments[2] != "--run"))
    throw UserError("usage: mlbridge-pluto KERNEL.json MODEL-SPEC [--run]");
  const std::unique_ptr<isl_ctx, decltype(&isl_ctx_free)> Context(
      isl_ctx_alloc(), &isl_ctx_free);
  const Kernel K = readKernel(Context.get(), Arguments[0], {});
  const PlutoChoice C = decidePluto(K, Arguments[1]);
  const isl::ast_node Loops = plutoLoops(K, C);
  if (Arguments.size() == 2) {
    std::cout << preamble(K) << functionOf(K, Loops, K.Name);
    return 0;
  }
  constexpr int Rounds = 7;
  constexpr int Seconds = 600;
  constexpr double Slow = 10;
  const std::vector<Measured> Found =
      runProgram(programOf(K,
                           {functionOf(K, plutoLoops(K, {}), variantName(0)),
                            functionOf(K, Loops, variantName(1))},
                           Rounds, Slow),
                 Seconds);
  std::cout << K.Name << ", tiles of " << C.Tile << ", unroll-and-jam "
            << C.UnrollJam << ": "
            << (Found.at(1).IsSame ? "same results, " : "other results, ")
            << medianOf(Found[1].Times) / medianOf(Found[0].Times)
            << " of the original time\n";
  return Found[1].IsSame ? 0 : 1;
}

} // namespace MLBridge::polyhedral

int main(int Count, char **Arguments) {
  try {
    return MLBridge::polyhedral::runPluto({Arguments + 1, Arguments + Count});
  } catch (const std::exception &E) {
    std::cerr << "mlbridge-pluto: " << E.what() << "\n";
    return 1;
  }
}
