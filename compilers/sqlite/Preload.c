//===- Preload.c - Selectivities for unmodified programs ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A library for LD_PRELOAD. In a program that is linked with libsqlite3, all
/// connections then load the extension, which rewrites their statements:
///
///   LD_PRELOAD=mlbridge_sqlite_preload.so MLBRIDGE_SQLITE_MODEL=SPEC program
///
//===----------------------------------------------------------------------===//

#include "Rewrite.h"

#include <dlfcn.h>
#include <sqlite3.h>

/// SQLite's own sqlite3_prepare_v3(), which the function of this file calls.
static int (*Prepare)(sqlite3 *, const char *, int, unsigned, sqlite3_stmt **,
                      const char **);

#define sqlite3_prepare_v3 Prepare
#include "MLBridgeSQLite.h"
#undef sqlite3_prepare_v3

#define EXPORTED __attribute__((visibility("default")))

/// Looks up SQLite's own version of a function that this file replaces.
static void *real(const char *Name) { return dlsym(RTLD_NEXT, Name); }

static int loadInto(int Status, sqlite3 **DB) {
  if (Status == SQLITE_OK)
    sqlite3_mlbridgesqlite_init(*DB, NULL, NULL);
  return Status;
}

EXPORTED int sqlite3_open(const char *File, sqlite3 **DB) {
  int (*Open)(const char *, sqlite3 **);
  *(void **)&Open = real("sqlite3_open");
  return loadInto(Open(File, DB), DB);
}

EXPORTED int sqlite3_open_v2(const char *File, sqlite3 **DB, int Flags,
                             const char *System) {
  int (*Open)(const char *, sqlite3 **, int, const char *);
  *(void **)&Open = real("sqlite3_open_v2");
  return loadInto(Open(File, DB, Flags, System), DB);
}

__attribute__((constructor)) static void load(void) {
  *(void **)&Prepare = real("sqlite3_prepare_v3");
}

/// True if SQLite itself prepares the statement, to change or read the schema.
/// In this state, no other statement may be prepared.
static bool isInternal(const char *SQL, int Bytes) {
  const char Own[] = "sqlite_";
  if (!SQL)
    return true;
  const size_t Length = Bytes < 0 ? strlen(SQL) : strnlen(SQL, (size_t)Bytes);
  return memmem(SQL, Length, Own, strlen(Own)) != NULL;
}

EXPORTED int sqlite3_prepare_v3(sqlite3 *DB, const char *SQL, int Bytes,
                                unsigned Flags, sqlite3_stmt **Result,
                                const char **Tail) {
  if (isInternal(SQL, Bytes))
    return Prepare(DB, SQL, Bytes, Flags, Result, Tail);
  return mlbridgeSqlitePrepare(DB, SQL, Bytes, Flags, Result, Tail);
}

EXPORTED int sqlite3_prepare_v2(sqlite3 *DB, const char *SQL, int Bytes,
                                sqlite3_stmt **Result, const char **Tail) {
  return sqlite3_prepare_v3(DB, SQL, Bytes, 0, Result, Tail);
}
