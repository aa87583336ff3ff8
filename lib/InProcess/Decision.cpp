//===- Decision.cpp - Turns a model's outputs into advice -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/Decision.h"

#include "Core/WithNumber.h"
#include "InProcess/FeatureBinding.h"
#include "InProcess/ModelMetadata.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cmath>

using namespace MLBridge;
using namespace MLBridge::inprocess;

//===----------------------------------------------------------------------===//
// Choosing the output and the rule
//===----------------------------------------------------------------------===//

/// Returns the index of the output \p Name. If \p Name is empty, the model must
/// have exactly one output.
static Expected<std::size_t> findOutput(const Model &M,
                                        const std::string &Name) {
  Span<const TensorSpec> Outputs = M.outputs();
  std::string Known;
  for (std::size_t I = 0; I < Outputs.size(); ++I) {
    if (Outputs[I].Name == Name || (Name.empty() && Outputs.size() == 1))
      return I;
    Known += (Known.empty() ? "'" : ", '") + printable(Outputs[I].Name) + "' " +
             Outputs[I].typeStr();
  }
  return Error(ErrorCode::SchemaMismatch,
               M.name() + ": expected an output " +
                   (Name.empty() ? "to decide on; name it with ?output=NAME or "
                                   "the metadata 'mlbridge.decide'"
                                 : "'" + printable(Name) + "'") +
                   ", found " + (Known.empty() ? "no outputs" : Known));
}

Expected<Decision> Decision::create(const Model &M,
                                    const DecisionOptions &Options) {
  Decision Made(M, Options);
  std::string Name = Options.Output;
  Made.Decide = Options.Decide.value_or(Rule::Outputs);
  // Use the metadata's output only if the caller names no output. A caller that
  // names an output but no rule gets that output unchanged.
  if (Name.empty()) {
    Expected<DefaultDecision> Default = defaultDecision(M);
    if (!Default)
      return Default.takeError();
    // Do not choose from the metadata's output if the metadata's rule is
    // `outputs`, because that output is not a list of scores. For example, a
    // classifier's label is a single number.
    const bool BothChoose =
        Made.Decide != Rule::Outputs && Default->Rule != Rule::Outputs;
    if (!Options.Decide)
      Made.Decide = Default->Rule;
    if (BothChoose || !Options.Decide)
      Name = std::move(Default->Output);
  }

  if (Made.Decide == Rule::Outputs) {
    if (!Options.Mask.empty())
      return Error(ErrorCode::InvalidArgument,
                   M.name() + ": the mask '" + Options.Mask +
                       "' needs a decision: expected ?decide=argmax or "
                       "?decide=sample");
    if (Name.empty())
      return Made;
  }
  Expected<std::size_t> Found = findOutput(M, Name);
  if (!Found)
    return Found.takeError();
  Made.Output = *Found;
  const TensorSpec &Scores = M.outputs()[*Found];
  if (Made.Decide != Rule::Outputs && Scores.Type == ElementType::String)
    return Error(ErrorCode::SchemaMismatch,
                 M.name() + ": output '" + printable(Scores.Name) +
                     "': expected numbers to choose from, found " +
                     Scores.typeStr());
  return Made;
}

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

/// Returns element \p I of \p Data, which need not be aligned.
template <typename T> static T load(const void *Data, std::size_t I) {
  T Value;
  __builtin_memcpy(&Value, static_cast<const char *>(Data) + I * sizeof(T),
                   sizeof(T));
  return Value;
}

/// Returns the type with which elements are read as numbers. Bools are read as
/// bytes.
static ElementType numberType(ElementType Type) {
  return Type == ElementType::Bool ? ElementType::UInt8 : Type;
}

Expected<Advice> Decision::decide(Span<const TensorView> Outputs,
                                  Span<const TensorView> Features) {
  if (!Output)
    return Advice(Outputs);
  const TensorView &Scores = Outputs[*Output];
  if (Decide == Rule::Outputs)
    return Advice({&Scores, 1});
  if (!Mask.empty())
    if (Error E = readMask(Scores, Features))
      return E;
  if (Error E = detail::withNumber(numberType(Scores.Type), [&](auto Zero) {
        return choose<decltype(Zero)>(Scores);
      }))
    return E;

  Choice.Name = Scores.Name;
  Choice.Type = ElementType::Int64;
  Choice.Dims = Shape(
      Span<const std::int64_t>(Scores.Dims.begin(), Scores.Dims.rank() - 1));
  Choice.Data = Choices.data();
  Choice.NumBytes = Choices.size() * sizeof(std::int64_t);
  return Advice({&Choice, 1});
}

/// Returns the extents of \p Dims without leading extents of 1.
static Span<const std::int64_t> essential(const Shape &Dims) {
  const std::int64_t *First = Dims.begin();
  while (First != Dims.end() && *First == 1)
    ++First;
  return {First, std::size_t(Dims.end() - First)};
}

/// Returns true if the mask has the shape of its scores. A mask of another rank
/// also fits if it has the same number of elements. For example, a flat list
/// fits a table.
static bool fitsScores(const Shape &Mask, const Shape &Scores) {
  Span<const std::int64_t> A = essential(Mask), B = essential(Scores);
  if (A.size() == B.size())
    return std::equal(A.begin(), A.end(), B.begin());
  return Mask.numElements() == Scores.numElements();
}

