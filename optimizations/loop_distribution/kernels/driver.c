/* Checks and times variants of one kernel, which are linked with this file.

     driver check              prints a hash of all data after each variant
     driver time ROUNDS NS     prints a line for each round, with the time of one
                               call of each variant in nanoseconds; in a round, each
                               variant runs for about NS nanoseconds

   The variants run alternately, so that other load affects all of them equally. The
   order changes from round to round. */
#include DATA

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

typedef real function(void);
#define VARIANT(number) extern function kernel_##number;
#include "variants.h"
#undef VARIANT
#define VARIANT(number) kernel_##number,
static function *const variants[] = {
#include "variants.h"
};
enum { COUNT = sizeof variants / sizeof *variants };

static uint64_t state;
static real draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
#ifdef INTEGER
  return (real)(state >> 40);
#else
  return (real)(state >> 40) / (real)(1 << 24);
#endif
}
static void fill(void *at, size_t bytes) {
  real *values = at;
  for (size_t i = 0; i < bytes / sizeof(real); ++i)
    values[i] = draw();
}
static void hash(uint64_t *into, const void *at, size_t bytes) {
  const unsigned char *p = at;
  for (size_t i = 0; i < bytes; ++i)
    *into = (*into ^ p[i]) * 1099511628211u;
}

#ifdef TSVC
_Alignas(64) vector a, b, c, d, e, x, y;
_Alignas(64) matrix aa, bb, cc;
_Alignas(64) real flat[2 * N];
int ip[N];
#define LARGEST aa
int n1 = 1, n3 = 1, k = 1;
#ifdef INTEGER
real s1 = 5, s2 = 3, t = 100;
#else
real s1 = (real)0.5, s2 = (real)0.25, t = (real)0.4;
#endif
#define EACH(f)                                                                         \
  f(a) f(b) f(c) f(d) f(e) f(x) f(y) f(aa) f(bb) f(cc) f(flat)
static void prepare(void) {
  /* A permutation, so that a scatter writes each element once. */
  for (int i = 0; i < N; ++i)
    ip[i] = i;
  for (int i = N - 1; i > 0; --i) {
    draw();
    int j = (int)((state >> 40) % (uint64_t)i), swapped = ip[i];
    ip[i] = ip[j];
    ip[j] = swapped;
  }
}
#else
_Alignas(64) real A[ROWS][N], B[ROWS][N], C[ROWS][N], D[ROWS][N], E[ROWS][N];
_Alignas(64) real F[ROWS][N], G[ROWS][N], P[PLANES][ROWS][N], Q[PLANES][ROWS][N];
_Alignas(64) real u[N], v[N], w[N], x[N], y[N], z[N];
_Alignas(64) int table[ROWS][N], base[N];
#define LARGEST A
real alpha = 0.5, beta = 0.25;
#define EACH(f)                                                                         \
  f(A) f(B) f(C) f(D) f(E) f(F) f(G) f(P) f(Q) f(u) f(v) f(w) f(x) f(y) f(z)
static void prepare(void) {
  for (int i = 0; i < ROWS; ++i) {
    A[i][i % N] += N;
    for (int j = 0; j < N; ++j)
      table[i][j] = (int)(draw() * 100);
  }
  for (int j = 0; j < N; ++j)
    base[j] = (int)(draw() * 4);
}
#endif

static void reset(void) {
  state = 1;
#define FILL(array) fill(array, sizeof array);
  EACH(FILL)
  prepare();
}

static uint64_t after(real result) {
  uint64_t h = 1469598103934665603u;
#define HASH(array) hash(&h, array, sizeof array);
  EACH(HASH)
#ifndef TSVC
  hash(&h, table, sizeof table);
#endif
  hash(&h, &result, sizeof result);
  return h;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double nanoseconds(function *f, long calls) {
  f();
  const double begin = now();
  for (long i = 0; i < calls; ++i)
    f();
  return (now() - begin) / (double)calls;
}

int main(int count, char **words) {
#ifdef __SSE__
  /* Denormal numbers would take more time than the loops. */
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  if (count == 2 && !strcmp(words[1], "check")) {
    for (int i = 0; i < COUNT; ++i) {
      reset();
      const real first = variants[i](), second = variants[i]();
      printf("%d %016llx\n", i, (unsigned long long)after(first + second));
    }
    return 0;
  }
  if (count != 4 || strcmp(words[1], "time")) {
    fprintf(stderr, "usage: %s check | time ROUNDS NS\n", words[0]);
    return 2;
  }
  const int rounds = atoi(words[2]);
  const double wanted = atof(words[3]);
  reset();
  const double single = nanoseconds(variants[0], 1);
  const long calls = single < wanted ? (long)(wanted / (single + 1)) + 1 : 1;
  for (int round = 0; round < rounds; ++round) {
    static double found[COUNT];
    for (int i = 0; i < COUNT; ++i) {
      const int at = (i + round) % COUNT;
      if (sizeof LARGEST < (1 << 20) || i == 0)
        reset();
      found[at] = nanoseconds(variants[at], calls);
    }
    for (int i = 0; i < COUNT; ++i)
      printf("%.1f%c", found[i], i + 1 < COUNT ? ' ' : '\n');
  }
  return 0;
}
