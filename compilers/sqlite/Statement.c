//===- Statement.c - The terms of a SELECT statement ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SQLite has no public parser. This file handles SQLite's tokens, and as much
/// of the grammar of SELECT as is needed to find terms. A statement with other
/// syntax is left as it is.
///
//===----------------------------------------------------------------------===//

#include "Statement.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { MaxNesting = 32, MaxSources = 64 };

#define INLINED static inline __attribute__((always_inline))

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Sets of words. A word may be in several sets.
enum {
  SetKeyword = 1 << 0,   // can stand where a name could, but is not a name
  SetUnusual = 1 << 1,   // see isUnusual()
  SetCompound = 1 << 2,  // joins SELECTs
  SetJoin = 1 << 3,      // joins tables
  SetNoAlias = 1 << 4,   // follows a table, and is not its alias
  SetAggregate = 1 << 5, // a function of many rows
  SetScalar = 1 << 6,    // a function of its arguments only
  SetRows = 1 << 7,      // a subquery behind it is not one value
  SetOrdered = 1 << 8,   // the order of rows may matter
  SetChange = 1 << 9,    // changes the database
  SetCompares = 1 << 10, // compares rows
  SetFunction = 1 << 11, // a function that depends on the order of rows
  SetName = 1 << 12,     // a name where an operand must follow
  SetOperand = 1 << 13,  // an operand may end with this keyword
  SetExtreme = 1 << 14,  // compares values: an aggregate if it has one argument
};

typedef struct Word {
  const char *Text; // in upper case
  unsigned Sets;
} Word;

