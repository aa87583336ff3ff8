/* Linear dependences, inductions, data flow and symbolic values. */
#include "tsvc.h"

KERNEL(s000, "no dependence") {
  for (int i = 0; i < N; i++)
    x[i] = y[i] + 1;
  return 0;
}
KERNEL(s111, "odd elements read even ones") {
  for (int i = 1; i < N; i += 2)
    a[i] = a[i - 1] + b[i];
  return 0;
}
KERNEL(s1111, "stores with stride 2, much arithmetic") {
  for (int i = 0; i < N / 2; i++)
    a[2 * i] = c[i] * b[i] + d[i] * b[i] + c[i] * c[i] + d[i] * b[i] + d[i] * c[i];
  return 0;
}
KERNEL(s112, "backward loop whose dependence allows vectors") {
  for (int i = N - 2; i >= 0; i--)
    a[i + 1] = a[i] + b[i];
  return 0;
}
KERNEL(s1112, "backward loop without dependence") {
  for (int i = N - 1; i >= 0; i--)
    a[i] = b[i] + (real)1;
  return 0;
}
KERNEL(s113, "a(1) is read, but never changed again") {
  for (int i = 1; i < N; i++)
    a[i] = a[0] + b[i];
  return 0;
}
KERNEL(s1113, "an element in the middle is read and overwritten") {
  for (int i = 0; i < N; i++)
    a[i] = a[N / 2] + b[i];
  return 0;
}
KERNEL(s114, "transposed triangle") {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < i; j++)
      aa[i][j] = aa[j][i] + bb[i][j];
  return 0;
}
KERNEL(s115, "triangular elimination") {
  for (int j = 0; j < M; j++)
    for (int i = j + 1; i < M; i++)
      a[i] -= aa[j][i] * a[j] * (real)0.001;
  return 0;
}
KERNEL(s1115, "a column beside rows") {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++)
      aa[i][j] = aa[i][j] * cc[j][i] * (real)0.5 + bb[i][j];
  return 0;
}
KERNEL(s116, "unrolled by hand, each element needs the next") {
  for (int i = 0; i < N - 5; i += 5) {
    a[i] = a[i + 1] * a[i];
    a[i + 1] = a[i + 2] * a[i + 1];
    a[i + 2] = a[i + 3] * a[i + 2];
    a[i + 3] = a[i + 4] * a[i + 3];
    a[i + 4] = a[i + 5] * a[i + 4];
  }
  return 0;
}
KERNEL(s118, "triangular recurrence, a dot product") {
  for (int i = 1; i < M; i++)
    for (int j = 0; j <= i - 1; j++)
      a[i] += bb[j][i] * a[i - j - 1] * (real)0.01;
  return 0;
}
KERNEL(s119, "dependence on the diagonal") {
  for (int i = 1; i < M; i++)
    for (int j = 1; j < M; j++)
      aa[i][j] = aa[i - 1][j - 1] + bb[i][j];
  return 0;
}
KERNEL(s1119, "dependence on the row above") {
  for (int i = 1; i < M; i++)
    for (int j = 0; j < M; j++)
      aa[i][j] = aa[i - 1][j] + bb[i][j];
  return 0;
}
KERNEL(s121, "induction variable one ahead") {
  for (int i = 0; i < N - 1; i++) {
    int j = i + 1;
    a[i] = a[j] + b[i];
  }
  return 0;
}
KERNEL(s122, "unknown bounds and stride, walks backward") {
  int j = 1, at = 0;
  for (int i = n1 - 1; i < N; i += n3) {
    at += j;
    a[i] += b[N - at];
  }
  return 0;
}
KERNEL(s123, "conditional induction") {
  int j = -1;
  for (int i = 0; i < N / 2; i++) {
    j++;
    a[j] = b[i] + d[i] * e[i];
    if (c[i] > (real)0.5) {
      j++;
      a[j] = c[i] + d[i] * e[i];
    }
  }
  return 0;
}
KERNEL(s124, "the same induction in both branches") {
  int j = -1;
  for (int i = 0; i < N; i++) {
    if (b[i] > (real)0.5) {
      j++;
      a[j] = b[i] + d[i] * e[i];
    } else {
      j++;
      a[j] = c[i] + d[i] * e[i];
    }
  }
  return 0;
}
KERNEL(s125, "a matrix is written as a vector") {
  int at = -1;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++) {
      at++;
      flat[at] = aa[i][j] + bb[i][j] * cc[i][j];
    }
  return 0;
}
KERNEL(s126, "recurrence down the columns, induction in the outer loop") {
  int at = 1;
  for (int i = 0; i < M; i++) {
    for (int j = 1; j < M; j++) {
      bb[j][i] = bb[j - 1][i] * (real)0.5 + flat[at - 1] * cc[j][i];
      ++at;
    }
    ++at;
  }
  return 0;
}
KERNEL(s127, "two stores in an iteration") {
  int j = -1;
  for (int i = 0; i < N / 2; i++) {
    j++;
    a[j] = b[i] + c[i] * d[i];
    j++;
    a[j] = b[i] + d[i] * e[i];
  }
  return 0;
}
KERNEL(s128, "two inductions that jump") {
  int j = -1;
  for (int i = 0; i < N / 2; i++) {
    int at = j + 1;
    a[i] = b[at] - d[i];
    j = at + 1;
    b[at] = a[i] + c[at];
  }
  return 0;
}
KERNEL(s131, "distance is a variable of value 1") {
  int m = 1;
  for (int i = 0; i < N - 1; i++)
    a[i] = a[i + m] + b[i];
  return 0;
}
KERNEL(s132, "rows chosen by variables") {
  int m = 0, j = m, at = m + 1;
  for (int i = 1; i < M; i++)
    aa[j][i] = aa[at][i - 1] + b[i] * c[1];
  return 0;
}
KERNEL(s141, "packed triangle of a symmetric matrix") {
  for (int i = 0; i < M; i++) {
    int at = (i + 1) * i / 2 + i;
    for (int j = i; j < M; j++) {
      flat[at] += bb[j][i];
      at += j + 1;
    }
  }
  return 0;
}
KERNEL(s151, "a function with an offset of 1") {
  int m = 1;
  for (int i = 0; i < N - 1; i++)
    a[i] = a[i + m] + b[i];
  return 0;
}
KERNEL(s152, "a statement in a called function") {
  for (int i = 0; i < N; i++) {
    b[i] = d[i] * e[i];
    a[i] += b[i] * c[i];
  }
  return 0;
}
KERNEL(s161, "branches whose stores reach the next iteration") {
  for (int i = 0; i < N - 1; ++i) {
    if (b[i] < (real)0.5)
      c[i + 1] = a[i] + d[i] * d[i];
    else
      a[i] = c[i] + d[i] * e[i];
  }
  return 0;
}
KERNEL(s1161, "branches without a dependence between them") {
  for (int i = 0; i < N - 1; ++i) {
    if (c[i] < (real)0.5)
      b[i] = a[i] + d[i] * d[i];
    else
      a[i] = c[i] + d[i] * e[i];
  }
  return 0;
}
KERNEL(s162, "distance is known to be positive") {
  if (k > 0)
    for (int i = 0; i < N - 1 - k; i++)
      a[i] = a[i + k] + b[i] * c[i];
  return 0;
}
KERNEL(s171, "unknown stride") {
  for (int i = 0; i < N; i++)
    a[i * n1] += b[i];
  return 0;
}
KERNEL(s172, "unknown begin and stride") {
  for (int i = n1 - 1; i < N; i += n3)
    a[i] += b[i];
  return 0;
}
KERNEL(s173, "the second half reads the first") {
  int half = N / 2;
  for (int i = 0; i < half; i++)
    a[i + half] = a[i] + b[i];
  return 0;
}
KERNEL(s174, "as s173, with an unknown half") {
  int half = n1 * (N / 2);
  for (int i = 0; i < half; i++)
    a[i + half] = a[i] + b[i];
  return 0;
}
KERNEL(s175, "unknown stride and offset") {
  int inc = n1;
  for (int i = 0; i < N - 1; i += inc)
    a[i] = a[i + inc] + b[i];
  return 0;
}
KERNEL(s176, "convolution") {
  int m = M;
  for (int j = 0; j < m / 2; j++)
    for (int i = 0; i < m; i++)
      a[i] += b[i + m - j - 1] * c[j] * (real)0.01;
  return 0;
}
