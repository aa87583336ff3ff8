//===- Rewrite.c - Selectivities from a model -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Asks the model, and writes the statement with the selectivities.
///
//===----------------------------------------------------------------------===//

#include "Rewrite.h"
#include "Statement.h"

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/// A pattern is described by MaxTrigrams hashes. Hashes of trigrams are below
/// Buckets. Hashes of pieces of one or two characters are at least Buckets.
enum { MaxTrigrams = 8, Buckets = 512, ShortBuckets = 256, MaxPattern = 256 };

/// The maximum time for a model to start, in nanoseconds. The plug-ins of
/// compilers use the same time.
static const int64_t ConnectTimeout = 5000000000;

struct Advisor {
  MLBridgeModelRunnerRef Runner;
  bool HasFailed;
};

/// After a failure, SQLite decides alone.
static void fail(Advisor *By) {
  if (!By->HasFailed)
    fprintf(stderr, "mlbridge_sqlite: note: %s; SQLite plans alone\n",
            mlbridgeGetLastErrorMessage());
  By->HasFailed = true;
}

Advisor *createAdvisor(const char *Spec) {
  Advisor *const By = sqlite3_malloc(sizeof *By);
  if (!By)
    return NULL;
  *By = (Advisor){NULL, false};
  MLBridgeRunnerFactoryRef From = NULL;
  // Stop at the first status that is not MLBridgeStatusSuccess, which is 0.
  if (mlbridgeCreateRunnerFactory(&From) ||
      mlbridgeSetConnectTimeout(From, ConnectTimeout) ||
      mlbridgeCreateModelRunnerWithFactory(From, Spec, &By->Runner))
    fail(By);
  mlbridgeDisposeRunnerFactory(From);
  return By;
}

void disposeAdvisor(void *By) {
  if (By)
    mlbridgeDisposeModelRunner(((Advisor *)By)->Runner);
  sqlite3_free(By);
}

/// Returns the length of the wildcard at the start of Text, or 0 if there is
/// none.
static int wildcardAt(const char *Text, bool IsGlob) {
  if (!*Text || !strchr(IsGlob ? "*?[" : "%_", *Text))
    return 0;
  if (*Text != '[')
    return 1;
  // In a set such as [^]a], the first character may be a bracket.
  const char *const First = Text + 1 + (Text[1] == '^');
  const char *const Close = *First ? strchr(First + 1, ']') : NULL;
  return (int)(Close ? Close + 1 - Text : (long)strlen(Text));
}

/// Hashes a pattern's trigrams without wildcards, and its pieces of one or two
/// characters between wildcards. The beginning and the end of a pattern count
/// as characters. Unused elements of To are -1.
static void hashTrigrams(const Token *T, TermOperator How, int32_t *To) {
  const bool IsGlob = How == OperatorGlob || How == OperatorNotGlob;
  const char Begin = 2, End = 3;
  char Text[MaxPattern + 3] = {Begin};
  const int Length = copyText(T, Text + 1, MaxPattern) + 1;
  // A longer pattern was cut off, so its end is unknown.
  if (Length <= MaxPattern)
    Text[Length] = End;
  int32_t Found[MaxPattern + 2];
  int Count = 0;
  for (const char *P = Text; *P;) {
    const int Skip = wildcardAt(P, IsGlob);
    int Run = 0;
    while (P[Run] && !wildcardAt(&P[Run], IsGlob))
      ++Run;
    for (int I = 0; I + 3 <= Run; ++I)
      Found[Count++] = (int32_t)(hashText(HashStart, &P[I], 3) % Buckets);
    const bool IsEnd = Run == 1 && (*P == Begin || *P == End);
    if (Run < 3 && Run > 0 && !IsEnd)
      Found[Count++] =
          Buckets + (int32_t)(hashText(HashStart, P, Run) % ShortBuckets);
    P += Run ? Run : Skip;
  }
  for (int I = 0; I != MaxTrigrams; ++I)
    To[I] = I >= Count            ? -1
            : Count < MaxTrigrams ? Found[I]
                                  : Found[I * Count / MaxTrigrams];
}

