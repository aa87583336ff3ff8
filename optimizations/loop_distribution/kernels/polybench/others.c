/* Statistics, filters, and dynamic programming. */
#include "polybench.h"

KERNEL(correlation, "correlations of columns", cubic) {
  for (int j = 0; j < N; j++) {
    u[j] = 0;
    for (int i = 0; i < N; i++)
      u[j] += A[i][j];
    u[j] /= N;
  }
  for (int j = 0; j < N; j++) {
    v[j] = 0;
    for (int i = 0; i < N; i++)
      v[j] += (A[i][j] - u[j]) * (A[i][j] - u[j]);
    v[j] = sqrt(v[j] / N);
    v[j] = v[j] <= 0.1 ? 1 : v[j];
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      A[i][j] -= u[j];
      A[i][j] /= sqrt((real)N) * v[j];
    }
  for (int i = 0; i < N - 1; i++) {
    B[i][i] = 1;
    for (int j = i + 1; j < N; j++) {
      B[i][j] = 0;
      for (int k = 0; k < N; k++)
        B[i][j] += A[k][i] * A[k][j];
      B[j][i] = B[i][j];
    }
  }
  return 0;
}
KERNEL(covariance, "covariances of columns", cubic) {
  for (int j = 0; j < N; j++) {
    u[j] = 0;
    for (int i = 0; i < N; i++)
      u[j] += A[i][j];
    u[j] /= N;
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      A[i][j] -= u[j];
  for (int i = 0; i < N; i++)
    for (int j = i; j < N; j++) {
      B[i][j] = 0;
      for (int k = 0; k < N; k++)
        B[i][j] += A[k][i] * A[k][j];
      B[i][j] /= N - 1;
      B[j][i] = B[i][j];
    }
  return 0;
}
KERNEL(deriche, "a recursive filter along rows and columns", square) {
  for (int i = 0; i < N; i++) {
    real before = 0, y1 = 0, y2 = 0;
    for (int j = 0; j < N; j++) {
      B[i][j] = 0.2 * A[i][j] + 0.1 * before + 0.6 * y1 - 0.1 * y2;
      before = A[i][j];
      y2 = y1;
      y1 = B[i][j];
    }
  }
  for (int i = 0; i < N; i++) {
    real x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (int j = N - 1; j >= 0; j--) {
      C[i][j] = 0.2 * x1 - 0.1 * x2 + 0.6 * y1 - 0.1 * y2;
      x2 = x1;
      x1 = A[i][j];
      y2 = y1;
      y1 = C[i][j];
    }
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      D[i][j] = B[i][j] + C[i][j];
  for (int j = 0; j < N; j++) {
    real before = 0, y1 = 0, y2 = 0;
    for (int i = 0; i < N; i++) {
      B[i][j] = 0.2 * D[i][j] + 0.1 * before + 0.6 * y1 - 0.1 * y2;
      before = D[i][j];
      y2 = y1;
      y1 = B[i][j];
    }
  }
  return 0;
}
KERNEL(floyd_warshall, "shortest paths", cubic) {
  for (int k = 0; k < N; k++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        table[i][j] = table[i][j] < table[i][k] + table[k][j] ? table[i][j]
                                                              : table[i][k] + table[k][j];
  return 0;
}
KERNEL(nussinov, "pairs of bases in a sequence", cubic) {
  for (int i = N - 1; i >= 0; i--)
    for (int j = i + 1; j < N; j++) {
      int best = table[i][j - 1];
      best = best > table[i + 1 < N ? i + 1 : i][j] ? best : table[i + 1 < N ? i + 1 : i][j];
      if (i + 1 < N) {
        int pair = table[i + 1][j - 1] + (i < j - 1 && base[i] + base[j] == 3);
        best = best > pair ? best : pair;
      }
      for (int k = i + 1; k < j; k++) {
        int split = table[i][k] + (k + 1 < N ? table[k + 1][j] : 0);
        best = best > split ? best : split;
      }
      table[i][j] = best;
    }
  return 0;
}