static const Word Words[] = {
    {"ABS", SetScalar},
    {"ALL", SetKeyword},
    {"AND", SetKeyword},
    {"AS", SetKeyword | SetRows},
    {"ASC", SetKeyword | SetName | SetOperand},
    {"AVG", SetAggregate},
    {"BETWEEN", SetKeyword},
    {"BY", SetKeyword | SetName},
    {"CASE", SetKeyword},
    {"CAST", SetKeyword | SetScalar | SetName},
    {"CHANGES", SetFunction},
    {"CHAR", SetScalar},
    {"COALESCE", SetScalar},
    {"COLLATE", SetKeyword | SetUnusual},
    {"COUNT", SetAggregate},
    {"CREATE", SetChange},
    {"CROSS", SetKeyword | SetJoin | SetName},
    {"DATE", SetScalar},
    {"DATETIME", SetScalar},
    {"DELETE", SetChange},
    {"DESC", SetKeyword | SetName | SetOperand},
    {"DISTINCT", SetKeyword | SetCompares},
    {"ELSE", SetKeyword},
    {"END", SetKeyword | SetName | SetOperand},
    {"ESCAPE", SetKeyword},
    {"EXCEPT", SetKeyword | SetCompound | SetCompares},
    {"EXISTS", SetKeyword | SetRows},
    {"FALSE", SetKeyword | SetOperand},
    {"FILTER", SetKeyword | SetName},
    {"FORMAT", SetScalar},
    {"FROM", SetKeyword | SetRows},
    {"FULL", SetKeyword | SetJoin | SetName},
    {"GLOB", SetKeyword | SetName},
    {"GROUP", SetKeyword | SetCompares},
    {"GROUP_CONCAT", SetFunction},
    {"HAVING", SetKeyword},
    {"HEX", SetScalar},
    {"IFNULL", SetScalar},
    {"IIF", SetScalar},
    {"IN", SetKeyword | SetRows},
    {"INDEXED", SetKeyword | SetNoAlias | SetName | SetOperand},
    {"INNER", SetKeyword | SetJoin | SetName},
    {"INSERT", SetChange},
    {"INSTR", SetScalar},
    {"INTERSECT", SetKeyword | SetCompound | SetCompares},
    {"IS", SetKeyword},
    {"ISNULL", SetKeyword | SetOperand},
    {"JOIN", SetKeyword | SetJoin | SetRows},
    {"JSON_EXTRACT", SetScalar},
    {"JSON_GROUP_ARRAY", SetFunction},
    {"JSON_GROUP_OBJECT", SetFunction},
    {"JULIANDAY", SetScalar},
    {"LAST_INSERT_ROWID", SetFunction},
    {"LEFT", SetKeyword | SetJoin | SetName},
    {"LENGTH", SetScalar},
    {"LIKE", SetKeyword | SetName},
    {"LIKELIHOOD", SetUnusual},
    {"LIKELY", SetUnusual},
    {"LIMIT", SetKeyword | SetOrdered},
    {"LOWER", SetScalar},
    {"LTRIM", SetScalar},
    {"MATCH", SetKeyword | SetUnusual | SetName},
    {"MATERIALIZED", SetRows},
    {"MAX", SetAggregate | SetExtreme},
    {"MIN", SetAggregate | SetExtreme},
    {"NATURAL", SetKeyword | SetJoin | SetName},
    {"NOT", SetKeyword | SetNoAlias},
    {"NOTNULL", SetKeyword | SetOperand},
    {"NULL", SetKeyword | SetOperand},
    {"NULLIF", SetScalar},
    {"NULLS", SetKeyword | SetName},
    {"OFFSET", SetKeyword | SetName},
    {"ON", SetKeyword | SetNoAlias},
    {"OR", SetKeyword},
    {"ORDER", SetKeyword},
    {"OUTER", SetKeyword | SetJoin | SetName},
    {"OVER", SetKeyword | SetOrdered},
    {"PRINTF", SetScalar},
    {"QUOTE", SetScalar},
    {"RANDOM", SetFunction},
    {"RANDOMBLOB", SetFunction},
    {"REGEXP", SetKeyword | SetUnusual | SetName},
    {"REPLACE", SetScalar},
    {"RETURNING", SetChange},
    {"RIGHT", SetKeyword | SetJoin | SetName},
    {"ROUND", SetScalar},
    {"RTRIM", SetScalar},
    {"SELECT", SetKeyword | SetUnusual},
    {"SIGN", SetScalar},
    {"STRFTIME", SetScalar},
    {"STRING_AGG", SetFunction},
    {"SUBSTR", SetScalar},
    {"SUBSTRING", SetScalar},
    {"SUM", SetAggregate},
    {"THEN", SetKeyword},
    {"TIME", SetScalar},
    {"TOTAL", SetAggregate},
    {"TOTAL_CHANGES", SetFunction},
    {"TRIM", SetScalar},
    {"TRUE", SetKeyword | SetOperand},
    {"TYPEOF", SetScalar},
    {"UNICODE", SetScalar},
    {"UNION", SetKeyword | SetCompound | SetCompares},
    {"UNIXEPOCH", SetScalar},
    {"UNLIKELY", SetUnusual},
    {"UPDATE", SetChange},
    {"UPPER", SetScalar},
    {"USING", SetKeyword | SetNoAlias},
    {"VALUES", SetKeyword | SetUnusual},
    {"WHEN", SetKeyword},
    {"WHERE", SetKeyword},
    {"WINDOW", SetKeyword | SetOrdered},
    {"WITH", SetKeyword | SetName}};

/// A hash table of Words. A slot contains an index plus 1, or 0 if it is empty.
enum { NumSlots = 512, NumWords = sizeof Words / sizeof *Words };
static uint8_t Slots[NumSlots];

/// Adds a byte to a hash, and ignores its case.
INLINED uint32_t hashWord(uint32_t Hash, char C) {
  return (Hash ^ ((unsigned char)C | 0x20u)) * 16777619u;
}

static unsigned setsOf(const char *Text, int Length, uint32_t Hash) {
  for (uint32_t I = Hash % NumSlots; Slots[I]; I = (I + 1) % NumSlots) {
    const Word *const W = &Words[Slots[I] - 1];
    if (sqlite3_strnicmp(Text, W->Text, Length) == 0 && !W->Text[Length])
      return W->Sets;
  }
  return 0;
}

