//===- Extension.c - A loadable extension of SQLite -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds functions to a connection of stock SQLite:
///
///   mlbridge_model(spec)   asks this model from now on, and returns the spec
///   mlbridge_rewrite(sql)  returns the statement with selectivities
///   mlbridge_terms(sql)    describes the terms, one in a line
///
/// The environment variable MLBRIDGE_SQLITE_MODEL contains the first spec.
///
//===----------------------------------------------------------------------===//

#include "Rewrite.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <stdlib.h>

/// The state that the functions of one connection share.
typedef struct Connection {
  Advisor *Model; // or null
  int References; // functions that use the state
} Connection;

static void disposeConnection(void *Pointer) {
  Connection *const C = Pointer;
  if (--C->References != 0)
    return;
  disposeAdvisor(C->Model);
  sqlite3_free(C);
}

static void model(sqlite3_context *Context, int Count, sqlite3_value **Given) {
  (void)Count;
  Connection *const C = sqlite3_user_data(Context);
  const char *const Spec = (const char *)sqlite3_value_text(Given[0]);
  // A spec can load a library, so it needs the permission that
  // load_extension() needs.
  int MayLoad = 0;
  sqlite3_db_config(sqlite3_context_db_handle(Context),
                    SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, -1, &MayLoad);
  if (!MayLoad) {
    sqlite3_result_error(
        Context,
        "mlbridge_model: this connection may not load extensions; call "
        "sqlite3_enable_load_extension() or set MLBRIDGE_SQLITE_MODEL",
        -1);
    return;
  }
  Advisor *const New = Spec ? createAdvisor(Spec) : NULL;
  if (Spec && !New) {
    sqlite3_result_error_nomem(Context);
    return;
  }
  disposeAdvisor(C->Model);
  C->Model = New;
  sqlite3_result_value(Context, Given[0]);
}

static void answer(sqlite3_context *Context, sqlite3_value *Given,
                   bool Explains) {
  const Connection *const C = sqlite3_user_data(Context);
  const char *const SQL = (const char *)sqlite3_value_text(Given);
  sqlite3 *const DB = sqlite3_context_db_handle(Context);
  char *const New =
      SQL && C->Model ? rewrite(DB, C->Model, SQL, Explains) : NULL;
  if (New)
    sqlite3_result_text(Context, New, -1, sqlite3_free);
  else if (Explains)
    sqlite3_result_null(Context);
  else
    sqlite3_result_value(Context, Given);
}

static void rewritten(sqlite3_context *Context, int Count,
                      sqlite3_value **Given) {
  (void)Count;
  answer(Context, Given[0], false);
}

static void terms(sqlite3_context *Context, int Count, sqlite3_value **Given) {
  (void)Count;
  answer(Context, Given[0], true);
}

__attribute__((visibility("default"))) int
sqlite3_mlbridgesqlite_init(sqlite3 *DB, char **Error,
                            const sqlite3_api_routines *Routines) {
  SQLITE_EXTENSION_INIT2(Routines)
  const int Needed = 3024000; // an older SQLite has no sqlite3_str_new()
  if (sqlite3_libversion_number() < Needed) {
    if (Error)
      *Error = sqlite3_mprintf(
          "mlbridge_sqlite: expected SQLite 3.24 or newer, found %s",
          sqlite3_libversion());
    return SQLITE_ERROR;
  }
  Connection *const C = sqlite3_malloc(sizeof *C);
  if (!C)
    return SQLITE_NOMEM;
  const char *const Spec = getenv("MLBRIDGE_SQLITE_MODEL");
  C->Model = Spec && *Spec ? createAdvisor(Spec) : NULL;
  C->References = 1; // this function
  const struct {
    const char *Name;
    void (*Call)(sqlite3_context *, int, sqlite3_value **);
  } Functions[] = {{"mlbridge_model", model},
                   {"mlbridge_rewrite", rewritten},
                   {"mlbridge_terms", terms}};
  int Status = SQLITE_OK;
  const size_t Count = sizeof Functions / sizeof *Functions;
  for (size_t I = 0; I != Count && Status == SQLITE_OK; ++I) {
    // SQLite calls disposeConnection() when it removes the function, or if it
    // cannot add the function.
    ++C->References;
    Status = sqlite3_create_function_v2(
        DB, Functions[I].Name, 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, C,
        Functions[I].Call, NULL, NULL, disposeConnection);
  }
  disposeConnection(C);
  return Status;
}