/// The features of all terms. Each array has one row for each term.
typedef struct Rows {
  int32_t *Tables, *Columns, *Expressions, *Operators, *Operands;
  int32_t *Literals, *Trigrams;
  double *Values;
} Rows;

static void *part(char **Memory, size_t Bytes) {
  char *const Begin = *Memory;
  *Memory += Bytes;
  return Begin;
}

/// Computes the features in one block of memory, which begins at Values. Free
/// Values with sqlite3_free(). Returns false if memory runs out.
static bool rowsOf(const Statement *S, Rows *Result) {
  const size_t N = (size_t)S->NumTerms;
  const size_t Size = N * (4 * sizeof(double) +
                           (6 + MaxLiterals + MaxTrigrams) * sizeof(int32_t));
  char *Memory = sqlite3_malloc64(Size);
  if (!Memory)
    return false;
  memset(Memory, 0, Size);
  Result->Values = part(&Memory, 4 * N * sizeof(double));
  Result->Literals = part(&Memory, MaxLiterals * N * sizeof(int32_t));
  Result->Trigrams = part(&Memory, MaxTrigrams * N * sizeof(int32_t));
  Result->Columns = part(&Memory, 2 * N * sizeof(int32_t));
  Result->Tables = part(&Memory, N * sizeof(int32_t));
  Result->Expressions = part(&Memory, N * sizeof(int32_t));
  Result->Operators = part(&Memory, N * sizeof(int32_t));
  Result->Operands = part(&Memory, N * sizeof(int32_t));
  for (size_t I = 0; I != N; ++I) {
    const Term *const T = &S->Terms[I];
    memcpy(&Result->Columns[2 * I], T->Columns, sizeof T->Columns);
    memcpy(&Result->Values[4 * I], T->Values, sizeof T->Values);
    memcpy(&Result->Literals[MaxLiterals * I], T->Literals, sizeof T->Literals);
    Result->Tables[I] = T->Table;
    Result->Expressions[I] = (int32_t)T->Expression;
    Result->Operators[I] = (int32_t)T->Operator;
    Result->Operands[I] = (int32_t)T->Operand;
    int32_t *const Trigrams = &Result->Trigrams[MaxTrigrams * I];
    if (T->Text >= 0 && T->Operator >= OperatorLike)
      hashTrigrams(&S->Tokens[T->Text], T->Operator, Trigrams);
    else
      memset(Trigrams, -1, MaxTrigrams * sizeof *Trigrams);
  }
  return true;
}

/// Asks the model. Returns one selectivity per term, or null if there is no
/// advice. The array is valid until the next call. A number outside of 0 to 1
/// means no advice for the term.
static const float *ask(Advisor *By, const Statement *S) {
  Rows R;
  if (By->HasFailed || S->NumTerms == 0 || !rowsOf(S, &R))
    return NULL;
  MLBridgeFeatureSetRef To = mlbridgeGetFeatures(By->Runner);
  const MLBridgeElementType Int = MLBridgeElementInt32;
  const MLBridgeElementType Double = MLBridgeElementDouble;
  const size_t N = (size_t)S->NumTerms;
  const struct {
    const char *Name;
    MLBridgeElementType Type;
    const void *Data;
    int64_t Width; // elements for each term
  } Features[] = {{"tables", Int, R.Tables, 1},
                  {"columns", Int, R.Columns, 2},
                  {"expressions", Int, R.Expressions, 1},
                  {"operators", Int, R.Operators, 1},
                  {"operands", Int, R.Operands, 1},
                  {"values", Double, R.Values, 4},
                  {"literals", Int, R.Literals, MaxLiterals},
                  {"trigrams", Int, R.Trigrams, MaxTrigrams}};
  for (size_t I = 0; I != sizeof Features / sizeof *Features; ++I) {
    const int64_t Extents[] = {S->NumTerms, Features[I].Width};
    mlbridgeSetTensor(To, Features[I].Name, Features[I].Type, Features[I].Data,
                      Extents, Features[I].Width == 1 ? 1 : 2);
  }
  MLBridgeAdviceRef Advice;
  const float *Found = NULL;
  size_t Count = 0;
  MLBridgeStatus Status = mlbridgeEvaluate(By->Runner, &Advice);
  if (Status == MLBridgeStatusSuccess)
    Status = mlbridgeGetFloatVector(Advice, NULL, &Found, &Count);
  if (Status == MLBridgeStatusSuccess && Count != N)
    Status = mlbridgeFail(MLBridgeStatusSchemaMismatch,
                          "advice: expected a selectivity for each term");
  if (Status != MLBridgeStatusSuccess) {
    Found = NULL;
    if (Status != MLBridgeStatusDeferred)
      fail(By);
  }
  sqlite3_free(R.Values);
  return Found;
}

