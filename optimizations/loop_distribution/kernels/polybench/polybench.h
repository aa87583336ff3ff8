/* The data of the kernels, which were written from the definitions of PolyBench's
   problems: matrices of N rows and N columns, and vectors of N elements. __init__.py
   makes a source file from this header and each KERNEL, so that each kernel has its own
   object. The third argument of KERNEL states how the work grows with the data. */
#include <math.h>
#include <stddef.h>

#ifndef N
#define N 24
#endif
#ifdef LINEAR
#define ROWS 1
#else
#define ROWS N
#endif
#ifdef CUBE
#define PLANES N
#else
#define PLANES 1
#endif

typedef double real;
extern _Alignas(64) real A[ROWS][N], B[ROWS][N], C[ROWS][N], D[ROWS][N], E[ROWS][N];
extern _Alignas(64) real F[ROWS][N], G[ROWS][N];
extern _Alignas(64) real P[PLANES][ROWS][N], Q[PLANES][ROWS][N];
extern _Alignas(64) real u[N], v[N], w[N], x[N], y[N], z[N];
extern _Alignas(64) int table[ROWS][N], base[N];
extern real alpha, beta;

#define KERNEL(name, exercises, work) __attribute__((noinline)) real name(void)
