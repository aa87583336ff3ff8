//===- Statement.c - Reads a SELECT statement -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Handles as much of the grammar of SELECT as is needed to find terms. A
/// statement with other syntax is left as it is.
///
//===----------------------------------------------------------------------===//

#include "Statement.h"

#include "Terms.h"

#include <stdlib.h>

enum { MaxNesting = 32 };

static bool beginsSelect(const Token *T) {
  return isWord(T, "SELECT") || isWord(T, "WITH") || isWord(T, "VALUES");
}

/// The first tokens of the clauses of one SELECT. A missing clause is -1. ORDER
/// BY is from End to Last.
typedef struct Clauses {
  int Select, From, Where, GroupBy, Having, End, Last;
} Clauses;

/// Returns the end of one SELECT of a compound, or End.
static int endOfCore(const Statement *S, int I, int End) {
  for (; I < End; ++I) {
    if (isOperator(&S->Tokens[I], "("))
      I = S->Tokens[I].Match;
    else if (isAnyWord(&S->Tokens[I], SetCompound))
      return I;
  }
  return I;
}

static Clauses clausesOf(const Statement *S, int Begin, int End) {
  Clauses C = {Begin, -1, -1, -1, -1, End, End};
  for (int I = Begin; I < End; ++I) {
    const Token *const T = &S->Tokens[I];
    if (isOperator(T, "("))
      I = T->Match;
    else if (isWord(T, "FROM") && C.From < 0 &&
             !(I >= 2 && isWord(&S->Tokens[I - 1], "DISTINCT") &&
               (isWord(&S->Tokens[I - 2], "IS") ||
                isWord(&S->Tokens[I - 2], "NOT"))))
      C.From = I;
    else if (isWord(T, "WHERE"))
      C.Where = I;
    else if (isWord(T, "GROUP"))
      C.GroupBy = I;
    else if (isWord(T, "HAVING"))
      C.Having = I;
    else if (isWord(T, "ORDER")) {
      C.End = I;
      break;
    }
  }
  return C;
}

/// Returns the first argument that is not negative.
static int firstOf(int A, int B, int C, int End) {
  return A >= 0 ? A : B >= 0 ? B : C >= 0 ? C : End;
}

/// Reads a table, a function or a subquery of FROM, with its alias. Returns the
/// first token behind it, or End if the statement is refused.
static int readSource(Parser *P, Scope *To, int I, int End) {
  const Token *const T = P->S->Tokens;
  Source New = {NULL, NULL, NULL};
  if (To->NumSources == MaxSources) {
    refuse(P, "it has too many tables");
    return End;
  }
  if (isOperator(&T[I], "(")) {
    if (I + 1 < End && !beginsSelect(&T[I + 1]))
      refuse(P, "it has joins in parentheses");
    I = T[I].Match + 1;
  } else if (isNameToken(&T[I])) {
    New.Table = New.Name = &T[I++];
    if (I + 1 < End && isOperator(&T[I], ".")) {
      New.Schema = New.Table;
      New.Table = New.Name = &T[I + 1];
      I += 2;
    }
    if (I < End && isOperator(&T[I], "(")) {
      New.Table = NULL;
      I = T[I].Match + 1;
    }
    for (int N = 0; N != P->NumNames && New.Table && !New.Schema; ++N)
      if (isSameName(P->Names[N], New.Table))
        New.Table = NULL;
  } else {
    refuse(P, "it has an unknown form of FROM");
    return End;
  }
  if (I < End && isWord(&T[I], "AS"))
    ++I;
  if (I < End && (isNameToken(&T[I]) || T[I].Kind == TokenString) &&
      !isAnyWord(&T[I], SetJoin) && !isAnyWord(&T[I], SetNoAlias))
    New.Name = &T[I++];
  // The columns of a view are unknown.
  if (P->ComparesValues && New.Table && !isTable(P, &New))
    refuse(P, "it compares values of a view");
  To->Sources[To->NumSources++] = New;
  return I;
}

