/* Reordering of statements, distribution, interchange, node splitting and expansion. */
#include "tsvc.h"

KERNEL(s211, "vectors need the other order of statements") {
  for (int i = 1; i < N - 1; i++) {
    a[i] = b[i - 1] + c[i] * d[i];
    b[i] = b[i + 1] - e[i] * d[i];
  }
  return 0;
}
KERNEL(s212, "a value must be read before it is overwritten") {
  for (int i = 0; i < N - 1; i++) {
    a[i] *= c[i];
    b[i] += a[i + 1] * d[i];
  }
  return 0;
}
KERNEL(s1213, "each statement needs the other's neighbours") {
  for (int i = 1; i < N - 1; i++) {
    a[i] = b[i - 1] + c[i];
    b[i] = a[i + 1] * d[i];
  }
  return 0;
}
KERNEL(s221, "one statement is a recurrence") {
  for (int i = 1; i < N; i++) {
    a[i] += c[i] * d[i];
    b[i] = b[i - 1] * (real)0.5 + a[i] + d[i];
  }
  return 0;
}
KERNEL(s1221, "recurrence of distance 4") {
  for (int i = 4; i < N; i++)
    b[i] = b[i - 4] + a[i];
  return 0;
}
KERNEL(s222, "a recurrence in the middle") {
  for (int i = 1; i < N; i++) {
    a[i] += b[i] * c[i];
    e[i] = e[i - 1] * e[i - 1];
    a[i] -= b[i] * c[i];
  }
  return 0;
}
KERNEL(s231, "recurrence down the columns") {
  for (int i = 0; i < M; ++i)
    for (int j = 1; j < M; j++)
      aa[j][i] = aa[j - 1][i] + bb[j][i];
  return 0;
}
KERNEL(s232, "triangular recurrence along the rows") {
  for (int j = 1; j < M; j++)
    for (int i = 1; i <= j; i++)
      aa[j][i] = aa[j][i - 1] * aa[j][i - 1] + bb[j][i];
  return 0;
}
KERNEL(s1232, "triangle without dependence, in the wrong order") {
  for (int j = 0; j < M; j++)
    for (int i = j; i < M; i++)
      aa[i][j] = bb[i][j] + cc[i][j];
  return 0;
}
KERNEL(s233, "recurrences in both directions") {
  for (int i = 1; i < M; i++) {
    for (int j = 1; j < M; j++)
      aa[j][i] = aa[j - 1][i] + cc[j][i];
    for (int j = 1; j < M; j++)
      bb[j][i] = bb[j][i - 1] + cc[j][i];
  }
  return 0;
}
KERNEL(s2233, "recurrences in the same direction") {
  for (int i = 1; i < M; i++) {
    for (int j = 1; j < M; j++)
      aa[j][i] = aa[j - 1][i] + cc[j][i];
    for (int j = 1; j < M; j++)
      bb[i][j] = bb[i - 1][j] + cc[i][j];
  }
  return 0;
}
KERNEL(s235, "imperfect nest") {
  for (int i = 0; i < M; i++) {
    a[i] += b[i] * c[i];
    for (int j = 1; j < M; j++)
      aa[j][i] = aa[j - 1][i] + bb[j][i] * a[i];
  }
  return 0;
}
KERNEL(s241, "the old value of a is needed by the second statement") {
  for (int i = 0; i < N - 1; i++) {
    a[i] = b[i] * c[i] * d[i];
    b[i] = a[i] * a[i + 1] * d[i];
  }
  return 0;
}
KERNEL(s242, "recurrence with much independent arithmetic") {
  for (int i = 1; i < N; ++i)
    a[i] = a[i - 1] * (real)0.5 + s1 + s2 + b[i] + c[i] + d[i];
  return 0;
}
KERNEL(s243, "three statements, a false dependence") {
  for (int i = 0; i < N - 1; i++) {
    a[i] = b[i] + c[i] * d[i];
    b[i] = a[i] + d[i] * e[i];
    a[i] = b[i] + a[i + 1] * d[i];
  }
  return 0;
}
KERNEL(s244, "a store that the next iteration overwrites") {
  for (int i = 0; i < N - 1; ++i) {
    a[i] = b[i] + c[i] * d[i];
    b[i] = c[i] + b[i];
    a[i + 1] = b[i] + a[i + 1] * d[i];
  }
  return 0;
}
KERNEL(s1244, "the old value of the next element") {
  for (int i = 0; i < N - 1; i++) {
    a[i] = b[i] + c[i] * c[i] + b[i] * b[i] + c[i];
    d[i] = a[i] + a[i + 1];
  }
  return 0;
}
KERNEL(s2244, "the next element is written first") {
  for (int i = 0; i < N - 1; i++) {
    a[i + 1] = b[i] + e[i];
    a[i] = b[i] + c[i];
  }
  return 0;
}
KERNEL(s251, "a scalar per iteration") {
  for (int i = 0; i < N; i++) {
    real s = b[i] + c[i] * d[i];
    a[i] = s * s;
  }
  return 0;
}
KERNEL(s1251, "a scalar with two uses") {
  for (int i = 0; i < N; i++) {
    real s = b[i] + c[i];
    b[i] = a[i] + d[i];
    a[i] = s * e[i];
  }
  return 0;
}
KERNEL(s2251, "a scalar of the iteration before") {
  real s = 0;
  for (int i = 0; i < N; i++) {
    a[i] = s * e[i];
    s = b[i] + c[i];
    b[i] = a[i] + d[i];
  }
  return s;
}
KERNEL(s3251, "three statements, one element ahead") {
  for (int i = 0; i < N - 1; i++) {
    a[i + 1] = b[i] + c[i];
    b[i] = c[i] * e[i];
    d[i] = a[i] * e[i];
  }
  return 0;
}
KERNEL(s252, "a scalar carried to the next iteration") {
  real carried = 0;
  for (int i = 0; i < N; i++) {
    real s = b[i] * c[i];
    a[i] = s + carried;
    carried = s;
  }
  return carried;
}
KERNEL(s253, "a scalar that is set in a branch") {
  for (int i = 0; i < N; i++)
    if (a[i] > b[i]) {
      real s = a[i] - b[i] * d[i];
      c[i] += s;
      a[i] = s;
    }
  return 0;
}
KERNEL(s254, "the element before, around the end") {
  real before = b[N - 1];
  for (int i = 0; i < N; i++) {
    a[i] = (b[i] + before) * (real)0.5;
    before = b[i];
  }
  return before;
}
KERNEL(s255, "two elements before, around the end") {
  real before = b[N - 1], twice = b[N - 2];
  for (int i = 0; i < N; i++) {
    a[i] = (b[i] + before + twice) * (real)0.333;
    twice = before;
    before = b[i];
  }
  return before;
}
KERNEL(s256, "a vector that each outer iteration computes again") {
  for (int i = 0; i < M; i++)
    for (int j = 1; j < M; j++) {
      a[j] = (real)1 - a[j - 1];
      cc[j][i] = a[j] + bb[j][i] * d[j];
    }
  return 0;
}
KERNEL(s257, "an outer recurrence in a scalar") {
  for (int i = 1; i < M; i++)
    for (int j = 0; j < M; j++) {
      a[i] = aa[j][i] - a[i - 1];
      aa[j][i] = a[i] + bb[j][i];
    }
  return 0;
}
KERNEL(s258, "a scalar that wraps around conditionally") {
  real s = 0;
  for (int i = 0; i < M; ++i) {
    if (a[i] > (real)0.5)
      s = d[i] * d[i];
    b[i] = s * c[i] + d[i];
    e[i] = (s + (real)1) * aa[0][i];
  }
  return s;
}
KERNEL(s261, "a scalar is renamed") {
  for (int i = 1; i < N; ++i) {
    real s = a[i] + b[i];
    a[i] = s + c[i - 1];
    s = c[i] * d[i];
    c[i] = s;
  }
  return 0;
}
