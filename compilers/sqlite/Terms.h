//===- Terms.h - The terms of one SELECT ------------------------ -*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Looks up the columns of a SELECT, and describes the terms of its conditions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_SQLITE_TERMS_H
#define MLBRIDGE_SQLITE_TERMS_H

#include "Tokens.h"

enum { MaxSources = 64 };

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

/// Leaves the statement as it is. The first reason counts.
void refuse(Parser *P, const char *Why);

/// A reference to a column: a name, with a table and a schema before it.
typedef struct Reference {
  int Begin, End; // tokens
} Reference;

/// Finds the next reference in the tokens from I on. Returns false at the end.
bool nextReference(const Statement *S, int I, int End, Reference *Result);

/// True if the tokens are one reference.
bool isReference(const Statement *S, int Begin, int End);

/// True if the columns of a source are known.
bool isTable(const Parser *P, const Source *From);
/// Returns the index of the source whose column Name refers to, or -1.
int resolve(Parser *P, const Scope *Where, Reference Name, uint32_t *Hash);
/// Looks up all columns in some tokens.
void resolveAll(Parser *P, const Scope *Where, int Begin, int End);

/// Adds the terms of a condition.
void addTerms(Parser *P, const Scope *Where, int Begin, int End);

#endif // MLBRIDGE_SQLITE_TERMS_H
