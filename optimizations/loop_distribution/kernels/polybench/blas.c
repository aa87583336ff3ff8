/* Products of matrices and vectors. */
#include "polybench.h"

KERNEL(gemm, "C = alpha A B + beta C", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++)
      C[i][j] *= beta;
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
  }
  return 0;
}
KERNEL(two_mm, "D = alpha A B C + beta D", cubic) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      E[i][j] = 0;
      for (int k = 0; k < N; k++)
        E[i][j] += alpha * A[i][k] * B[k][j];
    }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      D[i][j] *= beta;
      for (int k = 0; k < N; k++)
        D[i][j] += E[i][k] * C[k][j];
    }
  return 0;
}
KERNEL(three_mm, "G = (A B) (C D)", cubic) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      E[i][j] = 0;
      for (int k = 0; k < N; k++)
        E[i][j] += A[i][k] * B[k][j];
    }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      F[i][j] = 0;
      for (int k = 0; k < N; k++)
        F[i][j] += C[i][k] * D[k][j];
    }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      G[i][j] = 0;
      for (int k = 0; k < N; k++)
        G[i][j] += E[i][k] * F[k][j];
    }
  return 0;
}
KERNEL(atax, "y = transposed A (A x)", square) {
  for (int i = 0; i < N; i++)
    y[i] = 0;
  for (int i = 0; i < N; i++) {
    u[i] = 0;
    for (int j = 0; j < N; j++)
      u[i] += A[i][j] * x[j];
    for (int j = 0; j < N; j++)
      y[j] += A[i][j] * u[i];
  }
  return 0;
}
KERNEL(bicg, "v = transposed A u, w = A x", square) {
  for (int i = 0; i < N; i++)
    v[i] = 0;
  for (int i = 0; i < N; i++) {
    w[i] = 0;
    for (int j = 0; j < N; j++) {
      v[j] += u[i] * A[i][j];
      w[i] += A[i][j] * x[j];
    }
  }
  return 0;
}
KERNEL(mvt, "x += A u, y += transposed A v", square) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      x[i] += A[i][j] * u[j];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      y[i] += A[j][i] * v[j];
  return 0;
}
KERNEL(gemver, "two outer products and two products with vectors", square) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      A[i][j] += u[i] * v[j] + w[i] * z[j];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      x[i] += beta * A[j][i] * y[j];
  for (int i = 0; i < N; i++)
    x[i] += z[i];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      w[i] += alpha * A[i][j] * x[j];
  return 0;
}
KERNEL(gesummv, "y = alpha A x + beta B x", square) {
  for (int i = 0; i < N; i++) {
    u[i] = 0;
    y[i] = 0;
    for (int j = 0; j < N; j++) {
      u[i] += A[i][j] * x[j];
      y[i] += B[i][j] * x[j];
    }
    y[i] = alpha * u[i] + beta * y[i];
  }
  return 0;
}
KERNEL(symm, "C = alpha A B + beta C, A is symmetric", cubic) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      real sum = 0;
      for (int k = 0; k < i; k++) {
        C[k][j] += alpha * B[i][j] * A[i][k];
        sum += B[k][j] * A[i][k];
      }
      C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * sum;
    }
  return 0;
}
KERNEL(syrk, "C = alpha A transposed A + beta C, a triangle", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++)
      C[i][j] *= beta;
    for (int k = 0; k < N; k++)
      for (int j = 0; j <= i; j++)
        C[i][j] += alpha * A[i][k] * A[j][k];
  }
  return 0;
}
KERNEL(syr2k, "C = alpha (A transposed B + B transposed A) + beta C", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++)
      C[i][j] *= beta;
    for (int k = 0; k < N; k++)
      for (int j = 0; j <= i; j++)
        C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
  }
  return 0;
}
KERNEL(trmm, "B = alpha transposed A B, A is a triangle", cubic) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      for (int k = i + 1; k < N; k++)
        B[i][j] += A[k][i] * B[k][j];
      B[i][j] *= alpha;
    }
  return 0;
}
KERNEL(doitgen, "a product in each plane", cubic) {
  for (int r = 0; r < N; r++) {
    for (int p = 0; p < N; p++) {
      u[p] = 0;
      for (int s = 0; s < N; s++)
        u[p] += B[r][s] * C[s][p];
    }
    for (int p = 0; p < N; p++)
      B[r][p] = u[p];
  }
  return 0;
}
