//===- Tokens.c - The tokens of SQL ---------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SQLite has no public parser. This file handles its tokens.
///
//===----------------------------------------------------------------------===//

#include "Tokens.h"

#include <ctype.h>

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

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

void *grow(void *Vector, int Size, size_t Element) {
  enum { Least = 16 };
  if (Size != 0 && (Size < Least || (Size & (Size - 1)) != 0))
    return Vector;
  return sqlite3_realloc64(Vector, (Size ? 2 * (size_t)Size : Least) * Element);
}

int tokenize(const char *SQL, Statement *S) {
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

bool isNameToken(const Token *T) {
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

bool copyName(const Token *T, char *To, int Size) {
  const int Length = copyText(T, To, Size);
  if (Length == Size)
    return false;
  To[Length] = 0;
  return true;
}

bool isSameName(const Token *A, const Token *B) {
  char First[256], Second[256];
  return copyName(A, First, sizeof First) &&
         copyName(B, Second, sizeof Second) &&
         sqlite3_stricmp(First, Second) == 0;
}

uint32_t hashByte(uint32_t Hash, unsigned char Byte) {
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
