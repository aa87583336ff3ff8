//===- Kernel.cpp - Descriptions of loop nests ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses a kernel's JSON with simdjson, and its sets with isl.
///
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "Expression.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <isl/ast.h>
#include <iterator>
#include <simdjson.h>

namespace MLBridge::polyhedral {

namespace dom = simdjson::dom;

const Array &Kernel::array(const std::string &Name) const {
  return *std::ranges::find(Arrays, Name, &Array::Name);
}

namespace {

/// The largest number of elements of an array: 512 MiB of doubles.
constexpr std::int64_t MaxElements = std::int64_t{1} << 26;

/// The largest size of a kernel's file in bytes.
constexpr std::uintmax_t MaxBytes = std::uintmax_t{1} << 24;

/// The largest values of iterators and times for loops of type int, and for
/// loops of type long. Sums and tiles of these values fit the types, too.
constexpr double MaxInt = 1 << 24;
constexpr double MaxLong = std::int64_t{1} << 48;

/// Reads one file.
class KernelReader {
public:
  KernelReader(isl::ctx Context, const Parameters &Given)
      : Context(Context), Given(Given) {}

  Kernel read(const dom::object &Root);

private:
  void readParameters(const dom::object &Root);
  void readArray(const std::string &Name, dom::element About);
  void readStatement(const dom::object &About);
  void checkTimes(const Statement &S);
  Access makeAccess(const Statement &S, const std::vector<std::string> &Written,
                    const std::string &ArrayName, bool IsWrite);

