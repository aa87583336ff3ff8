//===- Expression.cpp - Statements of kernels -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A tokenizer for C expressions, and a scan for accesses.
///
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace MLBridge::polyhedral {

namespace {

enum class TokenKind { Name, Number, Operator };

struct Token {
  TokenKind Kind;
  std::string_view Text;
};

constexpr std::size_t MaxLength = 4096;

/// The operators of expressions without side effects. Longer ones are first.
constexpr std::array<std::string_view, 22> Operators = {
    "+=", "-=", "*=", "/=", "<=", ">=", "==", "!=", "&&", "||", "+",
    "-",  "*",  "/",  "%",  "(",  ")",  "[",  "]",  "<",  ">",  "?"};
constexpr std::array<std::string_view, 6> MoreOperators = {":", ",", "=",
                                                           "!", "{", "}"};
constexpr std::array<std::string_view, 5> Assignments = {
    "=", "+=", "-=", "*=", "/="};
constexpr std::array<std::string_view, 3> Signs = {"+", "-", "!"};
constexpr std::array<std::string_view, 13> BinaryOperators = {
    "+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&&", "||"};

struct Function {
  std::string_view Name;
  int NumArguments;
};

constexpr std::array<Function, 11> Functions = {{{"sqrt", 1},
                                                 {"exp", 1},
                                                 {"log", 1},
                                                 {"pow", 2},
                                                 {"fabs", 1},
                                                 {"fmin", 2},
                                                 {"fmax", 2},
                                                 {"floor", 1},
                                                 {"ceil", 1},
                                                 {"sin", 1},
                                                 {"cos", 1}}};

} // namespace

template <typename Range>
static bool isAmong(const Range &Names, std::string_view Name) {
  return std::ranges::find(Names, Name) != std::ranges::end(Names);
}

static bool isWord(char C) {
  return std::isalnum(static_cast<unsigned char>(C)) || C == '_';
}

static Token nextToken(std::string_view Text) {
  std::size_t End = 0;
  if (std::isdigit(static_cast<unsigned char>(Text[0])) || Text[0] == '.') {
    // The sign of an exponent, as in 1e-3, belongs to the number.
    while (End < Text.size() && (isWord(Text[End]) || Text[End] == '.' ||
                                 ((Text[End] == '-' || Text[End] == '+') &&
                                  std::tolower(Text[End - 1]) == 'e')))
      ++End;
    return {TokenKind::Number, Text.substr(0, End)};
  }
  while (End < Text.size() && isWord(Text[End]))
    ++End;
  if (End)
    return {TokenKind::Name, Text.substr(0, End)};
  for (std::string_view Operator : Operators)
    if (Text.starts_with(Operator))
      return {TokenKind::Operator, Text.substr(0, Operator.size())};
  if (isAmong(MoreOperators, Text.substr(0, 1)))
    return {TokenKind::Operator, Text.substr(0, 1)};
  throw UserError("unexpected character '" + std::string(1, Text[0]) +
                  "' before \"" + std::string(Text) + "\"");
}

static std::vector<Token> tokensOf(std::string_view Text) {
  std::vector<Token> Found;
  while (true) {
    while (!Text.empty() && std::isspace(static_cast<unsigned char>(Text[0])))
      Text.remove_prefix(1);
    if (Text.empty())
      return Found;
    Found.push_back(nextToken(Text));
    Text.remove_prefix(Found.back().Text.size());
  }
}

std::string substitute(std::string_view Text, const Parameters &Values) {
  // Limit the length, because isl parses recursively.
  if (Text.size() > MaxLength)
    throw UserError("\"" + std::string(Text.substr(0, 40)) +
                    "...\" is too long; expected at most " +
                    std::to_string(MaxLength) + " characters");
  std::string Result;
  for (const Token &T : tokensOf(Text)) {
    if (!Result.empty())
      Result += ' ';
    auto Found = T.Kind == TokenKind::Name ? Values.find(std::string(T.Text))
                                           : Values.end();
    Result += Found == Values.end() ? std::string(T.Text)
                                    : std::to_string(Found->second);
  }
  return Result;
}

namespace {

/// Walks through the tokens of one body.
class BodyScanner {
public:
  BodyScanner(const std::string &Body, const std::vector<Array> &Arrays,
              const std::vector<std::string> &Names)
      : Body(Body), Arrays(Arrays), Names(Names), Tokens(tokensOf(Body)) {}

  std::vector<WrittenAccess> scanAssignment() {
    WrittenAccess Target = scanAccess();
    Target.IsWrite = true;
    const std::string_view Operator = peek();
    if (!isAmong(Assignments, Operator))
      fail("expected an assignment to an element of an array");
    ++At;
    if (Operator != "=")
      Found.push_back({Target.Array, Target.Subscripts});
    scanAll();
    Found.push_back(std::move(Target));
    return std::move(Found);
  }

  /// Scans the remaining tokens, which must be one expression.
  void scanAll() {
    scanExpression();
    if (At < Tokens.size())
      fail("unexpected '" + std::string(peek()) + "'");
  }

private:
  [[noreturn]] void fail(const std::string &Why) const {
    throw UserError("\"" + Body + "\": " + Why);
  }

  std::string_view peek() const {
    return At < Tokens.size() ? Tokens[At].Text : std::string_view();
  }

  bool isArray(std::string_view Name) const {
    return std::ranges::any_of(Arrays,
                               [&](const Array &A) { return A.Name == Name; });
  }

  void expect(std::string_view Text) {
    if (peek() != Text)
      fail("expected '" + std::string(Text) + "'" +
           (peek().empty() ? "" : ", found '" + std::string(peek()) + "'"));
    ++At;
  }

  /// Scans operands with operators between them. Precedence does not matter.
  void scanExpression() {
    scanOperand();
    while (isAmong(BinaryOperators, peek())) {
      ++At;
      scanOperand();
    }
    if (peek() == "?") {
      ++At;
      scanExpression();
      expect(":");
      scanExpression();
    }
  }

  void scanOperand() {
    while (isAmong(Signs, peek()))
      ++At;
    if (At == Tokens.size())
      fail("expected an operand at the end");
    const Token &T = Tokens[At];
    if (T.Kind == TokenKind::Name) {
      scanName();
      return;
    }
    ++At;
    if (T.Kind == TokenKind::Number) {
      checkNumber(std::string(T.Text));
      return;
    }
    if (T.Text != "(")
      fail("expected an operand, found '" + std::string(T.Text) + "'");
    scanExpression();
    expect(")");
  }

  void checkNumber(const std::string &Text) const {
    char *End = nullptr;
    std::strtod(Text.c_str(), &End);
    if (std::string_view(End).find_first_not_of("fFlLuU") !=
        std::string_view::npos)
      fail("expected a number, found '" + Text + "'");
  }

  void scanName() {
    const std::string_view Name = peek();
    if (isArray(Name)) {
      Found.push_back(scanAccess());
      return;
    }
    ++At;
    const auto *const Called =
        std::ranges::find(Functions, Name, &Function::Name);
    if (Called != Functions.end() && peek() == "(") {
      for (int I = 0; I < Called->NumArguments; ++I) {
        expect(I == 0 ? "(" : ",");
        scanExpression();
      }
      expect(")");
    } else if (!isAmong(Names, Name)) {
      fail("unknown name '" + std::string(Name) +
           "'; expected an array, an iterator, a parameter or a function of "
           "math.h");
    }
  }

  /// Accepts only names, numbers, +, - and *. isl checks that the subscript is
  /// affine. Other operators round, and C and isl may round differently.
  std::string scanSubscript() {
    std::string Text;
    int Depth = 0;
    while (true) {
      const std::string_view Next = peek();
      if (Next.empty())
        fail("expected ']'");
      if (Depth == 0 && Next == "]")
        break;
      const Token &T = Tokens[At++];
      Depth += Next == "(" ? 1 : Next == ")" ? -1 : 0;
      const bool IsFine = T.Kind == TokenKind::Name
                              ? isAmong(Names, Next)
                              : Next.find_first_not_of("0123456789") ==
                                        std::string_view::npos ||
                                    Next == "+" || Next == "-" || Next == "*" ||
                                    Next == "(" || Next == ")";
      if (!IsFine || Depth < 0)
        fail("unexpected '" + std::string(Next) + "' in a subscript");
      // C would read this number as octal, but isl would read it as decimal.
      if (T.Kind == TokenKind::Number && Next.size() > 1 && Next[0] == '0')
        fail("unexpected 0 at the start of '" + std::string(Next) + "'");
      Text += std::string(Next) + " ";
    }
    ++At;
    return Text;
  }

  WrittenAccess scanAccess() {
    WrittenAccess Access;
    Access.Array = peek();
    if (!isArray(peek()))
      fail("expected the name of an array, found '" + Access.Array + "'");
    ++At;
    while (peek() == "[") {
      ++At;
      Access.Subscripts.push_back(scanSubscript());
    }
    return Access;
  }

  const std::string &Body;
  const std::vector<Array> &Arrays;
  const std::vector<std::string> &Names;
  std::vector<Token> Tokens;
  std::size_t At = 0;
  std::vector<WrittenAccess> Found;
};

} // namespace

std::vector<WrittenAccess>
findAccesses(const std::string &Body, const std::vector<Array> &Arrays,
             const std::vector<std::string> &Iterators) {
  return BodyScanner(Body, Arrays, Iterators).scanAssignment();
}

void expectExpression(const std::string &Text,
                      const std::vector<std::string> &Names) {
  BodyScanner(Text, {}, Names).scanAll();
}

} // namespace MLBridge::polyhedral
