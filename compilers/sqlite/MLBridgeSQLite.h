//===- MLBridgeSQLite.h - Prepares with a model's selectivities - -*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// For C programs that use SQLite: call mlbridgeSqlitePrepare() instead of
/// sqlite3_prepare_v3(). The connection must have loaded the extension:
///
///   sqlite3_load_extension(DB, "mlbridge_sqlite", NULL, &Message);
///
/// The program needs no other library.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_SQLITE_H
#define MLBRIDGE_SQLITE_H

#include <sqlite3.h>
#include <string.h>

/// Prepares a statement as sqlite3_prepare_v3() does, with the same arguments
/// and results. If the connection has a model, SQLite plans with the model's
/// selectivities. sqlite3_sql() then returns the rewritten statement.
static inline int mlbridgeSqlitePrepare(sqlite3 *DB, const char *SQL, int Bytes,
                                        unsigned Flags, sqlite3_stmt **Result,
                                        const char **Tail) {
  sqlite3_stmt *Rewrite = NULL;
  const char *End;
  int Status = SQLITE_ERROR;
  if (SQL && sqlite3_prepare_v3(DB, "SELECT mlbridge_rewrite(?1)", -1, 0,
                                &Rewrite, NULL) == SQLITE_OK) {
    sqlite3_bind_text(Rewrite, 1, SQL, Bytes, SQLITE_STATIC);
    if (sqlite3_step(Rewrite) == SQLITE_ROW) {
      const char *const New = (const char *)sqlite3_column_text(Rewrite, 0);
      const char *const Nul =
          Bytes < 0 ? NULL : (const char *)memchr(SQL, 0, (size_t)Bytes);
      const size_t Length = Bytes < 0 ? strlen(SQL)
                            : Nul     ? (size_t)(Nul - SQL)
                                      : (size_t)Bytes;
      const int IsNew =
          New && (strlen(New) != Length || memcmp(New, SQL, Length) != 0);
      if (IsNew)
        Status = sqlite3_prepare_v3(DB, New, -1, Flags, Result, &End);
      // The text after the first statement is unchanged.
      if (IsNew && Status == SQLITE_OK && Tail)
        *Tail = SQL + Length - strlen(End);
    }
    sqlite3_finalize(Rewrite);
  }
  // Prepare the original if there is no extension or no advice, or if SQLite
  // refuses the new statement.
  if (Status != SQLITE_OK)
    Status = sqlite3_prepare_v3(DB, SQL, Bytes, Flags, Result, Tail);
  return Status;
}

#endif // MLBRIDGE_SQLITE_H
