//===- ModelSpec.cpp - One string that names a model ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses model specs. Their grammar is:
/// \code
///   spec    = scheme [ ":" path ] [ "?" options ] [ "|" spec ]
///   scheme  = 1*( letter / digit / "_" / "+" / "-" )
///   options = option *( "&" option )
///   option  = key "=" value
/// \endcode
/// Any byte of a path, key or value may be written as %XX.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/ModelSpec.h"

#include "Core/InvalidSpec.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

using namespace MLBridge;

//===----------------------------------------------------------------------===//
// Parsing a spec
//===----------------------------------------------------------------------===//

namespace {

/// Parses one spec. Errors name the position of the mistake.
class SpecParser {
public:
  explicit SpecParser(std::string_view Text) : Text(Text) {}
  Expected<ModelSpec> parse();

private:
  Error parseScheme();
  Error parseOptions();
  Error parseOption(std::string_view Option);
  /// Consumes and returns the text up to the first character in \p Stops, or up
  /// to the end.
  std::string_view takeUntil(std::string_view Stops);
  /// Consumes the next character if it is \p C, and returns whether it was
  /// \p C.
  bool take(char C);
  /// Percent-decodes \p Part, which must be a part of Text.
  Error decode(std::string_view Part, std::string &Out) const;
  Error expected(std::string_view What, std::size_t At) const;
  std::size_t positionOf(std::string_view Part) const {
    return static_cast<std::size_t>(Part.data() - Text.data());
  }

  std::string_view Text;
  std::size_t Position = 0;
  ModelSpec Spec;
};

} // namespace

Error SpecParser::expected(std::string_view What, std::size_t At) const {
  std::string Message = "model spec '" + printable(Text) + "': expected " +
                        std::string(What) + " at position " +
                        std::to_string(At) + ", found ";
  if (At < Text.size())
    Message += "'" + printable(Text.substr(At, 1)) + "'";
  else
    Message += "the end";
  return {ErrorCode::InvalidArgument, std::move(Message)};
}

std::string_view SpecParser::takeUntil(std::string_view Stops) {
  std::size_t Start = Position;
  Position = std::min(Text.find_first_of(Stops, Start), Text.size());
  return Text.substr(Start, Position - Start);
}

bool SpecParser::take(char C) {
  if (Position == Text.size() || Text[Position] != C)
    return false;
  ++Position;
  return true;
}

/// Returns the value of a hexadecimal digit, or -1 for another character.
static int hexValue(char C) {
  if (C >= '0' && C <= '9')
    return C - '0';
  if (C >= 'a' && C <= 'f')
    return C - 'a' + 10;
  if (C >= 'A' && C <= 'F')
    return C - 'A' + 10;
  return -1;
}

Error SpecParser::decode(std::string_view Part, std::string &Out) const {
  Out.reserve(Part.size());
  for (std::size_t I = 0; I < Part.size(); ++I) {
    if (Part[I] != '%') {
      Out += Part[I];
      continue;
    }
    int Byte = 0;
    for (std::size_t Digit = I + 1; Digit <= I + 2; ++Digit) {
      int Value = Digit < Part.size() ? hexValue(Part[Digit]) : -1;
      if (Value < 0)
        return expected("two hexadecimal digits after '%'",
                        positionOf(Part) + Digit);
      Byte = Byte * 16 + Value;
    }
    // Refuse NUL, because it would truncate a path in system calls.
    if (Byte == 0)
      return expected("a character other than %00", positionOf(Part) + I);
    Out += static_cast<char>(Byte);
    I += 2;
  }
  return Error::success();
}

static bool isSchemeCharacter(char C) {
  return (C >= 'A' && C <= 'Z') || (C >= 'a' && C <= 'z') ||
         (C >= '0' && C <= '9') || C == '_' || C == '+' || C == '-';
}

/// Returns the scheme of model files with the suffix of \p Path, or an empty
/// string.
static std::string_view schemeOfFile(std::string_view Path) {
  if (Path.ends_with(".onnx"))
    return "onnx";
  return Path.ends_with(".so") ? "aot" : "";
}

Error SpecParser::parseScheme() {
  std::string_view Scheme = takeUntil(":?|");
  if (const auto *Wrong = std::ranges::find_if_not(Scheme, isSchemeCharacter);
      Wrong != Scheme.end()) {
    Error E = expected("a scheme such as 'pipe:', of letters, digits, _, + "
                       "and -,",
                       positionOf({Wrong, 1}));
    const std::string Kind(schemeOfFile(Scheme));
    if (Kind.empty())
      return E;
    return {E.code(), E.message() + "; did you mean '" + Kind + ":" +
                          printable(Scheme) + "'?"};
  }
  if (Scheme.empty())
    return expected("a scheme such as 'pipe:'", Position);
  // Limit the length, because the scheme becomes part of a module's file name.
  constexpr std::size_t MaxScheme = 64;
  if (Scheme.size() > MaxScheme)
    return expected("a scheme of at most " + std::to_string(MaxScheme) +
                        " characters",
                    positionOf(Scheme) + MaxScheme);
  Spec.Scheme = Scheme;
  return Error::success();
}

