/* Reductions and recurrences. */
#include "tsvc.h"

KERNEL(s311, "sum") {
  real sum = 0;
  for (int i = 0; i < N; i++)
    sum += a[i];
  return sum;
}
KERNEL(s31111, "sum of short pieces") {
  real sum = 0;
  for (int piece = 0; piece < 8; piece++) {
    real part = 0;
    for (int i = 0; i < 4; i++)
      part += a[4 * piece + i];
    sum += part;
  }
  return sum;
}
KERNEL(s312, "product") {
  real product = 1;
  for (int i = 0; i < N; i++)
    product *= a[i] + (real)0.5;
  return product;
}
KERNEL(s313, "dot product") {
  real dot = 0;
  for (int i = 0; i < N; i++)
    dot += a[i] * b[i];
  return dot;
}
KERNEL(s314, "maximum") {
  real most = a[0];
  for (int i = 0; i < N; i++)
    if (a[i] > most)
      most = a[i];
  return most;
}
KERNEL(s315, "maximum and its index") {
  real most = a[0];
  int index = 0;
  for (int i = 0; i < N; ++i)
    if (a[i] > most) {
      most = a[i];
      index = i;
    }
  return most + (real)index;
}
KERNEL(s316, "minimum") {
  real least = a[0];
  for (int i = 1; i < N; ++i)
    if (a[i] < least)
      least = a[i];
  return least;
}
KERNEL(s317, "product of a constant") {
  real product = 1;
  for (int i = 0; i < N / 2; i++)
    product *= (real)0.99;
  return product;
}
KERNEL(s318, "largest magnitude with an unknown stride") {
  int at = 0, index = 0, inc = n1;
  real most = fabsf(a[0]);
  at += inc;
  for (int i = 1; i < N; i++) {
    if (fabsf(a[at]) > most) {
      index = i;
      most = fabsf(a[at]);
    }
    at += inc;
  }
  return most + (real)index;
}
KERNEL(s319, "two stores and their sum") {
  real sum = 0;
  for (int i = 0; i < N; i++) {
    a[i] = c[i] + d[i];
    sum += a[i];
    b[i] = c[i] + e[i];
    sum += b[i];
  }
  return sum;
}
KERNEL(s3110, "maximum of a matrix and its indices") {
  real most = aa[0][0];
  int row = 0, column = 0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++)
      if (aa[i][j] > most) {
        most = aa[i][j];
        row = i;
        column = j;
      }
  return most + (real)row + (real)column;
}
KERNEL(s13110, "maximum of a matrix by columns") {
  real most = aa[0][0];
  int row = 0, column = 0;
  for (int j = 0; j < M; j++)
    for (int i = 0; i < M; i++)
      if (aa[i][j] > most) {
        most = aa[i][j];
        row = i;
        column = j;
      }
  return most + (real)row + (real)column;
}
KERNEL(s3111, "conditional sum") {
  real sum = 0;
  for (int i = 0; i < N; i++)
    if (a[i] > (real)0.5)
      sum += a[i];
  return sum;
}
KERNEL(s3112, "running sum") {
  real sum = 0;
  for (int i = 0; i < N; i++) {
    sum += a[i];
    b[i] = sum;
  }
  return sum;
}
KERNEL(s3113, "largest magnitude") {
  real most = fabsf(a[0]);
  for (int i = 0; i < N; i++)
    if (fabsf(a[i]) > most)
      most = fabsf(a[i]);
  return most;
}
KERNEL(s321, "first-order recurrence") {
  for (int i = 1; i < N; i++)
    a[i] += a[i - 1] * b[i] * (real)0.5;
  return 0;
}
KERNEL(s322, "second-order recurrence") {
  for (int i = 2; i < N; i++)
    a[i] = a[i] + a[i - 1] * b[i] * (real)0.5 + a[i - 2] * c[i] * (real)0.25;
  return 0;
}
KERNEL(s323, "two coupled recurrences") {
  for (int i = 1; i < N; i++) {
    a[i] = b[i - 1] * (real)0.5 + c[i] * d[i];
    b[i] = a[i] + c[i] * e[i];
  }
  return 0;
}
KERNEL(s351, "unrolled by hand") {
  real alpha = c[0];
  for (int i = 0; i < N - 4; i += 5) {
    a[i] += alpha * b[i];
    a[i + 1] += alpha * b[i + 1];
    a[i + 2] += alpha * b[i + 2];
    a[i + 3] += alpha * b[i + 3];
    a[i + 4] += alpha * b[i + 4];
  }
  return 0;
}
KERNEL(s1351, "sum of two vectors by pointers") {
  real *restrict to = a, *restrict from = b, *restrict more = c;
  for (int i = 0; i < N; i++) {
    *to = *from + *more;
    to++;
    from++;
    more++;
  }
  return 0;
}
KERNEL(s352, "dot product, unrolled by hand") {
  real dot = 0;
  for (int i = 0; i < N - 4; i += 5)
    dot += a[i] * b[i] + a[i + 1] * b[i + 1] + a[i + 2] * b[i + 2] +
           a[i + 3] * b[i + 3] + a[i + 4] * b[i + 4];
  return dot;
}
KERNEL(s353, "gathers, unrolled by hand") {
  real alpha = c[0];
  for (int i = 0; i < N - 4; i += 5) {
    a[i] += alpha * b[ip[i]];
    a[i + 1] += alpha * b[ip[i + 1]];
    a[i + 2] += alpha * b[ip[i + 2]];
    a[i + 3] += alpha * b[ip[i + 3]];
    a[i + 4] += alpha * b[ip[i + 4]];
  }
  return 0;
}
KERNEL(vsumr, "sum, a control loop") {
  real sum = 0;
  for (int i = 0; i < N; i++)
    sum += b[i];
  return sum;
}
KERNEL(vdotr, "dot product, a control loop") {
  real dot = 0;
  for (int i = 0; i < N; i++)
    dot += b[i] * c[i];
  return dot;
}
