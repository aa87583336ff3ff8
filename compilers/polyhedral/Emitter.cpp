//===- Emitter.cpp - C code of kernels ------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// isl prints the loops. Statements become macros, because isl prints them as
/// calls.
///
//===----------------------------------------------------------------------===//

#include "Emitter.h"

namespace MLBridge::polyhedral {

/// Returns "A[512][512]", with \p Qualifiers before the first extent.
static std::string declaratorOf(const Array &A, const char *Qualifiers = "") {
  std::string Text = A.Name;
  for (std::size_t I = 0; I < A.Extents.size(); ++I)
    Text += "[" + std::string(I ? "" : Qualifiers) +
            std::to_string(A.Extents[I]) + "]";
  return Text;
}

std::string functionOf(const Kernel &K, const isl::ast_node &Loops,
                       const std::string &Name) {
  std::string Text = "void " + Name + "(";
  for (const Array &A : K.Arrays)
    Text += (&A == K.Arrays.data() ? "double " : ", double ") +
            declaratorOf(A, "restrict static ");
  return Text + ") {\n" + Loops.to_C_str() + "}\n";
}

std::string preamble(const Kernel &K) {
  std::string Text = "#include <math.h>\n"
                     "#define min(x, y) ((x) < (y) ? (x) : (y))\n"
                     "#define max(x, y) ((x) > (y) ? (x) : (y))\n"
                     "#define floord(n, d) \\\n"
                     "  ((n) < 0 ? -((-(n) + (d)-1) / (d)) : (n) / (d))\n";
  for (const Statement &S : K.Statements) {
    std::string Arguments;
    std::string Definitions;
    for (const std::string &I : S.Iterators) {
      Arguments += (Arguments.empty() ? "" : ", ") + I + "_";
      for (const char *Part : {"const long ", " = ", "_; (void)"})
        Definitions.append(Part).append(I);
      Definitions += "; ";
    }
    Text.append("#define ").append(S.Name).append("(").append(Arguments);
    Text.append(") do { ").append(Definitions).append(S.Body);
    Text += "; } while (0)\n";
  }
  return Text;
}

std::string variantName(std::size_t Number) {
  return "mlbridge_variant_" + std::to_string(Number);
}

/// Returns an expression that sets the elements of an array to different
/// values between 0.5 and 1.5.
static std::string initialOf(const Array &A) {
  if (!A.Initial.empty())
    return A.Initial;
  std::string Sum = std::to_string(A.Name[0]);
  constexpr int Factors[] = {7, 13, 29, 31};
  for (std::size_t I = 0; I < A.Extents.size(); ++I)
    Sum += " + i" + std::to_string(I) + " * " + std::to_string(Factors[I % 4]);
  return "0.5 + (" + Sum + ") % 101 / 101.0";
}

/// Returns the definitions of the arrays, and of the functions that fill, copy
/// and compare them.
static std::string dataOf(const Kernel &K) {
  std::string Fill = "static void fill(void) {\n";
  std::string Keep = "static void keep(void) {\n";
  std::string Compare = "static int is_same(void) {\n  return 1";
  std::string Text;
  for (const Array &A : K.Arrays) {
    Array Copy = A;
    Copy.Name = "expected_" + A.Name;
    Text += "static _Alignas(64) double " + declaratorOf(A) + ", " +
            declaratorOf(Copy) + ";\n";
    std::string Element = A.Name;
    for (std::size_t I = 0; I < A.Extents.size(); ++I) {
      const std::string Name = "i" + std::to_string(I);
      Fill.append("for (long ").append(Name).append(" = 0; ").append(Name);
      Fill.append(" < ").append(std::to_string(A.Extents[I])).append("; ++");
      Fill.append(Name).append(") ");
      Element += "[" + Name + "]";
    }
    Fill += Element + " = " + initialOf(A) + ";\n";
    const std::string Both =
        "(&" + Copy.Name + ", &" + A.Name + ", sizeof " + A.Name + ")";
    Keep += "  memcpy" + Both + ";\n";
    Compare += " &&\n         !memcmp" + Both;
  }
  return Text + Fill + "}\n" + Keep + "}\n" + Compare + ";\n}\n";
}

/// The main program. The first round warms up, and finds the functions that are
/// too slow to be measured again.
static constexpr const char *Main = R"(
static double time_of(size_t v) {
  struct timespec begin, end;
  fill();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  variants[v]();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}

int main(void) {
  static double times[COUNT][ROUNDS + 1];
  static int same[COUNT];
  for (size_t v = 0; v < COUNT; ++v) {
    times[v][0] = time_of(v);
    if (v == 0)
      keep();
    same[v] = is_same();
  }
  for (int r = 1; r <= ROUNDS; ++r)
    for (size_t v = 0; v < COUNT; ++v)
      if (times[v][0] <= SLOW * times[0][0])
        times[v][r] = time_of(v);
  for (size_t v = 0; v < COUNT; ++v) {
    printf("%s", same[v] ? "same" : "differs");
    if (times[v][0] > SLOW * times[0][0])
      printf(" %.0f", times[v][0]);
    else
      for (int r = 1; r <= ROUNDS; ++r)
        printf(" %.0f", times[v][r]);
    printf("\n");
  }
  return fflush(stdout) != 0 || ferror(stdout);
}
)";

std::string programOf(const Kernel &K,
                      const std::vector<std::string> &Functions, int Rounds,
                      double Slow) {
  std::string Arguments;
  for (const Array &A : K.Arrays)
    Arguments += (Arguments.empty() ? "" : ", ") + A.Name;
  std::string Text = "#define _POSIX_C_SOURCE 199309L\n"
                     "#include <stdio.h>\n#include <string.h>\n"
                     "#include <time.h>\n" +
                     preamble(K) + dataOf(K);
  std::string Table = "static void (*const variants[])(void) = {\n";
  for (std::size_t I = 0; I < Functions.size(); ++I) {
    const std::string Name = variantName(I);
    Text.append("static __attribute__((noinline)) ").append(Functions[I]);
    Text.append("static void run_").append(Name).append("(void) { ");
    Text.append(Name).append("(").append(Arguments).append("); }\n");
    Table += "  run_" + Name + ",\n";
  }
  return Text + Table +
         "};\nenum { COUNT = " + std::to_string(Functions.size()) +
         ", ROUNDS = " + std::to_string(Rounds) + " };\n#define SLOW " +
         std::to_string(Slow) + Main;
}

} // namespace MLBridge::polyhedral