  isl::ctx Context;
  const Parameters &Given;
  Parameters Values;
  Kernel Result;
};

} // namespace

template <typename T>
static T member(const dom::object &Object, std::string_view Name,
                const char *Expected) {
  T Value;
  if (Object[Name].get(Value))
    throw UserError("expected \"" + std::string(Name) + "\", " + Expected);
  return Value;
}

/// Names that mean something else in the C code, or in the program that runs
/// it.
constexpr std::string_view Reserved[] = {
    "auto",     "break",    "case",     "char",     "const",   "continue",
    "default",  "do",       "double",   "else",     "enum",    "extern",
    "float",    "for",      "goto",     "if",       "inline",  "int",
    "long",     "register", "restrict", "return",   "short",   "signed",
    "sizeof",   "static",   "struct",   "switch",   "typedef", "union",
    "unsigned", "void",     "volatile", "while",    "asm",     "typeof",
    "NULL",     "INFINITY", "NAN",      "min",      "max",     "floord",
    "sqrt",     "exp",      "log",      "pow",      "fabs",    "fmin",
    "fmax",     "floor",    "ceil",     "sin",      "cos",     "linux",
    "unix",     "main",     "printf",   "fflush",   "ferror",  "stdout",
    "memcpy",   "memcmp",   "size_t",   "timespec", "fill",    "keep",
    "is_same",  "time_of",  "variants", "times",    "same",    "clock_gettime",
    "COUNT",    "ROUNDS",   "SLOW"};

static bool isName(std::string_view Text) {
  // Reject the names of generated loops, which begin with "c" and a digit.
  const bool IsLoop =
      Text.size() > 1 && Text[0] == 'c' && Text[1] >= '0' && Text[1] <= '9';
  // Macros have parameters such as i_, and programs have arrays such as
  // expected_A.
  const bool IsOurs = Text.ends_with("_") || Text.starts_with("expected_") ||
                      Text.starts_with("mlbridge_");
  return !IsLoop && !IsOurs &&
         std::ranges::find(Reserved, Text) == std::end(Reserved) &&
         !Text.empty() && Text.size() < 64 &&
         Text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos &&
         (Text[0] < '0' || Text[0] > '9') && Text[0] != '_';
}

static std::string expectName(std::string_view Text, const char *What) {
  if (!isName(Text))
    throw UserError(
        "expected a name for " + std::string(What) + ", found '" +
        std::string(Text) +
        "'; use letters, digits and _, but not a word of C, '_' or 'c0' at the "
        "start, or '_' at the end");
  return std::string(Text);
}

void KernelReader::readParameters(const dom::object &Root) {
  dom::object Object;
  if (Root["parameters"].get(Object) == simdjson::SUCCESS)
    for (const dom::key_value_pair Pair : Object) {
      std::int64_t Value = 0;
      if (Pair.value.get(Value))
        throw UserError("parameter '" + std::string(Pair.key) +
                        "': expected an integer");
      Values[expectName(Pair.key, "a parameter")] = Value;
    }
  for (const auto &[Name, Value] : Given) {
    auto Found = Values.find(Name);
    if (Found == Values.end())
      throw UserError("has no parameter '" + Name + "'");
    Found->second = Value;
  }
}

void KernelReader::readArray(const std::string &Name, dom::element About) {
  Array New;
  New.Name = expectName(Name, "an array");
  if (std::ranges::count(Result.Arrays, Name, &Array::Name))
    throw UserError("two arrays have the name '" + Name + "'");
  dom::array Extents;
  dom::object Object;
  if (About.get(Object) == simdjson::SUCCESS) {
    Extents = member<dom::array>(Object, "extents", "a list");
    New.Initial = substitute(
        member<std::string_view>(Object, "initial", "a C expression"), Values);
  } else if (About.get(Extents)) {
    throw UserError("array '" + Name + "': expected a list of extents");
  }
  std::int64_t Elements = 1;
  std::vector<std::string> Subscripts;
  for (const dom::element Item : Extents) {
    std::int64_t Extent = 0;
    std::string_view Parameter;
    if (Item.get(Parameter) == simdjson::SUCCESS) {
      auto Found = Values.find(std::string(Parameter));
      if (Found == Values.end())
        throw UserError("array '" + Name + "': unknown parameter '" +
                        std::string(Parameter) + "'");
      Extent = Found->second;
    } else if (Item.get(Extent)) {
      throw UserError("array '" + Name +
                      "': expected a number or a parameter as extent");
    }
    if (Extent < 1 || Extent > MaxElements / Elements)
      throw UserError("array '" + Name +
                      "': expected extents from 1, and at most 2^26 "
                      "elements in all; found the extent " +
                      std::to_string(Extent));
    Elements *= Extent;
    Subscripts.push_back("i" + std::to_string(Subscripts.size()));
    New.Extents.push_back(Extent);
  }
  if (New.Extents.empty())
    throw UserError("array '" + Name +
                    "': expected an extent; a number is an array of extent 1");
  if (!New.Initial.empty())
    expectExpression(New.Initial, Subscripts);
  Result.Arrays.push_back(std::move(New));
}

/// Returns the instances of \p S in isl's notation, such as "S[i, j]".
static std::string tupleOf(const Statement &S) {
  std::string Iterators;
  for (const std::string &Iterator : S.Iterators)
    Iterators += (Iterators.empty() ? "" : ", ") + Iterator;
  return S.Name + "[" + Iterators + "]";
}

Access KernelReader::makeAccess(const Statement &S,
                                const std::vector<std::string> &Written,
                                const std::string &ArrayName, bool IsWrite) {
  const Array &A = Result.array(ArrayName);
  if (A.Extents.size() != Written.size())
    throw UserError("array '" + ArrayName + "': expected " +
                    std::to_string(A.Extents.size()) + " subscripts, found " +
                    std::to_string(Written.size()));
  std::string Subscripts;
  std::string Bounds;
  for (std::size_t I = 0; I < Written.size(); ++I) {
    const std::string Name = "i" + std::to_string(I);
    Subscripts += (I ? ", " : "") + ("(" + Written[I] + ")");
    Bounds += " and 0 <= " + Name + " < " + std::to_string(A.Extents[I]);
  }
  std::string Element;
  for (std::size_t I = 0; I < Written.size(); ++I)
    Element += (I ? ", i" : "i") + std::to_string(I);
  isl::multi_aff Affine(Context, "{ " + tupleOf(S) + " -> " + ArrayName + "[" +
                                     Subscripts + "] }");
  const isl::set Inside(Context, "{ " + ArrayName + "[" + Element + "] : true" +
                                     Bounds + " }");
  const isl::set Used = S.Domain.apply(Affine.as_map());
  if (!Used.is_subset(Inside))
    throw UserError("statement '" + S.Name + "': a subscript of '" + ArrayName +
                    "' is out of bounds");
  return {ArrayName, Affine, IsWrite};
}

static std::vector<std::string> iteratorsOf(const isl::set &Domain) {
  std::vector<std::string> Names;
  const auto Count = isl_set_dim(Domain.get(), isl_dim_set);
  for (int I = 0; I < Count; ++I) {
    const char *Name = isl_set_get_dim_name(Domain.get(), isl_dim_set, I);
    Names.push_back(expectName(Name ? Name : "", "each iterator"));
  }
  return Names;
}

/// Returns the largest absolute value of a coordinate of a set.
static double largestOf(const isl::set &Points) {
  double Largest = 0;
  const auto Count = isl_set_dim(Points.get(), isl_dim_set);
  for (int I = 0; I < Count; ++I)
    for (isl_val *Value : {isl_set_dim_max_val(Points.copy(), I),
                           isl_set_dim_min_val(Points.copy(), I)}) {
      Largest = std::max(Largest, std::fabs(isl_val_get_d(Value)));
      isl_val_free(Value);
    }
  return Largest;
}

/// Checks the schedule of a statement, and chooses the type of loops.
void KernelReader::checkTimes(const Statement &S) {
  const auto Dimensions = [](const Statement &Each) {
    return isl_multi_aff_dim(Each.Time.get(), isl_dim_out);
  };
  if (isl_multi_aff_has_tuple_id(S.Time.get(), isl_dim_out))
    throw UserError("statement '" + S.Name +
                    "': expected a schedule without a name");
  // isl would put times with different numbers of dimensions in any order.
  if (!Result.Statements.empty() &&
      Dimensions(S) != Dimensions(Result.Statements[0]))
    throw UserError("statement '" + S.Name + "': expected a schedule of " +
                    std::to_string(Dimensions(Result.Statements[0])) +
                    " numbers like the first statement's, found " +
                    std::to_string(Dimensions(S)) + "; add zeros");
  if (S.Domain.is_empty())
    return;
  const double Largest =
      std::max(largestOf(S.Domain), largestOf(S.Domain.apply(S.Time.as_map())));
  if (Largest > MaxLong)
    throw UserError("statement '" + S.Name +
                    "': expected iterators and times up to 2^48");
  if (Largest > MaxInt)
    isl_options_set_ast_iterator_type(Context.get(), "long");
}

void KernelReader::readStatement(const dom::object &About) {
  Statement New;
  const std::string Domain = substitute(
      member<std::string_view>(About, "domain", "as in \"S[i] : 0 <= i < N\""),
      Values);
  New.Domain = isl::set(Context, "{ " + Domain + " }");
  const char *Name = isl_set_get_tuple_name(New.Domain.get());
  New.Name = expectName(Name ? Name : "", "the statement of a domain");
  if (std::ranges::count(Result.Statements, New.Name, &Statement::Name))
    throw UserError("two statements have the name '" + New.Name + "'");
  // The C code has a macro for each statement.
  if (New.Name == Result.Name)
    throw UserError("the kernel and a statement have the name '" + New.Name +
                    "'");
  if (isl_set_is_bounded(New.Domain.get()) != isl_bool_true)
    throw UserError("statement '" + New.Name + "': its domain is unbounded");
  New.Iterators = iteratorsOf(New.Domain);
  New.Body = substitute(
      member<std::string_view>(About, "body", "a C assignment"), Values);
  const auto Order = substitute(
      member<std::string_view>(About, "schedule", "as in \"[0, i]\""), Values);
  New.Time =
      isl::multi_aff(Context, "{ " + tupleOf(New) + " -> " + Order + " }");
  checkTimes(New);
  Result.Order = Result.Order.unite(
      New.Time.as_map().intersect_domain(New.Domain).to_union_map());
  for (const WrittenAccess &W :
       findAccesses(New.Body, Result.Arrays, New.Iterators)) {
    Access A = makeAccess(New, W.Subscripts, W.Array, W.IsWrite);
    const isl::union_map Map =
        A.Subscripts.as_map().intersect_domain(New.Domain).to_union_map();
    isl::union_map &All = W.IsWrite ? Result.Writes : Result.Reads;
    All = All.unite(Map);
    New.Accesses.push_back(std::move(A));
  }
  Result.Domain = Result.Domain.unite(New.Domain.to_union_set());
  Result.Statements.push_back(std::move(New));
}

Kernel KernelReader::read(const dom::object &Root) {
  Result.Name = expectName(member<std::string_view>(Root, "name", "a string"),
                           "a kernel");
  Result.Domain = isl::union_set(Context, "{}");
  Result.Order = Result.Reads = Result.Writes = isl::union_map(Context, "{}");
  readParameters(Root);
  for (const dom::key_value_pair Pair :
       member<dom::object>(Root, "arrays", "an object"))
    readArray(std::string(Pair.key), Pair.value);
  for (const dom::element Item :
       member<dom::array>(Root, "statements", "a list")) {
    dom::object About;
    if (Item.get(About))
      throw UserError("expected each statement to be an object");
    readStatement(About);
  }
  if (Result.Statements.empty())
    throw UserError("expected a statement, found none");
  if (!Result.Order.is_injective() ||
      !Result.Domain.is_subset(Result.Order.domain()))
    throw UserError("the schedule runs two instances at the same time; give "
                    "each instance its own time");
  return std::move(Result);
}

Kernel readKernel(isl::ctx Context, const std::string &Path,
                  const Parameters &Given) {
  // Check this before opening the file, because opening a FIFO may take
  // forever.
  std::error_code Failure;
  if (std::filesystem::exists(Path, Failure) &&
      !std::filesystem::is_regular_file(Path, Failure))
    throw UserError(Path + ": expected a regular file");
  std::ifstream File(Path);
  if (!File)
    throw UserError(Path + ": cannot be read");
  if (std::filesystem::file_size(Path, Failure) > MaxBytes)
    throw UserError(Path + ": expected at most " + std::to_string(MaxBytes) +
                    " bytes");
  const std::string Text{std::istreambuf_iterator<char>(File), {}};
  dom::parser Parser;
  dom::object Root;
  if (simdjson::error_code Code = Parser.parse(Text).get(Root))
    throw UserError(
        Path + ": expected a JSON object: " + simdjson::error_message(Code));
  try {
    return KernelReader(Context, Given).read(Root);
  } catch (const std::exception &E) {
    throw UserError(Path + ": " + E.what());
  }
}

} // namespace MLBridge::polyhedral
