/*===- product.c - Matrix products --------------------------------*- C -*-===*\
|*                                                                            *|
|* Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM        *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*!
 * \file
 * Matrix products with vectors of WIDTH floats. The code reads the weights once
 * and in order, and keeps all sums in registers. The generated file has a copy
 * of the following code for each WIDTH.
 */

typedef float mlb_vec_WIDTH __attribute__((vector_size(4 * WIDTH)));
/* A vector that may have any address. */
typedef float mlb_load_WIDTH
    __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

/* Computes rows x (WIDTH * vecs) elements of out[m][n] = a[m][k] b[k][n]. */
MLB_INLINE void mlb_tile_WIDTH(const float *a, const float *b, float *out,
                               int64_t n, int64_t k, const int rows,
                               const int vecs) {
  mlb_vec_WIDTH sum[4][8];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vecs; ++v)
      sum[r][v] = (mlb_vec_WIDTH){0};
  for (int64_t i = 0; i < k; ++i)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vecs; ++v)
        sum[r][v] +=
            a[r * k + i] * *(const mlb_load_WIDTH *)(b + i * n + WIDTH * v);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vecs; ++v)
      *(mlb_load_WIDTH *)(out + r * n + WIDTH * v) = sum[r][v];
}

/* Computes one row of out[m][n] for n < WIDTH. A row of b is read as a whole
 * vector, unless the vector would exceed the end of b. */
MLB_INLINE void mlb_narrow_WIDTH(const float *a, const float *b, float *out,
                                 int64_t n, int64_t k) {
  const int64_t whole = (k * n - WIDTH) / n + 1;
  const int64_t end = k * n < WIDTH ? 0 : whole;
  mlb_vec_WIDTH sum = {0}, odd = {0};
  int64_t i = 0;
  for (; i + 1 < end; i += 2) {
    sum += a[i] * *(const mlb_load_WIDTH *)(b + i * n);
    odd += a[i + 1] * *(const mlb_load_WIDTH *)(b + (i + 1) * n);
  }
  for (; i < k; ++i) {
    mlb_vec_WIDTH row = {0};
    __builtin_memcpy(&row, b + i * n, 4 * (size_t)n);
    sum += a[i] * row;
  }
  sum += odd;
  __builtin_memcpy(out, &sum, 4 * (size_t)n);
}

/* Returns the dot product of two vectors. */
MLB_INLINE float mlb_dot_WIDTH(const float *a, const float *b, int64_t k) {
  mlb_vec_WIDTH sum[4] = {{0}, {0}, {0}, {0}};
  int64_t i = 0;
  for (; i + 4 * WIDTH <= k; i += 4 * WIDTH)
    for (int v = 0; v < 4; ++v)
      sum[v] += *(const mlb_load_WIDTH *)(a + i + WIDTH * v) *
                *(const mlb_load_WIDTH *)(b + i + WIDTH * v);
  for (; i + WIDTH <= k; i += WIDTH)
    sum[0] +=
        *(const mlb_load_WIDTH *)(a + i) * *(const mlb_load_WIDTH *)(b + i);
  sum[0] += sum[1] + (sum[2] + sum[3]);
  float total = 0;
  for (int v = 0; v < WIDTH; ++v)
    total += sum[0][v];
  for (; i < k; ++i)
    total += a[i] * b[i];
  return total;
}

/* Computes some rows of out[m][n] = a[m][k] b[k][n]. */
MLB_INLINE void mlb_rows_WIDTH(const float *a, const float *b, float *out,
                               int64_t n, int64_t k, const int rows) {
  /* The number of vectors of sums per row that fit in the registers. */
  const int most = rows == 1 ? 8 : 2;
  int64_t j = 0;
  for (; j + most * WIDTH <= n; j += most * WIDTH)
    mlb_tile_WIDTH(a, b + j, out + j, n, k, rows, most);
  if (rows == 1 && j + 4 * WIDTH <= n) {
    mlb_tile_WIDTH(a, b + j, out + j, n, k, rows, 4);
    j += 4 * WIDTH;
  }
  if (rows == 1 && j + 2 * WIDTH <= n) {
    mlb_tile_WIDTH(a, b + j, out + j, n, k, rows, 2);
    j += 2 * WIDTH;
  }
  if (j + WIDTH <= n) {
    mlb_tile_WIDTH(a, b + j, out + j, n, k, rows, 1);
    j += WIDTH;
  }
  /* Compute the last WIDTH columns, some of them for the second time. */
  if (j < n)
    mlb_tile_WIDTH(a, b + (n - WIDTH), out + (n - WIDTH), n, k, rows, 1);
}

MLB_INLINE void mlb_product_WIDTH(const float *a, const float *b, float *out,
                                  int64_t m, int64_t n, int64_t k) {
  int64_t i = 0;
  if (n == 1) {
    for (; i < m; ++i)
      out[i] = mlb_dot_WIDTH(a + i * k, b, k);
    return;
  }
  if (n < WIDTH) {
    for (; i < m; ++i)
      mlb_narrow_WIDTH(a + i * k, b, out + i * n, n, k);
    return;
  }
  for (; i + 4 <= m; i += 4)
    mlb_rows_WIDTH(a + i * k, b, out + i * n, n, k, 4);
  for (; i < m; ++i)
    mlb_rows_WIDTH(a + i * k, b, out + i * n, n, k, 1);
}