Error Decision::readMask(const TensorView &Scores,
                         Span<const TensorView> Features) {
  auto Wrong = [&](const std::string &Found) {
    return Error(ErrorCode::SchemaMismatch,
                 ModelName + ": the mask '" + printable(Mask) +
                     "': expected a number or bool for each of " +
                     std::to_string(Scores.numElements()) +
                     " actions of output '" + printable(Scores.Name) + "' " +
                     Scores.typeStr() + ", found " + Found);
  };
  const TensorView *Found = findFeature(Features, Mask, MaskSlot);
  if (!Found)
    return Wrong("no feature of that name among " + listFeatures(Features));
  if (Found->Type == ElementType::String ||
      !fitsScores(Found->Dims, Scores.Dims))
    return Wrong(Found->typeStr());
  Legal.resize(Found->numElements());
  return detail::withNumber(numberType(Found->Type), [&](auto Zero) {
    for (std::size_t I = 0; I < Legal.size(); ++I)
      Legal[I] = load<decltype(Zero)>(Found->Data, I) != Zero;
    return Error::success();
  });
}

template <typename T> Error Decision::choose(const TensorView &Scores) {
  if (Scores.Dims.isScalar())
    return {ErrorCode::SchemaMismatch,
            ModelName + ": output '" + printable(Scores.Name) +
                "': expected numbers to choose from, found " +
                Scores.typeStr()};
  const auto Width =
      static_cast<std::size_t>(Scores.Dims[Scores.Dims.rank() - 1]);
  std::size_t Rows = 1;
  for (std::size_t I = 0; I + 1 < Scores.Dims.rank(); ++I)
    Rows *= static_cast<std::size_t>(Scores.Dims[I]);
  Choices.resize(Rows);
  for (std::size_t Row = 0; Row < Rows; ++Row) {
    Span<const T> Values(static_cast<const T *>(Scores.Data) + Row * Width,
                         Width);
    const std::uint8_t *RowLegal =
        Mask.empty() ? nullptr : Legal.data() + Row * Width;
    Expected<std::int64_t> Chosen = Decide == Rule::ArgMax
                                        ? argMax(Values, RowLegal)
                                        : sample(Values, RowLegal);
    if (!Chosen) {
      Error E = Chosen.takeError();
      return {E.code(), ModelName + ": output '" + printable(Scores.Name) +
                            "' " + Scores.typeStr() + ", row " +
                            std::to_string(Row) + ": " + E.message()};
    }
    Choices[Row] = *Chosen;
  }
  return Error::success();
}

static Error noAction(bool IsMasked) {
  return {ErrorCode::SchemaMismatch,
          IsMasked ? "the mask leaves no legal action"
                   : "there are no actions to choose from"};
}

/// Returns the error for a score that cannot be compared. \p I is its index.
static Error badScore(std::size_t I, const char *What) {
  return {ErrorCode::Model, "expected scores that can be compared, found " +
                                std::string(What) + " at " + std::to_string(I)};
}

template <typename T>
Expected<std::int64_t> Decision::argMax(Span<const T> Row,
                                        const std::uint8_t *RowLegal) const {
  std::optional<std::size_t> Best;
  for (std::size_t I = 0; I < Row.size(); ++I) {
    if (RowLegal && !RowLegal[I])
      continue;
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(Row[I]))
        return badScore(I, "NaN");
    if (!Best || Row[I] > Row[*Best])
      Best = I;
  }
  if (!Best)
    return noAction(RowLegal != nullptr);
  return static_cast<std::int64_t>(*Best);
}

template <typename T>
Expected<std::int64_t> Decision::sample(Span<const T> Row,
                                        const std::uint8_t *RowLegal) {
  // Subtract the greatest score from each score. All weights are then at most
  // exp(0), so nothing overflows.
  Expected<std::int64_t> Best = argMax(Row, RowLegal);
  if (!Best)
    return Best;
  const auto Greatest = static_cast<double>(Row[std::size_t(*Best)]);
  if (std::isinf(Greatest))
    return badScore(std::size_t(*Best), "an infinity as the greatest");
  auto Weight = [&](std::size_t I) {
    return RowLegal && !RowLegal[I]
               ? 0.0
               : std::exp(static_cast<double>(Row[I]) - Greatest);
  };
  double Total = 0;
  for (std::size_t I = 0; I < Row.size(); ++I)
    Total += Weight(I);
  // Draw 53 random bits, which yield a number from 0 to just below 1.
  double Left = static_cast<double>(Random() >> 11) * 0x1p-53 * Total;
  // Rounding may leave a remainder after the last action. In this case, the
  // last action with a non-zero weight is drawn.
  std::int64_t Drawn = *Best;
  for (std::size_t I = 0; I < Row.size(); ++I) {
    const double W = Weight(I);
    if (W == 0)
      continue;
    Drawn = static_cast<std::int64_t>(I);
    Left -= W;
    if (Left < 0)
      break;
  }
  return Drawn;
}
