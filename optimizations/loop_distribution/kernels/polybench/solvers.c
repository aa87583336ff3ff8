/* Solvers of systems of linear equations. A has a dominant diagonal. */
#include "polybench.h"

KERNEL(cholesky, "Cholesky's decomposition", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[j][k];
      A[i][j] /= A[j][j];
    }
    for (int k = 0; k < i; k++)
      A[i][i] -= A[i][k] * A[i][k];
    A[i][i] = sqrt(fabs(A[i][i]) + 1);
  }
  return 0;
}
KERNEL(lu, "decomposition into triangles", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[k][j];
      A[i][j] /= A[j][j];
    }
    for (int j = i; j < N; j++)
      for (int k = 0; k < i; k++)
        A[i][j] -= A[i][k] * A[k][j];
  }
  return 0;
}
KERNEL(ludcmp, "decomposition and substitution", cubic) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) {
      real sum = A[i][j];
      for (int k = 0; k < j; k++)
        sum -= A[i][k] * A[k][j];
      A[i][j] = sum / A[j][j];
    }
    for (int j = i; j < N; j++) {
      real sum = A[i][j];
      for (int k = 0; k < i; k++)
        sum -= A[i][k] * A[k][j];
      A[i][j] = sum;
    }
  }
  for (int i = 0; i < N; i++) {
    real sum = v[i];
    for (int j = 0; j < i; j++)
      sum -= A[i][j] * y[j];
    y[i] = sum;
  }
  for (int i = N - 1; i >= 0; i--) {
    real sum = y[i];
    for (int j = i + 1; j < N; j++)
      sum -= A[i][j] * x[j];
    x[i] = sum / A[i][i];
  }
  return 0;
}
KERNEL(trisolv, "substitution", square) {
  for (int i = 0; i < N; i++) {
    x[i] = v[i];
    for (int j = 0; j < i; j++)
      x[i] -= A[i][j] * x[j];
    x[i] /= A[i][i];
  }
  return 0;
}
KERNEL(durbin, "Levinson's recursion for a Toeplitz system", square) {
  y[0] = -v[0];
  real b = 1, a = -v[0];
  for (int k = 1; k < N; k++) {
    b = (1 - a * a) * b;
    real sum = 0;
    for (int i = 0; i < k; i++)
      sum += v[k - i - 1] * y[i];
    a = -(v[k] + sum) / (b + N);
    for (int i = 0; i < k; i++)
      z[i] = y[i] + a * y[k - i - 1];
    for (int i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = a;
  }
  return 0;
}
KERNEL(gramschmidt, "orthogonal columns", cubic) {
  for (int k = 0; k < N; k++) {
    real norm = 0;
    for (int i = 0; i < N; i++)
      norm += A[i][k] * A[i][k];
    B[k][k] = sqrt(norm) + 1;
    for (int i = 0; i < N; i++)
      C[i][k] = A[i][k] / B[k][k];
    for (int j = k + 1; j < N; j++) {
      B[k][j] = 0;
      for (int i = 0; i < N; i++)
        B[k][j] += C[i][k] * A[i][j];
      for (int i = 0; i < N; i++)
        A[i][j] -= C[i][k] * B[k][j];
    }
  }
  return 0;
}
