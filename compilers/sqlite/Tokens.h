//===- Tokens.h - The tokens of SQL ----------------------------- -*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Splits SQL into tokens, and compares tokens with words, operators and names.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_SQLITE_TOKENS_H
#define MLBRIDGE_SQLITE_TOKENS_H

#include "Statement.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

#include <string.h>

#define INLINED static inline __attribute__((always_inline))

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

// This function is inlined, so that the length of Text is a constant.
INLINED bool isOperator(const Token *T, const char *Text) {
  return T->Kind == TokenOperator && T->Length == (int)strlen(Text) &&
         memcmp(T->Text, Text, strlen(Text)) == 0;
}

INLINED bool isWord(const Token *T, const char *Word) {
  return T->Kind == TokenWord && T->Length == (int)strlen(Word) &&
         sqlite3_strnicmp(T->Text, Word, T->Length) == 0;
}

INLINED bool isAnyWord(const Token *T, unsigned Sets) {
  return (T->Sets & Sets) != 0;
}

/// Reads the tokens of the first statement. Returns SQLITE_OK or SQLITE_NOMEM.
int tokenize(const char *SQL, Statement *S);

/// True if a token may be a name.
bool isNameToken(const Token *T);
/// Copies a name without its quotes. Returns false if it is too long.
bool copyName(const Token *T, char *To, int Size);
/// True if two tokens are the same name, in any case and with any quotes.
bool isSameName(const Token *A, const Token *B);

/// Adds a byte to a hash (FNV-1a).
uint32_t hashByte(uint32_t Hash, unsigned char Byte);

/// Returns a vector with room for one more element. Capacities are powers of
/// two.
void *grow(void *Vector, int Size, size_t Element);

#endif // MLBRIDGE_SQLITE_TOKENS_H
