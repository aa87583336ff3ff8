//===- ReplayModelRunner.cpp - The decisions of a log ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/ReplayModelRunner.h"

#include "Core/WithNumber.h"
#include "Runners/TrainingLogReader.h"
#include "Support/PrintableText.h"

#include <charconv>
#include <cstring>
#include <iterator>

using namespace MLBridge;

/// Returns element \p I of \p Tensor for messages. For strings, returns the
/// whole text.
static std::string elementText(const TensorView &Tensor, std::size_t I) {
  if (Tensor.Type == ElementType::String)
    return "'" + printable(Tensor.text()) + "'";
  const auto *Bytes = static_cast<const std::byte *>(Tensor.Data);
  if (Tensor.Type == ElementType::Bool)
    return Bytes[I] == std::byte{0} ? "false" : "true";
  char Text[32]; // Any number has fewer than 32 characters.
  char *End = Text;
  (void)detail::withNumber(Tensor.Type, [&](auto Value) {
    std::memcpy(&Value, Bytes + I * sizeof(Value), sizeof(Value));
    End = std::to_chars(Text, std::end(Text), Value).ptr;
    return Error::success();
  });
  return {Text, End};
}

/// Returns an error if the bytes of \p Found differ from \p Logged, which has
/// the same type and shape.
static Error checkValue(const TensorView &Logged, const TensorView &Found) {
  if (Found.NumBytes == 0 ||
      std::memcmp(Logged.Data, Found.Data, Found.NumBytes) == 0)
    return Error::success();
  const Span<const std::byte> A = Logged.bytes();
  std::size_t First = 0;
  while (A[First] == Found.bytes()[First])
    ++First;
  const bool IsText = Found.Type == ElementType::String;
  const std::size_t I = IsText ? 0 : First / elementSize(Found.Type);
  std::string Where = Found.numElements() == 1 || IsText
                          ? ""
                          : "element " + std::to_string(I) + ": ";
  return {ErrorCode::Model,
          "feature '" + printable(Found.Name) + "': " + Where + "expected " +
              elementText(Logged, I) + ", found " + elementText(Found, I)};
}

/// The log, the number of requests and the first error.
class ReplayModelRunner::Log {
public:
  Log(std::unique_ptr<TrainingLogReader> File, std::optional<std::size_t> Until)
      : File(std::move(File)), Until(Until),
        Name("replay:" + printable(this->File->path())) {}

  /// Returns the next decision if \p Features equal the features in the log.
  Expected<Advice> replyTo(Span<const TensorView> Features);

  const std::string &name() const { return Name; }
  const TrainingLogReader &file() const { return *File; }

private:
  Error check(Span<const TensorView> Features) const;
  /// Stores and returns an error of the current request.
  Error part(const Error &Why, const std::string &Where);
  Error deferred() const {
    return Error::deferred(Name + ": the compiler decides after request " +
                           std::to_string(NumRequests));
  }

  const std::unique_ptr<TrainingLogReader> File;
  std::optional<std::size_t> Until;
  const std::string Name;
  std::size_t NumRequests = 0;
  Error Failure;
};

Error ReplayModelRunner::Log::part(const Error &Why, const std::string &Where) {
  Failure = {Why.code(), Name + ": request " + std::to_string(NumRequests) +
                             Where + ": " + Why.message()};
  return Failure;
}

Error ReplayModelRunner::Log::check(Span<const TensorView> Features) const {
  if (Error E = checkFeatures(File->featureTypes(), Features))
    return E;
  for (std::size_t I = 0; I < Features.size(); ++I)
    if (Error E = checkValue(File->features()[I], Features[I]))
      return {E.code(), E.message() +
                            "; replay with the input and the options of the "
                            "recorded compilation"};
  return Error::success();
}

Expected<Advice>
ReplayModelRunner::Log::replyTo(Span<const TensorView> Features) {
  if (Failure)
    return Failure;
  if (NumRequests == Until)
    return deferred();
  ++NumRequests;
  Expected<bool> HasNext = File->next();
  if (!HasNext)
    return part(HasNext.takeError(), "");
  if (!*HasNext && Until == EndOfLog) {
    Until = --NumRequests;
    return deferred();
  }
  if (!*HasNext)
    return part({ErrorCode::Model, "expected the " +
                                       std::to_string(NumRequests - 1) +
                                       " requests of the log, found one more"},
                "");
  if (Error E = check(Features))
    return part(E, " (" + File->describe() + ")");
  return Advice({&File->decision(), 1});
}

//===----------------------------------------------------------------------===//
// The runner
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<ReplayModelRunner>>
ReplayModelRunner::create(std::string Path, std::optional<std::size_t> Until) {
  Expected<std::unique_ptr<TrainingLogReader>> File =
      TrainingLogReader::open(std::move(Path));
  if (!File)
    return File.takeError();
  return std::unique_ptr<ReplayModelRunner>(
      new ReplayModelRunner(std::make_unique<Log>(std::move(*File), Until)));
}

ReplayModelRunner::ReplayModelRunner(std::unique_ptr<Log> In)
    : In(std::move(In)) {}

ReplayModelRunner::~ReplayModelRunner() = default;

std::string ReplayModelRunner::describe() const { return In->name(); }

Expected<std::optional<std::string>>
ReplayModelRunner::metadata(std::string_view Key) {
  const std::string *Value = In->file().metadata(Key);
  return Value ? std::optional(*Value) : std::nullopt;
}

Expected<Advice> ReplayModelRunner::evaluateUntyped(const FeatureSet &Features,
                                                    const AdviceSpec &,
                                                    Deadline) {
  return In->replyTo(Features.tensors());
}
