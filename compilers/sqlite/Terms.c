//===- Terms.c - The terms of one SELECT ----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Looks up the columns of a condition, and describes how its terms compare.
///
//===----------------------------------------------------------------------===//

#include "Terms.h"

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void refuse(Parser *P, const char *Why) {
  if (!P->S->Refused)
    P->S->Refused = Why;
}

/// Copies the names of a source. Returns false if it is not a table, or if its
/// name is too long.
static bool copySource(const Source *From, char *Schema, char *Table,
                       int Size) {
  return From->Table && copyName(From->Table, Table, Size) &&
         (!From->Schema || copyName(From->Schema, Schema, Size));
}

/// True if a column of this type can contain both 1 and 1.0, which SQLite
/// compares as equal.
static bool hasNoAffinity(const char *Type) {
  return !Type || !*Type || sqlite3_stricmp(Type, "ANY") == 0 ||
         sqlite3_strlike("%BLOB%", Type, 0) == 0;
}

/// Looks up a column of a table. Writes the hash of the column's name.
static bool lookUp(Parser *P, const Source *From, const Token *Column,
                   uint32_t *Hash) {
  char Schema[256], Table[256], Name[256];
  const char *Type = NULL, *Collation = NULL;
  int IsKey = 0;
  if (!copySource(From, Schema, Table, sizeof Table) ||
      !copyName(Column, Name, sizeof Name) ||
      sqlite3_table_column_metadata(P->DB, From->Schema ? Schema : NULL, Table,
                                    Name, &Type, &Collation, NULL, &IsKey,
                                    NULL) != SQLITE_OK)
    return false;
  if (P->IsOrder && IsKey)
    refuse(P, "it groups or sorts by a primary key");
  if (P->ComparesValues && Collation &&
      sqlite3_stricmp(Collation, "BINARY") != 0)
    refuse(P, "it groups by a column with a collation");
  if (P->ComparesValues && hasNoAffinity(Type))
    refuse(P, "it compares values of a column without a type");
  *Hash = hashText(HashStart, Table, (int)strlen(Table));
  *Hash = hashByte(*Hash, '.');
  *Hash = hashText(*Hash, Name, (int)strlen(Name));
  return true;
}

bool isTable(const Parser *P, const Source *From) {
  char Schema[256], Table[256];
  return copySource(From, Schema, Table, sizeof Table) &&
         sqlite3_table_column_metadata(P->DB, From->Schema ? Schema : NULL,
                                       Table, NULL, NULL, NULL, NULL, NULL,
                                       NULL) == SQLITE_OK;
}

int resolve(Parser *P, const Scope *Where, Reference Name, uint32_t *Hash) {
  const Token *const T = P->S->Tokens;
  const Token *const Column = &T[Name.End - 1];
  const int Parts = (Name.End - Name.Begin + 1) / 2;
  int Found = -1;
  for (int I = 0; I != Where->NumSources; ++I) {
    const Source *const From = &Where->Sources[I];
    if (Parts > 1 && (!From->Name || !isSameName(From->Name, Column - 2)))
      continue;
    if (Parts > 2 && From->Schema && !isSameName(From->Schema, Column - 4))
      continue;
    uint32_t This;
    if (!lookUp(P, From, Column, &This))
      continue;
    if (Found >= 0)
      return -1;
    Found = I;
    *Hash = This;
  }
  return Parts == 1 && Where->MergesNames ? -1 : Found;
}

