/* Stencils: each element becomes a function of its neighbours, in two steps. */
#include "polybench.h"

#define STEPS 2

KERNEL(jacobi_1d, "three points of a vector", linear) {
  for (int step = 0; step < STEPS; step++) {
    for (int i = 1; i < N - 1; i++)
      v[i] = 0.33333 * (u[i - 1] + u[i] + u[i + 1]);
    for (int i = 1; i < N - 1; i++)
      u[i] = 0.33333 * (v[i - 1] + v[i] + v[i + 1]);
  }
  return 0;
}
KERNEL(jacobi_2d, "five points of a matrix", square) {
  for (int step = 0; step < STEPS; step++) {
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        A[i][j] = 0.2 * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
  }
  return 0;
}
KERNEL(seidel_2d, "nine points in place", square) {
  for (int step = 0; step < STEPS; step++)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] +
                   A[i][j + 1] + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) /
                  9;
  return 0;
}
KERNEL(fdtd_2d, "electric and magnetic fields", square) {
  for (int step = 0; step < STEPS; step++) {
    for (int j = 0; j < N; j++)
      B[0][j] = u[step];
    for (int i = 1; i < N; i++)
      for (int j = 0; j < N; j++)
        B[i][j] -= 0.5 * (C[i][j] - C[i - 1][j]);
    for (int i = 0; i < N; i++)
      for (int j = 1; j < N; j++)
        A[i][j] -= 0.5 * (C[i][j] - C[i][j - 1]);
    for (int i = 0; i < N - 1; i++)
      for (int j = 0; j < N - 1; j++)
        C[i][j] -= 0.7 * (A[i][j + 1] - A[i][j] + B[i + 1][j] - B[i][j]);
  }
  return 0;
}
KERNEL(heat_3d, "seven points of a cube", cube) {
  for (int step = 0; step < STEPS; step++)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        for (int k = 1; k < N - 1; k++)
          Q[i][j][k] = 0.125 * (P[i + 1][j][k] - 2 * P[i][j][k] + P[i - 1][j][k]) +
                       0.125 * (P[i][j + 1][k] - 2 * P[i][j][k] + P[i][j - 1][k]) +
                       0.125 * (P[i][j][k + 1] - 2 * P[i][j][k] + P[i][j][k - 1]) + P[i][j][k];
  return 0;
}
KERNEL(adi, "alternating directions", square) {
  for (int step = 0; step < STEPS; step++) {
    for (int i = 1; i < N - 1; i++) {
      B[0][i] = 1;
      C[i][0] = 0;
      D[i][0] = B[0][i];
      for (int j = 1; j < N - 1; j++) {
        C[i][j] = -0.2 / (0.3 * C[i][j - 1] + 1.5);
        D[i][j] = (0.1 * A[j][i - 1] + 0.8 * A[j][i] + 0.1 * A[j][i + 1] - 0.3 * D[i][j - 1]) /
                  (0.3 * C[i][j - 1] + 1.5);
      }
      B[N - 1][i] = 1;
      for (int j = N - 2; j >= 1; j--)
        B[j][i] = C[i][j] * B[j + 1][i] + D[i][j];
    }
    for (int i = 1; i < N - 1; i++) {
      A[i][0] = 1;
      C[i][0] = 0;
      D[i][0] = A[i][0];
      for (int j = 1; j < N - 1; j++) {
        C[i][j] = -0.2 / (0.3 * C[i][j - 1] + 1.5);
        D[i][j] = (0.1 * B[i - 1][j] + 0.8 * B[i][j] + 0.1 * B[i + 1][j] - 0.3 * D[i][j - 1]) /
                  (0.3 * C[i][j - 1] + 1.5);
      }
      A[i][N - 1] = 1;
      for (int j = N - 2; j >= 1; j--)
        A[i][j] = C[i][j] * A[i][j + 1] + D[i][j];
    }
  }
  return 0;
}