/// Reads the sources of FROM, and adds the terms of inner joins' ON.
static void readSources(Parser *P, Scope *To, int Begin, int End) {
  const Token *const T = P->S->Tokens;
  // Remember the conditions of ON, because their columns may belong to later
  // sources.
  int Conditions[MaxSources][2], NumConditions = 0;
  bool IsOuter = false;
  for (int I = Begin; I < End;) {
    if (isOperator(&T[I], ",") || isAnyWord(&T[I], SetJoin)) {
      // With RIGHT and FULL, the columns of all sources may be null.
      if (isWord(&T[I], "RIGHT") || isWord(&T[I], "FULL")) {
        To->NumInner = 0;
        IsOuter = true;
      }
      IsOuter |= isWord(&T[I], "LEFT");
      To->MergesNames |= isWord(&T[I], "NATURAL");
      ++I;
    } else if (isWord(&T[I], "ON")) {
      int Last = I + 1;
      while (Last < End && !isOperator(&T[Last], ",") &&
             (!isAnyWord(&T[Last], SetJoin) ||
              (Last + 1 < End && isOperator(&T[Last + 1], "("))))
        Last = isOperator(&T[Last], "(") ? T[Last].Match + 1 : Last + 1;
      if (NumConditions == MaxSources) {
        refuse(P, "it has too many conditions of ON");
        return;
      }
      Conditions[NumConditions][0] = I + 1;
      Conditions[NumConditions++][1] = Last < End ? Last : End;
      I = Last;
    } else if (isWord(&T[I], "USING") && I + 1 < End &&
               isOperator(&T[I + 1], "(")) {
      To->MergesNames = true;
      I = T[I + 1].Match + 1;
    } else if (isWord(&T[I], "INDEXED") || isWord(&T[I], "BY")) {
      I += isWord(&T[I], "BY") ? 2 : 1;
    } else if (isWord(&T[I], "NOT")) {
      ++I;
    } else {
      I = readSource(P, To, I, End);
    }
    if (!IsOuter)
      To->NumInner = To->NumSources;
  }
  if (!IsOuter)
    for (int I = 0; I != NumConditions; ++I)
      addTerms(P, To, Conditions[I][0], Conditions[I][1]);
}

/// Returns the end of an element of a list with commas.
static int endOfElement(const Statement *S, int I, int End) {
  while (I < End && !isOperator(&S->Tokens[I], ","))
    I = isOperator(&S->Tokens[I], "(") ? S->Tokens[I].Match + 1 : I + 1;
  return I < End ? I : End;
}

/// True if tokens call an aggregate. MIN and MAX with several arguments are
/// functions of one row.
static bool isAggregate(const Statement *S, int I) {
  const Token *const T = &S->Tokens[I];
  if (!isAnyWord(T, SetAggregate) || I + 1 == S->NumTokens ||
      !isOperator(&T[1], "("))
    return false;
  const int End = T[1].Match;
  return !isAnyWord(T, SetExtreme) || endOfElement(S, I + 2, End) == End;
}

/// True if a function of one SELECT aggregates rows.
static bool aggregates(const Statement *S, int Begin, int End) {
  for (int I = Begin; I + 1 < End; ++I) {
    if (isOperator(&S->Tokens[I], "(") && beginsSelect(&S->Tokens[I + 1]))
      I = S->Tokens[I].Match;
    else if (isAggregate(S, I))
      return true;
  }
  return false;
}

/// True if two tokens have the same meaning in the same scope.
static bool isSameToken(const Token *A, const Token *B) {
  if (A->Kind != B->Kind || A->Length != B->Length)
    return false;
  switch (A->Kind) {
  case TokenParameter:
    // Each ? is another parameter.
    return A->Length > 1 && memcmp(A->Text, B->Text, (size_t)A->Length) == 0;
  case TokenQuoted: // SQLite may read it as a string
  case TokenString:
  case TokenBlob:
    return memcmp(A->Text, B->Text, (size_t)A->Length) == 0;
  case TokenWord:
  case TokenName:
  case TokenNumber:
  case TokenOperator:
    break;
  }
  return sqlite3_strnicmp(A->Text, B->Text, A->Length) == 0;
}

static bool isSameText(const Statement *S, int A, int EndA, int B, int EndB) {
  if (EndA - A != EndB - B)
    return false;
  for (; A != EndA; ++A, ++B)
    if (!isSameToken(&S->Tokens[A], &S->Tokens[B]))
      return false;
  return true;
}

/// True if tokens are an element of GROUP BY.
static bool isGrouped(const Statement *S, const Clauses *C, int Begin,
                      int End) {
  const int Last = C->Having >= 0 ? C->Having : C->End;
  for (int I = C->GroupBy + 2; C->GroupBy >= 0 && I < Last;) {
    const int Next = endOfElement(S, I, Last);
    if (isSameText(S, I, Next, Begin, End))
      return true;
    I = Next + 1;
  }
  return false;
}