void resolveAll(Parser *P, const Scope *Where, int Begin, int End) {
  Reference Name = {Begin, Begin};
  uint32_t Hash;
  while (nextReference(P->S, Name.End, End, &Name))
    resolve(P, Where, Name, &Hash);
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

bool nextReference(const Statement *S, int I, int End, Reference *Result) {
  const Token *const T = S->Tokens;
  for (; I < End; ++I) {
    if (!isNameToken(&T[I]) || isAnyWord(&T[I], SetKeyword))
      continue;
    int Last = I + 1;
    while (Last + 1 < End && isOperator(&T[Last], ".") &&
           isNameToken(&T[Last + 1]))
      Last += 2;
    if (Last < End && isOperator(&T[Last], "(")) {
      I = Last;
      continue; // a function
    }
    // Skip the type of a cast, which is not a column.
    if (I > 0 && isWord(&T[I - 1], "AS"))
      continue;
    Result->Begin = I;
    Result->End = Last;
    return true;
  }
  return false;
}

static bool isLiteral(const Statement *S, int Begin, int End) {
  const Token *const T = S->Tokens;
  if (End - Begin == 2 &&
      (isOperator(&T[Begin], "-") || isOperator(&T[Begin], "+")))
    return T[Begin + 1].Kind == TokenNumber;
  return End - Begin == 1 &&
         (T[Begin].Kind == TokenNumber || T[Begin].Kind == TokenString);
}

/// The locale of numbers in SQL. The program's locale may have a decimal comma.
static locale_t NumberLocale;

__attribute__((constructor)) static void openLocale(void) {
  NumberLocale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

__attribute__((destructor)) static void closeLocale(void) {
  if (NumberLocale)
    freelocale(NumberLocale);
}

static double numberOf(const char *Text) {
  const locale_t Old = NumberLocale ? uselocale(NumberLocale) : (locale_t)0;
  const double Number = strtod(Text, NULL);
  if (Old)
    uselocale(Old);
  return Number;
}

/// Reads a literal as a pair of numbers. Pairs sort in the same order as their
/// literals. A text's pair encodes its first six bytes and its next six bytes.
/// Returns the hash of the text in lower case, or of the bytes of the number.
static uint32_t setValue(const Statement *S, int Begin, int End, double *To) {
  enum { Digits = 6, MaxText = 256 };
  const Token *const T = &S->Tokens[End - 1];
  char Text[MaxText];
  To[0] = To[1] = 0;
  if (T->Kind == TokenNumber) {
    const int Length = T->Length < MaxText - 1 ? T->Length : MaxText - 1;
    memcpy(Text, T->Text, (size_t)Length);
    Text[Length] = 0;
    To[0] = numberOf(Text);
    if (End - Begin == 2 && isOperator(&S->Tokens[Begin], "-") && To[0] != 0)
      To[0] = -To[0];
    memcpy(Text, To, sizeof *To);
    return hashText(HashStart, Text, (int)sizeof *To);
  }
  const int Length = copyText(T, Text, MaxText);
  for (int Part = 0; Part != 2; ++Part) {
    double Digit = 1;
    for (int I = Part * Digits; I < Length && I < (Part + 1) * Digits; ++I)
      To[Part] += (unsigned char)Text[I] * (Digit /= 256);
  }
  return hashText(HashStart, Text, Length);
}

/// Returns the index of the next AND, or the end. Sets HasOr if an OR precedes
/// it. Words inside CASE and BETWEEN do not separate terms.
static int endOfTerm(const Statement *S, int I, int End, bool *HasOr) {
  int Cases = 0, Betweens = 0;
  for (; I < End; ++I) {
    const Token *const T = &S->Tokens[I];
    if (isOperator(T, "("))
      I = T->Match;
    else if (isWord(T, "CASE"))
      ++Cases;
    else if (isWord(T, "END"))
      --Cases;
    else if (Cases == 0 && isWord(T, "BETWEEN"))
      ++Betweens;
    else if (Cases == 0 && isWord(T, "OR"))
      *HasOr = true;
    else if (Cases == 0 && isWord(T, "AND") && Betweens-- <= 0)
      return I;
  }
  return I;
}

typedef struct Comparison {
  const char *Text;
  TermOperator Operator, Mirrored, Negated;
} Comparison;

static const Comparison Comparisons[] = {
    {"=", OperatorEqual, OperatorEqual, OperatorOther},
    {"==", OperatorEqual, OperatorEqual, OperatorOther},
    {"!=", OperatorNotEqual, OperatorNotEqual, OperatorOther},
    {"<>", OperatorNotEqual, OperatorNotEqual, OperatorOther},
    {"<", OperatorLess, OperatorGreater, OperatorOther},
    {"<=", OperatorLessEqual, OperatorGreaterEqual, OperatorOther},
    {">", OperatorGreater, OperatorLess, OperatorOther},
    {">=", OperatorGreaterEqual, OperatorLessEqual, OperatorOther},
    {"BETWEEN", OperatorBetween, OperatorOther, OperatorNotBetween},
    {"IN", OperatorIn, OperatorOther, OperatorNotIn},
    {"LIKE", OperatorLike, OperatorOther, OperatorNotLike},
    {"GLOB", OperatorGlob, OperatorOther, OperatorNotGlob},
};

static const Comparison *comparisonOf(const Token *T) {
  for (size_t I = 0; I != sizeof Comparisons / sizeof *Comparisons; ++I) {
    const char *const Text = Comparisons[I].Text;
    if (isalpha((unsigned char)*Text) ? isWord(T, Text) : isOperator(T, Text))
      return &Comparisons[I];
  }
  return NULL;
}

/// Hashes tokens. Every column counts as #.
static uint32_t hashExpression(const Statement *S, int Begin, int End) {
  uint32_t Hash = HashStart;
  Reference Name;
  bool HasName = nextReference(S, Begin, End, &Name);
  for (int I = Begin; I < End; ++I) {
    const Token *const T = &S->Tokens[I];
    if (HasName && I == Name.Begin) {
      Hash = hashByte(Hash, '#');
      I = Name.End - 1;
      HasName = nextReference(S, Name.End, End, &Name);
    } else {
      Hash = hashText(Hash, T->Text, T->Length);
    }
    Hash = hashByte(Hash, ' ');
  }
  return Hash;
}

bool isReference(const Statement *S, int Begin, int End) {
  Reference Name;
  return nextReference(S, Begin, End, &Name) && Name.Begin == Begin &&
         Name.End == End;
}

/// Sets To->Expression to 0 for a column alone, or to the expression's hash.
static void setExpression(const Statement *S, int Begin, int End, Term *To) {
  To->Expression =
      isReference(S, Begin, End) ? 0 : hashExpression(S, Begin, End);
}

/// Describes an operand that is one literal.
static void setLiteral(const Statement *S, int Begin, int End, Term *To) {
  const bool IsText = S->Tokens[End - 1].Kind == TokenString;
  To->Operand = IsText ? OperandText : OperandNumber;
  To->Literals[0] = setValue(S, Begin, End, To->Values);
  To->Text = IsText ? End - 1 : -1;
}

/// Describes a list of literals of one kind. Returns false for other lists.
static bool setList(const Statement *S, int Begin, int End, Term *To) {
  int Count = 0;
  for (int I = Begin; I < End; ++Count) {
    int Last = I;
    while (Last != End && !isOperator(&S->Tokens[Last], ","))
      ++Last;
    if (!isLiteral(S, I, Last) ||
        S->Tokens[Last - 1].Kind != S->Tokens[End - 1].Kind)
      return false;
    double Value[2];
    const uint32_t Hash = setValue(S, I, Last, Value);
    if (Count < MaxLiterals)
      To->Literals[Count] = Hash;
    I = Last + 1;
  }
  To->Operand = OperandList;
  To->Values[0] = Count;
  return true;
}

/// Describes the right side. Returns false if its form is unknown.
static bool setOperand(const Statement *S, int Begin, int End, Term *To) {
  const Token *const T = S->Tokens;
  if (To->Operator == OperatorBetween || To->Operator == OperatorNotBetween) {
    int And = Begin;
    while (And < End && !isWord(&T[And], "AND"))
      And = isOperator(&T[And], "(") ? T[And].Match + 1 : And + 1;
    if (!isLiteral(S, Begin, And) || !isLiteral(S, And + 1, End) ||
        T[And - 1].Kind != T[End - 1].Kind)
      return false;
    setLiteral(S, Begin, And, To);
    setValue(S, And + 1, End, &To->Values[2]);
    return true;
  }
  if (To->Operator == OperatorIn || To->Operator == OperatorNotIn) {
    if (!isOperator(&T[Begin], "(") || T[Begin].Match != End - 1)
      return false;
    return setList(S, Begin + 1, End - 1, To);
  }
  if (isLiteral(S, Begin, End)) {
    setLiteral(S, Begin, End, To);
    return true;
  }
  if (!isReference(S, Begin, End))
    return false;
  To->Operand = OperandColumn;
  return true;
}

/// Recognises ISNULL, NOTNULL, NOT NULL, IS NULL and IS NOT NULL at the end of
/// a term. Sets \p Left to the end of the tested expression.
static TermOperator nullTest(const Statement *S, int Begin, int End,
                             int *Left) {
  const Token *const T = S->Tokens;
  *Left = End - 1;
  if (*Left > Begin && isWord(&T[*Left], "ISNULL"))
    return OperatorIsNull;
  if (*Left > Begin && isWord(&T[*Left], "NOTNULL"))
    return OperatorNotNull;
  if (End - Begin < 3 || !isWord(&T[*Left], "NULL"))
    return OperatorOther;
  const bool Not = isWord(&T[--*Left], "NOT");
  if (Not && isWord(&T[*Left - 1], "IS"))
    --*Left;
  if (!Not && !isWord(&T[*Left], "IS"))
    return OperatorOther;
  return Not ? OperatorNotNull : OperatorIsNull;
}

/// Describes how the term compares, as far as it is known.
static void describe(const Statement *S, Term *To) {
  const Token *const T = S->Tokens;
  int Begin = To->Begin, End = To->End;
  while (isOperator(&T[Begin], "(") && T[Begin].Match == End - 1)
    ++Begin, --End;
  To->Text = -1;
  int Left = End;
  To->Operator = nullTest(S, Begin, End, &Left);
  if (To->Operator != OperatorOther) {
    setExpression(S, Begin, Left, To);
    return;
  }
  for (int I = Begin; I < End; ++I) {
    if (isOperator(&T[I], "(")) {
      I = T[I].Match;
      continue;
    }
    const Comparison *const How = comparisonOf(&T[I]);
    if (!How)
      continue;
    const bool Not = I > Begin && isWord(&T[I - 1], "NOT");
    Left = I - Not;
    if (Left == Begin || I + 1 == End || isWord(&T[Begin], "NOT"))
      break;
    To->Operator = Not ? How->Negated : How->Operator;
    if (isLiteral(S, Begin, Left) && How->Mirrored != OperatorOther) {
      To->Operator = How->Mirrored;
      setLiteral(S, Begin, Left, To);
      setExpression(S, I + 1, End, To);
      return;
    }
    setExpression(S, Begin, Left, To);
    if (To->Operator != OperatorOther && setOperand(S, I + 1, End, To))
      return;
    break;
  }
  To->Operator = OperatorOther;
  To->Operand = OperandNone;
  memset(To->Values, 0, sizeof To->Values);
  memset(To->Literals, 0, sizeof To->Literals);
  To->Text = -1;
  To->Expression = hashExpression(S, Begin, End);
}

/// True if the tokens contain a value that a request cannot describe, such as a
/// parameter, or if they must not be an argument of likelihood().
static bool isUnusual(const Statement *S, int Begin, int End) {
  for (int I = Begin; I != End; ++I) {
    const Token *const T = &S->Tokens[I];
    if (T->Kind == TokenParameter || T->Kind == TokenBlob ||
        isAnyWord(T, SetUnusual))
      return true;
  }
  // The tokens are a row value.
  if (isOperator(&S->Tokens[Begin], "("))
    for (int I = Begin + 1; I < S->Tokens[Begin].Match; ++I) {
      if (isOperator(&S->Tokens[I], "("))
        I = S->Tokens[I].Match;
      else if (isOperator(&S->Tokens[I], ","))
        return true;
    }
  return false;
}

/// Adds a term if all of its columns belong to one table.
static void addTerm(Parser *P, const Scope *Where, int Begin, int End) {
  Statement *const S = P->S;
  Term New = {.Begin = Begin, .End = End, .Table = -1, .Text = -1};
  if (Begin == End || isUnusual(S, Begin, End))
    return;
  int Columns = 0;
  Reference Name = {Begin, Begin};
  while (nextReference(S, Name.End, End, &Name)) {
    uint32_t Hash = 0;
    const int Source = resolve(P, Where, Name, &Hash);
    // Leave a term alone if an outer join may set its columns to null. SQLite
    // makes the join an inner one if a term refuses null. likelihood() would
    // prevent this.
    if (Source < 0 || Source >= Where->NumInner ||
        (Columns != 0 && Source != New.Table))
      return;
    New.Table = Source;
    if (Columns < 2)
      New.Columns[Columns] = Hash;
    ++Columns;
  }
  if (Columns == 0)
    return;
  New.Table += Where->FirstTable;
  describe(S, &New);
  Term *const Terms = grow(S->Terms, S->NumTerms, sizeof New);
  if (!Terms) {
    P->NoMemory = true;
    return;
  }
  S->Terms = Terms;
  Terms[S->NumTerms++] = New;
}

void addTerms(Parser *P, const Scope *Where, int Begin, int End) {
  bool HasOr = false;
  for (int I = Begin; I < End; ++I)
    I = endOfTerm(P->S, I, End, &HasOr);
  if (HasOr)
    return;
  for (int I = Begin; I < End;) {
    const int Last = endOfTerm(P->S, I, End, &HasOr);
    addTerm(P, Where, I, Last);
    I = Last + 1;
  }
}
