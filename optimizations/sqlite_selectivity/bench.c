// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Runs queries with one build of SQLite, and measures them. measure.py
/// compiles this file with each build, and calls it.

#include "MLBridgeSQLite.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static double now(clockid_t Clock) {
  struct timespec Time;
  clock_gettime(Clock, &Time);
  return (double)Time.tv_sec + 1e-9 * (double)Time.tv_nsec;
}

/// The time at which a query must end.
static double Deadline;

static int isLate(void *Unused) {
  (void)Unused;
  return now(CLOCK_MONOTONIC) > Deadline;
}

EXPORTED const char *benchVersion(void) {
  return sqlite3_compileoption_used("ENABLE_STAT4") ? SQLITE_VERSION " STAT4"
                                                    : SQLITE_VERSION;
}

/// Opens a database, and loads the extension unless it is null. Returns null
/// after an error, which is printed.
EXPORTED sqlite3 *benchOpen(const char *File, const char *Extension) {
  sqlite3 *DB = NULL;
  char *Error = NULL;
  int Status = sqlite3_open(File, &DB);
  if (Status == SQLITE_OK && Extension) {
    sqlite3_enable_load_extension(DB, 1);
    Status = sqlite3_load_extension(DB, Extension, NULL, &Error);
  }
  if (Status == SQLITE_OK) // a query may be a DELETE
    Status = sqlite3_exec(DB, "pragma query_only = 1", NULL, NULL, &Error);
  if (Status == SQLITE_OK) {
    sqlite3_progress_handler(DB, 10000, isLate, NULL);
    return DB;
  }
  fprintf(stderr, "%s: %s\n", File, Error ? Error : sqlite3_errmsg(DB));
  sqlite3_close(DB);
  return NULL;
}

EXPORTED void benchClose(sqlite3 *DB) { sqlite3_close(DB); }

/// Writes a row. A float has 9 digits, because the order of additions may
/// differ.
static void writeRow(sqlite3_str *To, sqlite3_stmt *Statement) {
  for (int I = 0; I != sqlite3_column_count(Statement); ++I) {
    if (sqlite3_column_type(Statement, I) == SQLITE_FLOAT)
      sqlite3_str_appendf(To, "%.9g|", sqlite3_column_double(Statement, I));
    else
      sqlite3_str_appendf(To, "%s|", sqlite3_column_text(Statement, I));
  }
  sqlite3_str_append(To, "\n", 1);
}

/// Runs a query to its end, with the model if IsLearned. Returns the seconds
/// that the query takes, or -1 after an error or a time limit. If IsCold, the
/// seconds are the elapsed time, which includes waiting for the disk. Otherwise
/// they are the thread's CPU time, which other processes do not affect. Rows,
/// if not null, receives the rows, which benchFree() frees. Preparing receives
/// the seconds of the preparation.
EXPORTED double benchRun(sqlite3 *DB, const char *SQL, int IsLearned,
                         int IsCold, double Limit, double *Preparing,
                         char **Rows) {
  sqlite3_stmt *Statement = NULL;
  const clockid_t Clock = IsCold ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  const double Start = now(Clock);
  Deadline = now(CLOCK_MONOTONIC) + Limit;
  int Status = IsLearned
                   ? mlbridgeSqlitePrepare(DB, SQL, -1, 0, &Statement, NULL)
                   : sqlite3_prepare_v3(DB, SQL, -1, 0, &Statement, NULL);
  *Preparing = now(Clock) - Start;
  if (Status != SQLITE_OK)
    return -1;
  sqlite3_str *const To = Rows ? sqlite3_str_new(DB) : NULL;
  while ((Status = sqlite3_step(Statement)) == SQLITE_ROW)
    if (To)
      writeRow(To, Statement);
  sqlite3_finalize(Statement);
  const double Seconds = now(Clock) - Start;
  if (Rows)
    *Rows = sqlite3_str_finish(To);
  return Status == SQLITE_DONE ? Seconds : -1;
}

EXPORTED void benchFree(void *Memory) { sqlite3_free(Memory); }

/// Removes a file from the system's cache.
EXPORTED int benchForget(const char *File) {
  const int Descriptor = open(File, O_RDONLY);
  if (Descriptor < 0)
    return -1;
  fdatasync(Descriptor);
  const int Status = posix_fadvise(Descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(Descriptor);
  return Status;
}
