/* The data of the kernels modelled on TSVC: arrays of N elements and matrices of M rows
   and M columns, with N = M * M. __init__.py makes a source file from this header and
   each KERNEL, so that each kernel has its own object. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifndef M
#define M 32
#endif
#define N (M * M)

/* The type of the elements. With INTEGER, it is an unsigned integer. */
#ifndef REAL
#define REAL float
#endif
typedef REAL real;
typedef real vector[N];
typedef real matrix[M][M];

extern _Alignas(64) vector a, b, c, d, e, x, y;
extern _Alignas(64) matrix aa, bb, cc;
extern _Alignas(64) real flat[2 * N];
extern int ip[N];
/* Values that the compiler must not know: n1 == 1, n3 == 1, n is odd. */
extern int n1, n3, k;
extern real s1, s2, t;

#define KERNEL(name, exercises) __attribute__((noinline)) real name(void)