/// True if an expression of an aggregate query has a column that is neither
/// grouped nor an argument of an aggregate. The column's value then comes from
/// an arbitrary row of the group.
static bool hasBareColumn(const Statement *S, const Clauses *C, int Begin,
                          int End) {
  const Token *const T = S->Tokens;
  if (isGrouped(S, C, Begin, End))
    return false;
  Reference Name;
  bool HasName = nextReference(S, Begin, End, &Name);
  for (int I = Begin; I < End; ++I) {
    if (isOperator(&T[I], "*") && (I == Begin || isOperator(&T[I - 1], ".")))
      return true;
    // Skip a subquery, which is checked on its own, and the arguments of an
    // aggregate.
    if (isOperator(&T[I], "(") && beginsSelect(&T[I + 1]))
      I = T[I].Match;
    else if (isAggregate(S, I))
      I = T[I + 1].Match;
    while (HasName && Name.Begin < I)
      HasName = nextReference(S, Name.End, End, &Name);
    if (!HasName || Name.Begin != I)
      continue;
    if (!isGrouped(S, C, Name.Begin, Name.End))
      return true;
    I = Name.End - 1;
  }
  return false;
}

/// Returns the end of an element of the result without its alias.
static int endOfExpression(const Statement *S, int Begin, int End) {
  const Token *const T = S->Tokens;
  if (End - Begin > 2 && isWord(&T[End - 2], "AS"))
    return End - 2;
  const bool IsName =
      (isNameToken(&T[End - 1]) && !isAnyWord(&T[End - 1], SetKeyword)) ||
      T[End - 1].Kind == TokenString;
  return End - Begin > 1 && IsName && T[End - 2].EndsOperand ? End - 1 : End;
}

/// True if an alias that GROUP BY names means the element [Begin, End). A
/// column of the same name takes precedence over the alias.
static bool isAliasOf(Parser *P, const Scope *Where, int Alias, int Begin,
                      int End) {
  uint32_t Hash, Other;
  const int Column = resolve(P, Where, (Reference){Alias, Alias + 1}, &Hash);
  if (Column >= 0)
    return isReference(P->S, Begin, End) &&
           resolve(P, Where, (Reference){Begin, End}, &Other) == Column &&
           Hash == Other;
  for (int I = 0; I != Where->NumSources; ++I)
    if (Where->MergesNames || !isTable(P, &Where->Sources[I]))
      return false;
  return true;
}

/// Leaves the subqueries of an element without an alias as they are, because
/// SQLite uses the element's text as the column's name.
static void keepNames(Parser *P, int Begin, int End) {
  Token *const T = P->S->Tokens;
  for (int I = Begin; I < End;) {
    const int Next = endOfElement(P->S, I, End);
    if (endOfExpression(P->S, I, Next) == Next)
      for (int K = I; K < Next; ++K)
        T[K].Sets |= SetUnusual;
    I = Next + 1;
  }
}

/// Refuses functions that may aggregate.
static void checkFunctions(Parser *P, int Begin, int End) {
  const Token *const T = P->S->Tokens;
  for (int I = Begin; I + 1 < End; ++I) {
    if (isOperator(&T[I], "(") && beginsSelect(&T[I + 1]))
      I = T[I].Match;
    else if (isNameToken(&T[I]) && isOperator(&T[I + 1], "(") &&
             !isAnyWord(&T[I], SetKeyword | SetAggregate | SetScalar))
      refuse(P, "it calls a function that may depend on the order of rows");
  }
}

/// Refuses aggregates of a subquery if their columns may all belong to a query
/// around it, because SQLite then aggregates the rows of that query.
static void checkAggregates(Parser *P, const Scope *Where, int Begin, int End) {
  const Statement *const S = P->S;
  bool IsKnown = true;
  for (int I = 0; I != Where->NumSources; ++I)
    IsKnown &= isTable(P, &Where->Sources[I]);
  for (int I = Begin; I < End; ++I) {
    // A subquery is checked on its own.
    if (isOperator(&S->Tokens[I], "(") && beginsSelect(&S->Tokens[I + 1]))
      I = S->Tokens[I].Match;
    if (!isAggregate(S, I))
      continue;
    const int Last = S->Tokens[I + 1].Match;
    bool HasColumn = false, HasOwn = false;
    Reference Name = {I + 2, I + 2};
    while (nextReference(S, Name.End, Last, &Name)) {
      uint32_t Hash;
      HasColumn = true;
      if (resolve(P, Where, Name, &Hash) >= 0) {
        HasOwn = true;
      } else if (Name.End - Name.Begin > 1) {
        for (int K = 0; K != Where->NumSources; ++K)
          HasOwn |=
              Where->Sources[K].Name &&
              isSameName(Where->Sources[K].Name, &S->Tokens[Name.End - 3]);
      } else {
        HasOwn |= !IsKnown;
      }
    }
    if (HasColumn && !HasOwn)
      refuse(P, "an aggregate may belong to the query around a subquery");
  }
}