static bool isAdvice(float Selectivity) {
  return Selectivity >= 0 && Selectivity <= 1;
}

/// True if a word directly after the character would become a part of a name or
/// a number, as in `where(a > 1)`.
static bool joinsWord(char C) {
  return isalnum((unsigned char)C) || C == '_' || C == '$' ||
         (unsigned char)C >= 0x80;
}

/// Writes the statement with likelihood() around the terms with advice.
static void writeStatement(sqlite3_str *To, const char *SQL, const Statement *S,
                           const float *Found) {
  const char *From = SQL;
  for (int I = 0; I != S->NumTerms; ++I) {
    const Token *const Begin = &S->Tokens[S->Terms[I].Begin];
    const Token *const Last = &S->Tokens[S->Terms[I].End - 1];
    const char *const End = Last->Text + Last->Length;
    const float Selectivity = Found[I];
    if (!isAdvice(Selectivity))
      continue;
    sqlite3_str_append(To, From, (int)(Begin->Text - From));
    if (Begin->Text != SQL && joinsWord(Begin->Text[-1]))
      sqlite3_str_append(To, " ", 1);
    sqlite3_str_appendf(To, "likelihood(%.*s, %.9f)", (int)(End - Begin->Text),
                        Begin->Text, (double)Selectivity);
    From = End;
  }
  sqlite3_str_appendall(To, From);
}

/// Writes a line for each term.
static void writeTerms(sqlite3_str *To, const Statement *S,
                       const float *Found) {
  if (S->Refused)
    sqlite3_str_appendf(To, "left as it is, because %s", S->Refused);
  for (int I = 0; I != S->NumTerms; ++I) {
    const Token *const Begin = &S->Tokens[S->Terms[I].Begin];
    const Token *const Last = &S->Tokens[S->Terms[I].End - 1];
    sqlite3_str_appendf(To, "%s%.*s: ", I ? "\n" : "",
                        (int)(Last->Text + Last->Length - Begin->Text),
                        Begin->Text);
    if (Found && isAdvice(Found[I]))
      sqlite3_str_appendf(To, "%.4f", (double)Found[I]);
    else
      sqlite3_str_appendall(To, "no advice");
  }
}

char *rewrite(sqlite3 *DB, Advisor *By, const char *SQL, bool Explains) {
  Statement S;
  char *Result = NULL;
  if (By->HasFailed && !Explains)
    return NULL;
  if (parseStatement(DB, SQL, &S) == SQLITE_OK) {
    const float *const Found = ask(By, &S);
    if (Found || Explains) {
      sqlite3_str *const To = sqlite3_str_new(DB);
      if (Explains)
        writeTerms(To, &S, Found);
      else
        writeStatement(To, SQL, &S, Found);
      Result = sqlite3_str_finish(To);
    }
  }
  freeStatement(&S);
  return Result;
}
