//===- Rewrite.h - Selectivities from a model ------------------- -*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An Advisor asks a model for the selectivities of a statement's terms.
/// rewrite() passes them to SQLite's planner with likelihood().
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_SQLITE_REWRITE_H
#define MLBRIDGE_SQLITE_REWRITE_H

#include <stdbool.h>

typedef struct sqlite3 sqlite3;

/// The model of one connection. Use it in one thread at a time.
typedef struct Advisor Advisor;

/// Creates an advisor for a model spec. Returns null if memory runs out. A spec
/// that cannot be used is reported like a model that fails.
Advisor *createAdvisor(const char *Spec);
void disposeAdvisor(void *Advisor);

/// Returns the statement with the model's selectivities, or null to leave the
/// statement as it is. If Explains, returns a description of the terms, or of
/// the reason why the statement is left as it is. The text after the first
/// statement of SQL is unchanged. Free the result with sqlite3_free().
char *rewrite(sqlite3 *DB, Advisor *By, const char *SQL, bool Explains);

/// NOLINTBEGIN(readability-identifier-naming)
struct sqlite3_api_routines;

/// Adds the extension's functions to a connection. Returns a status. SQLite
/// calls this function when it loads the extension, and derives the function's
/// name from the name of the file.
int sqlite3_mlbridgesqlite_init(sqlite3 *DB, char **Error,
                                const struct sqlite3_api_routines *Routines);
/// NOLINTEND(readability-identifier-naming)

#endif // MLBRIDGE_SQLITE_REWRITE_H