/// Refuses aggregates with bare columns, functions that may aggregate, and
/// comparisons of columns that are not named.
static void checkResult(Parser *P, const Scope *Where, const Clauses *C,
                        int Nesting) {
  const Statement *const S = P->S;
  const Token *const T = S->Tokens;
  const int End = firstOf(C->From, C->Where, C->GroupBy, C->End);
  int Begin = C->Select + 1;
  if (isWord(&T[C->Select], "VALUES"))
    return;
  if (Begin < End &&
      (isWord(&T[Begin], "ALL") || isWord(&T[Begin], "DISTINCT")))
    ++Begin;
  keepNames(P, Begin, End);
  checkFunctions(P, Begin, End);
  if (C->Having >= 0)
    checkFunctions(P, C->Having + 1, C->End);
  if (P->ComparesRows || (P->ComparesValues && Nesting > 0))
    for (int I = Begin; I < End; ++I)
      if (isOperator(&T[I], "*") && (I == Begin || isOperator(&T[I - 1], ",") ||
                                     isOperator(&T[I - 1], ".")))
        refuse(P, "it compares all columns of a table");
  // An aggregate in ORDER BY aggregates, too.
  if (C->GroupBy < 0 && C->Having < 0 && !aggregates(S, Begin, End) &&
      !aggregates(S, C->End, C->Last))
    return;
  for (int I = Begin; I < End;) {
    const int Next = endOfElement(S, I, End);
    const int Last = endOfExpression(S, I, Next);
    const bool IsAlias = Last != Next && isNameToken(&T[Next - 1]) &&
                         isGrouped(S, C, Next - 1, Next) &&
                         isAliasOf(P, Where, Next - 1, I, Last);
    if (!IsAlias && hasBareColumn(S, C, I, Last))
      refuse(P, "a column is taken from any row of a group");
    I = Next + 1;
  }
  if (C->Having >= 0 && hasBareColumn(S, C, C->Having + 1, C->End))
    refuse(P, "a column is taken from any row of a group");
}

static void parseSelect(Parser *P, int Begin, int End, int Nesting,
                        bool IsScalar);

/// Reads WITH. Returns the first token behind it.
static int readNames(Parser *P, int I, int End) {
  const Token *const T = P->S->Tokens;
  if (!isWord(&T[I], "WITH"))
    return I;
  ++I;
  if (I < End && isWord(&T[I], "RECURSIVE"))
    ++I;
  while (I < End && isNameToken(&T[I])) {
    if (P->NumNames == MaxSources) {
      refuse(P, "it has too many common table expressions");
      return End;
    }
    P->Names[P->NumNames++] = &T[I++];
    // Skip the columns and the words before the query.
    while (I < End && !isOperator(&T[I], ",") && !beginsSelect(&T[I]))
      I = isOperator(&T[I], "(") ? T[I].Match + 1 : I + 1;
    if (I < End && isOperator(&T[I], ","))
      ++I;
    else
      break;
  }
  return I;
}

/// Parses the subqueries of one SELECT. A subquery that is a source of FROM may
/// have several rows.
static void parseSubqueries(Parser *P, int Begin, int End, int From,
                            int FromEnd, int Nesting) {
  const Token *const T = P->S->Tokens;
  int Close = Begin; // of the outermost parentheses around a token
  for (int I = Begin; I + 1 < End; ++I) {
    if (!isOperator(&T[I], "("))
      continue;
    const bool IsInside = I < Close;
    if (!IsInside)
      Close = T[I].Match;
    if (!beginsSelect(&T[I + 1]))
      continue;
    const bool IsSource = From >= 0 && I > From && I < FromEnd && !IsInside &&
                          isOperator(&T[I - 1], ",");
    // FROM may be a part of IS DISTINCT FROM.
    const bool IsSet =
        I > 0 &&
        (isWord(&T[I - 1], "FROM") ? I - 1 == From
                                   : isAnyWord(&T[I - 1], SetRows) || IsSource);
    parseSelect(P, I + 1, T[I].Match, Nesting + 1, !IsSet);
    I = T[I].Match;
  }
}

