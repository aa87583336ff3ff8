/* Loops, each with its own difficulty for a distribution. The program prints a
 * hash for each loop. */
#include <stdint.h>
#include <stdio.h>

#define LONG 100
#define NOINLINE __attribute__((noinline))
typedef float *restrict array;

/* The second statement is a recurrence; the first one can be vectorized alone.
 */
NOINLINE void recurrence(array a, array b, array c, int n) {
  for (int i = 1; i < n; i++) {
    a[i] += c[i] * 0.5f;
    b[i] = b[i - 1] * 0.5f + a[i];
  }
}
/* The first statement reads b[i - 1], which the second one has written. */
NOINLINE void backward(array a, array b, array c, int n) {
  for (int i = 1; i < n - 1; i++) {
    a[i] = b[i - 1] + c[i];
    b[i] = b[i + 1] - c[i] * 0.5f;
  }
}
/* A recurrence in a register, whose value both statements need. */
NOINLINE void scalar(array a, array b, array c) {
  float s = 0;
  for (int i = 0; i < LONG; i++) {
    s = s * 0.5f + a[i];
    b[i] = s + 1;
    c[i] = s * a[i];
  }
}
/* t is stored, but the next iteration overwrites it. */
NOINLINE void overwritten(array a, array b, array c, int n) {
  for (int i = 1; i < n; i++) {
    float t = a[i] * 0.25f + c[i];
    b[i] = t;
    b[i - 1] = t * 0.5f;
    c[i] = t + a[i];
  }
}
/* The results of the loop are used after it. */
NOINLINE float result(array a, array b, int n) {
  float s = 0, last = 1;
  for (int i = 0; i < n; i++) {
    last = a[i] * 0.5f;
    s += last;
    b[i] = last + 1;
  }
  return s + last;
}
/* The arrays may overlap. */
NOINLINE void aliased(float *a, float *b, float *c, int n) {
  for (int i = 1; i < n; i++) {
    a[i] = c[i] * 0.5f;
    b[i] = b[i - 1] * 0.5f + c[i];
  }
}
NOINLINE void conditional(array a, array b, array c, int n) {
  for (int i = 1; i < n; i++) {
    if (c[i] > 0.5f)
      a[i] = c[i] * 0.5f;
    b[i] = b[i - 1] * 0.5f + c[i];
  }
}

static float data[4][LONG];
static float *fill(int row) {
  for (int i = 0; i < LONG; i++)
    data[row][i] = (float)((i * 37 + row * 11) % 64) / 64;
  return data[row];
}
static void show(const char *name, float value) {
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < sizeof data; ++i)
    h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  printf("%s %a %016llx\n", name, value, (unsigned long long)h);
}

int main(void) {
  static const int sizes[] = {0, 1, 2, 3, 17, 32, LONG};
  for (unsigned run = 0; run < sizeof sizes / sizeof *sizes; ++run) {
    int n = sizes[run];
    float *a = fill(0), *b = fill(1), *c = fill(2);
    recurrence(a, b, c, n);
    show("recurrence", 0);
    backward(a, b, c, n);
    show("backward", 0);
    scalar(a, b, c);
    show("scalar", 0);
    overwritten(a, b, c, n);
    show("overwritten", 0);
    show("result", result(a, b, n));
    aliased(a, b, c, n);
    aliased(a, a + 1, c, n > 0 ? n - 1 : 0);
    aliased(a + 1, a, a + 2, n > 2 ? n - 2 : 0);
    show("aliased", 0);
    conditional(a, b, c, n);
    show("conditional", 0);
  }
  return 0;
}