// Fill the table before any thread can use it.
__attribute__((constructor)) static void hashWords(void) {
  for (int I = 0; I != NumWords; ++I) {
    uint32_t Hash = HashStart;
    for (const char *P = Words[I].Text; *P; ++P)
      Hash = hashWord(Hash, *P);
    uint32_t Slot = Hash % NumSlots;
    while (Slots[Slot])
      Slot = (Slot + 1) % NumSlots;
    Slots[Slot] = (uint8_t)(I + 1);
  }
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool isNameStart(char C) {
  return isalpha((unsigned char)C) || C == '_' || (unsigned char)C >= 0x80;
}

static bool isName(char C) {
  return isNameStart(C) || isdigit((unsigned char)C) || C == '$';
}

/// Returns the length of the spaces and comments at the start of Text.
static int spaceAt(const char *Text) {
  const char *P = Text;
  for (;;) {
    if (*P && strchr(" \t\n\f\r", *P)) {
      ++P;
    } else if (P[0] == '-' && P[1] == '-') {
      P += strcspn(P, "\n");
    } else if (P[0] == '/' && P[1] == '*') {
      const char *End = strstr(P + 2, "*/");
      P = End ? End + 2 : P + strlen(P);
    } else {
      return (int)(P - Text);
    }
  }
}

/// Returns the length of a quoted token, or 0 if it has no end.
static int quotedAt(const char *Text, char Close) {
  const char *P = Text + 1;
  for (; *P; ++P) {
    if (*P != Close)
      continue;
    if (P[1] != Close || Close == ']')
      return (int)(P + 1 - Text);
    ++P;
  }
  return 0;
}

static int numberAt(const char *Text) {
  const char *P = Text;
  if (P[0] == '0' && (P[1] == 'x' || P[1] == 'X')) {
    for (P += 2; isxdigit((unsigned char)*P); ++P)
      ;
    return (int)(P - Text);
  }
  while (isdigit((unsigned char)*P))
    ++P;
  if (*P == '.')
    for (++P; isdigit((unsigned char)*P); ++P)
      ;
  if ((*P == 'e' || *P == 'E')) {
    const char *Digits = P + 1 + (P[1] == '+' || P[1] == '-');
    if (isdigit((unsigned char)*Digits))
      for (P = Digits; isdigit((unsigned char)*P); ++P)
        ;
  }
  return (int)(P - Text);
}

static int nameAt(const char *Text) {
  int Length = 0;
  while (isName(Text[Length]))
    ++Length;
  return Length;
}

static void readWord(const char *Text, Token *Result) {
  uint32_t Hash = HashStart;
  int Length = 0;
  for (; isName(Text[Length]); ++Length)
    Hash = hashWord(Hash, Text[Length]);
  Result->Kind = TokenWord;
  Result->Length = Length;
  Result->Sets = setsOf(Text, Length, Hash);
}

/// Reads the token at the text. Returns false if none begins there.
static bool readToken(const char *Text, Token *Result) {
  static const char *const Operators[] = {"->>", "->", "||", "<=", "<>",
                                          "<<",  ">=", ">>", "==", "!="};
  const char C = *Text;
  Result->Text = Text;
  Result->Match = -1;
  Result->Sets = 0;
  if ((C == 'x' || C == 'X') && Text[1] == '\'') {
    const int Length = quotedAt(Text + 1, '\'');
    Result->Kind = TokenBlob;
    Result->Length = Length ? Length + 1 : 0;
  } else if (isNameStart(C)) {
    readWord(Text, Result);
  } else if (C == '\'') {
    Result->Kind = TokenString;
    Result->Length = quotedAt(Text, C);
  } else if (C == '"' || C == '`' || C == '[') {
    Result->Kind = TokenQuoted;
    Result->Length = quotedAt(Text, C == '[' ? ']' : C);
  } else if (isdigit((unsigned char)C) ||
             (C == '.' && isdigit((unsigned char)Text[1]))) {
    Result->Kind = TokenNumber;
    Result->Length = numberAt(Text);
    // SQLite rejects a number that a name follows, such as 1a.
    if (isName(Text[Result->Length]))
      return false;
  } else if (C == '?' || C == ':' || C == '@' || C == '$' || C == '#') {
    Result->Kind = TokenParameter;
    Result->Length = 1 + nameAt(Text + 1);
  } else {
    Result->Kind = TokenOperator;
    Result->Length = strchr("()*+-/%&|<>=,.;~", C) ? 1 : 0;
    for (size_t I = 0; I != sizeof Operators / sizeof *Operators; ++I)
      if (strncmp(Text, Operators[I], strlen(Operators[I])) == 0) {
        Result->Length = (int)strlen(Operators[I]);
        break;
      }
  }
  return Result->Length != 0;
}

// This function is inlined, so that the length of Text is a constant.
INLINED bool isOperator(const Token *T, const char *Text) {
  return T->Kind == TokenOperator && T->Length == (int)strlen(Text) &&
         memcmp(T->Text, Text, strlen(Text)) == 0;
}

INLINED bool isWord(const Token *T, const char *Word) {
  return T->Kind == TokenWord && T->Length == (int)strlen(Word) &&
         sqlite3_strnicmp(T->Text, Word, T->Length) == 0;
}

static bool isAnyWord(const Token *T, unsigned Sets) {
  return (T->Sets & Sets) != 0;
}

/// Decides whether a keyword is a name here, and whether an operand ends with
/// the token. SQLite accepts a keyword such as END or LEFT as a name where no
/// keyword can stand.
static void classify(Token *T, const Token *Previous) {
  const bool Expects = !Previous || !Previous->EndsOperand;
  const char *const Next = T->Text + T->Length;
  const bool IsCall = Next[spaceAt(Next)] == '(';
  const bool HasWord = Previous && Previous->Kind == TokenWord;
  // These words follow another keyword, so they are keywords, too.
  const bool Follows =
      HasWord && (isAnyWord(T, SetJoin) ? isAnyWord(Previous, SetJoin) &&
                                              !isWord(Previous, "JOIN")
                  : isWord(T, "BY")     ? isWord(Previous, "GROUP") ||
                                              isWord(Previous, "ORDER") ||
                                              isWord(Previous, "INDEXED")
                                        : false);
  const bool Begins =
      isWord(T, "WITH") && (!Previous || isOperator(Previous, "("));
  const bool IsQualified = Previous && isOperator(Previous, ".");
  if (isAnyWord(T, SetName) && Expects && !Follows && !Begins &&
      (IsQualified || !IsCall)) {
    T->Kind = TokenName;
    T->Sets = 0;
  }
  if (T->Kind == TokenOperator)
    T->EndsOperand = isOperator(T, ")");
  else if (isWord(T, "NOT"))
    T->EndsOperand = !Expects; // x NOT LIKE y, but NOT x
  else
    T->EndsOperand = !isAnyWord(T, SetKeyword) || isAnyWord(T, SetOperand);
}

/// Returns a vector with room for one more element. Capacities are powers of
/// two.
static void *grow(void *Vector, int Size, size_t Element) {
  enum { Least = 16 };
  if (Size != 0 && (Size < Least || (Size & (Size - 1)) != 0))
    return Vector;
  return sqlite3_realloc64(Vector, (Size ? 2 * (size_t)Size : Least) * Element);
}

static int tokenize(const char *SQL, Statement *S) {
  int Open[256], Depth = 0;
  const char *P = SQL + spaceAt(SQL);
  while (*P) {
    Token T;
    if (!readToken(P, &T)) {
      S->Refused = "it has an unknown token";
      break;
    }
    P += T.Length;
    if (isOperator(&T, ";"))
      break;
    Token *const Tokens = grow(S->Tokens, S->NumTokens, sizeof T);
    if (!Tokens)
      return SQLITE_NOMEM;
    S->Tokens = Tokens;
    classify(&T, S->NumTokens ? &Tokens[S->NumTokens - 1] : NULL);
    if (isOperator(&T, "(")) {
      if (Depth == (int)(sizeof Open / sizeof *Open)) {
        S->Refused = "its parentheses are nested too deeply";
        break;
      }
      Open[Depth++] = S->NumTokens;
    } else if (isOperator(&T, ")")) {
      if (Depth == 0) {
        S->Refused = "its parentheses do not match";
        break;
      }
      T.Match = Open[--Depth];
      Tokens[T.Match].Match = S->NumTokens;
    }
    Tokens[S->NumTokens++] = T;
    P += spaceAt(P);
  }
  S->End = P;
  if (!S->Refused && Depth != 0)
    S->Refused = "its parentheses do not match";
  return SQLITE_OK;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isNameToken(const Token *T) {
  return T->Kind == TokenWord || T->Kind == TokenName || T->Kind == TokenQuoted;
}

int copyText(const Token *T, char *To, int Size) {
  int Length = 0;
  const bool IsQuoted = T->Kind != TokenWord && T->Kind != TokenName;
  const char Close = IsQuoted ? T->Text[T->Length - 1] : 0;
  for (int I = IsQuoted; I < T->Length - IsQuoted && Length != Size; ++I) {
    To[Length++] = T->Text[I];
    // Skip the second of two quotes, which stand for one quote.
    I += IsQuoted && T->Text[I] == Close;
  }
  return Length;
}

/// Copies a name without its quotes. Returns false if it is too long.
static bool copyName(const Token *T, char *To, int Size) {
  const int Length = copyText(T, To, Size);
  if (Length == Size)
    return false;
  To[Length] = 0;
  return true;
}

static bool isSameName(const Token *A, const Token *B) {
  char First[256], Second[256];
  return copyName(A, First, sizeof First) &&
         copyName(B, Second, sizeof Second) &&
         sqlite3_stricmp(First, Second) == 0;
}

static uint32_t hashByte(uint32_t Hash, unsigned char Byte) {
  return (Hash ^ Byte) * 16777619u;
}

/// Unlike tolower(), this function does not depend on the program's locale.
static char lower(char C) {
  return C >= 'A' && C <= 'Z' ? (char)(C - 'A' + 'a') : C;
}

uint32_t hashText(uint32_t Hash, const char *Text, int Length) {
  for (int I = 0; I != Length; ++I)
    Hash = hashByte(Hash, (unsigned char)lower(Text[I]));
  return Hash;
}

/// An item of FROM.
typedef struct Source {
  const Token *Schema; // or null
  const Token *Table;  // null for a subquery, a function and a CTE
  const Token *Name;   // the alias, or the table; null for none
} Source;

/// The sources of one SELECT.
typedef struct Scope {
  Source Sources[MaxSources];
  int NumSources;
  int FirstTable;   // the number of the first source in Term.Table
  int NumInner;     // sources whose columns no outer join sets to null
  bool MergesNames; // by USING or NATURAL
} Scope;

typedef struct Parser {
  sqlite3 *DB;
  Statement *S;
  const Token *Names[MaxSources]; // of common table expressions
  int NumNames;
  int NumTables;
  bool ComparesRows;   // for example by DISTINCT or UNION
  bool ComparesValues; // by these, or by MIN or MAX
  bool IsOrder;        // looks up the columns of GROUP BY and ORDER BY
  bool NoMemory;
} Parser;

static void refuse(Parser *P, const char *Why) {
  if (!P->S->Refused)
    P->S->Refused = Why;
}

/// A reference to a column: a name, with a table and a schema before it.
typedef struct Reference {
  int Begin, End; // tokens
} Reference;

/// Finds the next reference in the tokens from I on. Returns false at the end.
static bool nextReference(const Statement *S, int I, int End,
                          Reference *Result);

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

/// True if the columns of a source are known.
static bool isTable(const Parser *P, const Source *From) {
  char Schema[256], Table[256];
  return copySource(From, Schema, Table, sizeof Table) &&
         sqlite3_table_column_metadata(P->DB, From->Schema ? Schema : NULL,
                                       Table, NULL, NULL, NULL, NULL, NULL,
                                       NULL) == SQLITE_OK;
}

/// Returns the index of the source whose column Name refers to, or -1.
static int resolve(Parser *P, const Scope *Where, Reference Name,
                   uint32_t *Hash) {
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

/// Looks up all columns in some tokens.
static void resolveAll(Parser *P, const Scope *Where, int Begin, int End) {
  Reference Name = {Begin, Begin};
  uint32_t Hash;
  while (nextReference(P->S, Name.End, End, &Name))
    resolve(P, Where, Name, &Hash);
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

static bool nextReference(const Statement *S, int I, int End,
                          Reference *Result) {
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

static bool isReference(const Statement *S, int Begin, int End) {
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

/// Adds the terms of a condition.
static void addTerms(Parser *P, const Scope *Where, int Begin, int End) {
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

//===----------------------------------------------------------------------===//
// SELECT
//===----------------------------------------------------------------------===//

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
      Source New = {NULL, NULL, NULL};
      if (To->NumSources == MaxSources) {
        refuse(P, "it has too many tables");
        return;
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
        return;
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