/// Parses a SELECT with its WITH and its compounds. A scalar subquery is used
/// as one value, which SQLite takes from the first row.
static void parseSelect(Parser *P, int Begin, int End, int Nesting,
                        bool IsScalar) {
  Statement *const S = P->S;
  if (Nesting == MaxNesting)
    refuse(P, "its subqueries are nested too deeply");
  const int Main = readNames(P, Begin, End);
  parseSubqueries(P, Begin, Main, -1, -1, Nesting);
  if (Main >= End || !(isWord(&S->Tokens[Main], "SELECT") ||
                       isWord(&S->Tokens[Main], "VALUES")))
    refuse(P, "it does not select");
  for (int I = Main; I < End && !S->Refused && !P->NoMemory;) {
    const int Last = endOfCore(S, I, End);
    const Clauses C = clausesOf(S, I, Last);
    const int FromEnd = firstOf(C.Where, C.GroupBy, C.Having, C.End);
    Scope Here = {.FirstTable = P->NumTables};
    if (IsScalar &&
        (Last != End || C.GroupBy >= 0 ||
         !aggregates(S, C.Select, firstOf(C.From, C.Where, -1, C.End))))
      refuse(P, "a subquery may have several rows and is used as one value");
    if (C.From >= 0)
      readSources(P, &Here, C.From + 1, FromEnd);
    checkResult(P, &Here, &C, Nesting);
    if (Nesting > 0)
      checkAggregates(P, &Here, I, Last);
    P->NumTables += Here.NumSources;
    if (C.Where >= 0)
      addTerms(P, &Here, C.Where + 1, firstOf(C.GroupBy, C.Having, -1, C.End));
    // Check the collations of columns, because they affect comparisons.
    if (P->ComparesValues)
      resolveAll(P, &Here, I, Last);
    // Check GROUP BY and ORDER BY, because SQLite underestimates the cost of a
    // scan in their order.
    P->IsOrder = true;
    if (C.GroupBy >= 0)
      resolveAll(P, &Here, C.GroupBy, C.Having >= 0 ? C.Having : C.End);
    resolveAll(P, &Here, C.End, Last);
    P->IsOrder = false;
    parseSubqueries(P, I, Last, C.From, FromEnd, Nesting);
    I = Last + 1;
    if (I < End && isWord(&S->Tokens[I], "ALL"))
      ++I;
  }
}

/// Refuses statements by words that they contain.
static void checkWords(Parser *P) {
  bool HasCollation = false;
  for (int I = 0; I != P->S->NumTokens; ++I) {
    const Token *const T = &P->S->Tokens[I];
    const bool IsCall = I + 1 != P->S->NumTokens && isOperator(&T[1], "(");
    if (isAnyWord(T, SetOrdered))
      refuse(P, "its result may depend on the order of rows");
    else if (isAnyWord(T, SetChange) && !IsCall)
      refuse(P, "it changes the database");
    else if (IsCall && isAnyWord(T, SetFunction))
      refuse(P, "it calls a function that depends on the order of rows");
    P->ComparesRows |= isAnyWord(T, SetCompares);
    P->ComparesValues |=
        isAnyWord(T, SetCompares) || (IsCall && isAnyWord(T, SetExtreme));
    HasCollation |= isWord(T, "COLLATE");
  }
  if (P->ComparesValues && HasCollation)
    refuse(P, "it compares values by a collation");
}

static int compareTerms(const void *A, const void *B) {
  return ((const Term *)A)->Begin - ((const Term *)B)->Begin;
}

int parseStatement(sqlite3 *DB, const char *SQL, Statement *Result) {
  memset(Result, 0, sizeof *Result);
  Parser P = {.DB = DB, .S = Result};
  if (tokenize(SQL, Result) != SQLITE_OK)
    return SQLITE_NOMEM;
  int Begin = 0;
  const int End = Result->NumTokens;
  if (Begin < End && isWord(&Result->Tokens[Begin], "EXPLAIN"))
    ++Begin;
  if (Begin + 1 < End && isWord(&Result->Tokens[Begin], "QUERY"))
    Begin += 2;
  if (Begin >= End || !beginsSelect(&Result->Tokens[Begin]))
    refuse(&P, "it is not a SELECT");
  checkWords(&P);
  if (!Result->Refused)
    parseSelect(&P, Begin, End, 0, false);
  if (Result->Refused)
    Result->NumTerms = 0;
  // Terms do not overlap, because a term with a subquery is left as it is.
  if (Result->NumTerms > 1)
    qsort(Result->Terms, (size_t)Result->NumTerms, sizeof *Result->Terms,
          compareTerms);
  return P.NoMemory ? SQLITE_NOMEM : SQLITE_OK;
}

void freeStatement(Statement *S) {
  sqlite3_free(S->Tokens);
  sqlite3_free(S->Terms);
}