Error SpecParser::parseOption(std::string_view Option) {
  std::size_t Equals = Option.find('=');
  if (Equals == 0 || Equals == std::string_view::npos)
    return expected("an option key=value", positionOf(Option));
  std::string Key, Value;
  if (Error E = decode(Option.substr(0, Equals), Key))
    return E;
  if (Error E = decode(Option.substr(Equals + 1), Value))
    return E;
  for (const auto &Earlier : Spec.Options)
    if (Earlier.first == Key)
      return expected("each option once", positionOf(Option));
  Spec.Options.emplace_back(std::move(Key), std::move(Value));
  return Error::success();
}

Error SpecParser::parseOptions() {
  if (!take('?'))
    return Error::success();
  do
    if (Error E = parseOption(takeUntil("&|")))
      return E;
  while (take('&'));
  return Error::success();
}

Expected<ModelSpec> SpecParser::parse() {
  if (std::size_t At = Text.find('\0'); At != Text.npos)
    return expected("a character other than NUL", At);
  if (Error E = parseScheme())
    return E;
  if (take(':'))
    if (Error E = decode(takeUntil("?|"), Spec.Path))
      return E;
  if (Error E = parseOptions())
    return E;
  if (take('|')) {
    Spec.Inner = Text.substr(Position);
    if (Spec.Inner.empty())
      return expected("the spec of a model after '|'", Position);
  }
  return std::move(Spec);
}

Expected<ModelSpec> ModelSpec::parse(std::string_view Text) {
  return SpecParser(Text).parse();
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

Error ModelSpec::checkOptions(Span<const std::string_view> Known) const {
  for (const auto &Option : Options) {
    const std::string &Key = Option.first;
    if (Key == "timeout" || std::ranges::find(Known, Key) != Known.end())
      continue;
    std::string Why = "unknown option '" + printable(Key) + "'; known: ";
    for (std::string_view Name : Known)
      Why.append(Name) += ", ";
    return invalidSpec(*this, Why + "timeout");
  }
  return Error::success();
}

std::string_view ModelSpec::option(std::string_view Key,
                                   std::string_view Default) const {
  for (const auto &[Name, Value] : Options)
    if (Name == Key)
      return Value;
  return Default;
}

namespace {
struct Unit {
  std::string_view Suffix;
  std::int64_t Factor;
};
} // namespace

/// Parses a decimal number that is followed by the suffix of one of \p Units,
/// and returns the number times the unit's factor. Returns nullopt if \p Text
/// has another form or the product exceeds 2^63 - 1.
static std::optional<std::int64_t> parseQuantity(std::string_view Text,
                                                 Span<const Unit> Units) {
  std::uint64_t Number = 0;
  auto [End, Status] =
      std::from_chars(Text.data(), Text.data() + Text.size(), Number);
  if (Status != std::errc())
    return std::nullopt;
  Text.remove_prefix(static_cast<std::size_t>(End - Text.data()));
  std::int64_t Product = 0;
  for (const Unit &U : Units)
    if (U.Suffix == Text)
      return __builtin_mul_overflow(Number, U.Factor, &Product)
                 ? std::nullopt
                 : std::optional(Product);
  return std::nullopt;
}

Expected<Duration> ModelSpec::duration(std::string_view Key,
                                       Duration Default) const {
  static constexpr Unit Units[] = {{"ns", 1},
                                   {"us", 1'000},
                                   {"ms", 1'000'000},
                                   {"s", 1'000'000'000},
                                   {"m", 60'000'000'000}};
  std::string_view Text = option(Key, {});
  if (!Text.data())
    return Default;
  if (Text == "inf")
    return Duration::max();
  if (std::optional<std::int64_t> Nanoseconds = parseQuantity(Text, Units))
    return Duration(*Nanoseconds);
  return invalidSpec(*this,
                     "option '" + std::string(Key) +
                         "': expected a duration such as 5s, 200ms, 50us, "
                         "10ns, 2m or inf, found '" +
                         printable(Text) + "'");
}

Expected<std::size_t> ModelSpec::bytes(std::string_view Key,
                                       std::size_t Default) const {
  static constexpr Unit Units[] = {
      {"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  std::string_view Text = option(Key, {});
  if (!Text.data())
    return Default;
  if (std::optional<std::int64_t> Bytes = parseQuantity(Text, Units))
    return static_cast<std::size_t>(*Bytes);
  return invalidSpec(*this, "option '" + std::string(Key) +
                                "': expected a number of bytes such as 65536, "
                                "64KiB, 16MiB or 1GiB, found '" +
                                printable(Text) + "'");
}

Expected<std::size_t> ModelSpec::number(std::string_view Key,
                                        std::size_t Default) const {
  static constexpr Unit Units[] = {{"", 1}};
  std::string_view Text = option(Key, {});
  if (!Text.data())
    return Default;
  if (std::optional<std::int64_t> Number = parseQuantity(Text, Units);
      Number && *Number > 0)
    return static_cast<std::size_t>(*Number);
  return invalidSpec(*this, "option '" + std::string(Key) +
                                "': expected a number of 1 or more, found '" +
                                printable(Text) + "'");
}
