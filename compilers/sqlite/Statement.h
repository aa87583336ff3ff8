//===- Statement.h - The terms of a SELECT statement ------------ -*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the terms of WHERE and ON whose selectivity a model can estimate, and
/// refuses statements whose result depends on the order of rows.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_SQLITE_STATEMENT_H
#define MLBRIDGE_SQLITE_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sqlite3 sqlite3;

typedef enum TokenKind {
  TokenWord,   // a keyword or a name
  TokenName,   // a keyword of SQLite that is a name here
  TokenQuoted, // "name", [name] or `name`
  TokenString,
  TokenBlob,
  TokenNumber,
  TokenParameter, // ?, ?1, :a, @a or $a
  TokenOperator,  // also parentheses, commas and dots
} TokenKind;

typedef struct Token {
  TokenKind Kind;
  const char *Text; // in the statement's text
  int Length;
  int Match;        // of a parenthesis: the index of the other one
  unsigned Sets;    // of words to which it belongs, see Tokens.h
  bool EndsOperand; // so that an operator, a keyword or an alias may follow
} Token;

/// How a term compares. The numbers are part of the model's features.
typedef enum TermOperator {
  OperatorOther,
  OperatorEqual,
  OperatorNotEqual,
  OperatorLess,
  OperatorLessEqual,
  OperatorGreater,
  OperatorGreaterEqual,
  OperatorBetween,
  OperatorNotBetween,
  OperatorIn,
  OperatorNotIn,
  OperatorLike,
  OperatorNotLike,
  OperatorGlob,
  OperatorNotGlob,
  OperatorIsNull,
  OperatorNotNull,
} TermOperator;

/// The operand with which the term compares.
typedef enum OperandKind {
  OperandNone,
  OperandNumber,
  OperandText,
  OperandList,   // Values[0] is the number of elements, which are of one kind
  OperandColumn, // the second column
} OperandKind;

/// The maximum number of elements of a list that are described.
enum { MaxLiterals = 8 };

/// A condition on the columns of one table. AND joins it to other conditions.
typedef struct Term {
  int Begin, End;      // tokens
  int Table;           // terms with the same number restrict the same table
  uint32_t Columns[2]; // hashes of "table.column" in lower case, or 0
  uint32_t Expression; // hash of the expression, 0 for a column alone
  TermOperator Operator;
  OperandKind Operand;
  double Values[4]; // two literals, with two numbers each: see setValue()
  uint32_t Literals[MaxLiterals]; // hashes of literals that must be equal
  int Text; // the token of a string that is compared, or -1
} Term;

typedef struct Statement {
  Token *Tokens;
  int NumTokens;
  Term *Terms;
  int NumTerms;
  const char *End;     // behind the statement and its semicolon
  const char *Refused; // why nothing may be changed, or null
} Statement;

/// Parses the first statement of SQL for a connection, whose tables it looks
/// up. Returns SQLITE_OK or SQLITE_NOMEM. Call freeStatement() in both cases.
int parseStatement(sqlite3 *DB, const char *SQL, Statement *Result);
void freeStatement(Statement *S);

/// Copies at most Size characters of a name or string, without its quotes.
/// Returns the number of copied characters.
int copyText(const Token *T, char *To, int Size);

/// Adds a text in lower case to a hash (FNV-1a), which begins with HashStart.
uint32_t hashText(uint32_t Hash, const char *Text, int Length);
static const uint32_t HashStart = 2166136261u;

#endif // MLBRIDGE_SQLITE_STATEMENT_H
