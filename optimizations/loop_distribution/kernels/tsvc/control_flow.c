/* Branches, and loops whose dependences change in the middle. */
#include "tsvc.h"

KERNEL(s271, "a conditional store") {
  for (int i = 0; i < N; i++)
    if (b[i] > (real)0.5)
      a[i] += b[i] * c[i];
  return 0;
}
KERNEL(s272, "two conditional stores") {
  for (int i = 0; i < N; i++)
    if (e[i] >= t) {
      a[i] += c[i] * d[i];
      b[i] += c[i] * c[i];
    }
  return 0;
}
KERNEL(s273, "a condition on a value just computed") {
  for (int i = 0; i < N; i++) {
    a[i] += d[i] * e[i];
    if (a[i] < (real)0.7)
      b[i] += d[i] * e[i];
    c[i] += a[i] * d[i];
  }
  return 0;
}
KERNEL(s274, "different stores in both branches") {
  for (int i = 0; i < N; i++) {
    a[i] = c[i] + e[i] * d[i];
    if (a[i] > (real)0.9)
      b[i] = a[i] + b[i];
    else
      a[i] = d[i] * e[i];
  }
  return 0;
}
KERNEL(s275, "a condition around an inner loop") {
  for (int i = 0; i < M; i++)
    if (aa[0][i] > (real)0.5)
      for (int j = 1; j < M; j++)
        aa[j][i] = aa[j - 1][i] * (real)0.5 + bb[j][i] * cc[j][i];
  return 0;
}
KERNEL(s2275, "an inner loop beside a statement") {
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < M; j++)
      aa[j][i] = aa[j][i] * (real)0.5 + bb[j][i] * cc[j][i];
    a[i] = b[i] + c[i] * d[i];
  }
  return 0;
}
KERNEL(s276, "a condition on the iteration") {
  int half = N / 2;
  for (int i = 0; i < N; i++) {
    if (i + 1 < half)
      a[i] += b[i] * c[i];
    else
      a[i] += b[i] * d[i];
  }
  return 0;
}
KERNEL(s277, "nested conditions, the inner one depends on a store") {
  for (int i = 0; i < N - 1; i++) {
    if (a[i] < (real)0.7) {
      if (b[i] < (real)0.6)
        a[i] += c[i] * d[i];
      b[i + 1] = c[i] + d[i] * e[i];
    }
  }
  return 0;
}
KERNEL(s278, "one of two stores, then a third") {
  for (int i = 0; i < N; i++) {
    if (a[i] > (real)0.5)
      c[i] = -c[i] + d[i] * e[i];
    else
      b[i] = -b[i] + d[i] * e[i];
    a[i] = b[i] + c[i] * d[i];
  }
  return 0;
}
KERNEL(s279, "nested conditions") {
  for (int i = 0; i < N; i++) {
    if (a[i] > (real)0.5) {
      c[i] = -c[i] + e[i] * e[i];
    } else {
      b[i] = -b[i] + d[i] * d[i];
      if (b[i] <= a[i])
        c[i] += d[i] * e[i];
    }
    a[i] = b[i] + c[i] * d[i];
  }
  return 0;
}
KERNEL(s1279, "nested conditions without a dependence") {
  for (int i = 0; i < N; i++)
    if (a[i] < (real)0.7)
      if (b[i] > a[i])
        c[i] += d[i] * e[i];
  return 0;
}
KERNEL(s2710, "conditions on variables and elements") {
  for (int i = 0; i < N; i++) {
    if (a[i] > b[i]) {
      a[i] += b[i] * d[i];
      if (N > 10)
        c[i] += d[i] * d[i];
      else
        c[i] = d[i] * e[i] + (real)1;
    } else {
      b[i] = a[i] + e[i] * e[i];
      if (t > (real)0)
        c[i] = a[i] + d[i] * d[i];
      else
        c[i] += e[i] * e[i];
    }
  }
  return 0;
}
KERNEL(s2711, "a condition that avoids useless work") {
  for (int i = 0; i < N; i++)
    if (b[i] != (real)0)
      a[i] += b[i] * c[i];
  return 0;
}
KERNEL(s2712, "a condition on two elements") {
  for (int i = 0; i < N; i++)
    if (a[i] > b[i])
      a[i] += b[i] * c[i];
  return 0;
}
KERNEL(s281, "reads from the other end, crosses in the middle") {
  for (int i = 0; i < N; i++) {
    real v = a[N - i - 1] + b[i] * c[i];
    a[i] = v - (real)1;
    b[i] = v;
  }
  return 0;
}
KERNEL(s1281, "a long expression that is stored twice") {
  for (int i = 0; i < N; i++) {
    real v = b[i] * c[i] + a[i] * d[i] + e[i];
    a[i] = v - (real)1;
    b[i] = v;
  }
  return 0;
}
KERNEL(s291, "the element before wraps around") {
  int before = N - 1;
  for (int i = 0; i < N; i++) {
    a[i] = (b[i] + b[before]) * (real)0.5;
    before = i;
  }
  return 0;
}
KERNEL(s292, "two elements before wrap around") {
  int before = N - 1, twice = N - 2;
  for (int i = 0; i < N; i++) {
    a[i] = (b[i] + b[before] + b[twice]) * (real)0.333;
    twice = before;
    before = i;
  }
  return 0;
}
KERNEL(s293, "the first element is copied to all") {
  for (int i = 0; i < N; i++)
    a[i] = a[0];
  return 0;
}
KERNEL(s2101, "the diagonal") {
  for (int i = 0; i < M; i++)
    aa[i][i] += bb[i][i] * cc[i][i];
  return 0;
}
KERNEL(s2102, "the identity matrix") {
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < M; j++)
      aa[j][i] = 0;
    aa[i][i] = 1;
  }
  return 0;
}
KERNEL(s2111, "a wavefront") {
  for (int j = 1; j < M; j++)
    for (int i = 1; i < M; i++)
      aa[j][i] = (aa[j][i - 1] + aa[j - 1][i]) * (real)0.526;
  return 0;
}
KERNEL(s331, "the last element that fulfils a condition") {
  int j = -1;
  for (int i = 0; i < N; i++)
    if (a[i] < (real)0.5)
      j = i;
  return (real)j;
}
KERNEL(s332, "the first element that fulfils a condition") {
  int found = -1;
  real value = -1;
  for (int i = 0; i < N; i++)
    if (a[i] > (real)100) {
      found = i;
      value = a[i];
      break;
    }
  return value + (real)found;
}
KERNEL(s341, "packs positive elements") {
  int j = -1;
  for (int i = 0; i < N; i++)
    if (b[i] > (real)0.5) {
      j++;
      a[j] = b[i];
    }
  return 0;
}
KERNEL(s342, "unpacks elements") {
  int j = -1;
  for (int i = 0; i < N; i++)
    if (a[i] > (real)0.5) {
      j++;
      a[i] = b[j];
    }
  return 0;
}
KERNEL(s343, "packs a matrix by a mask") {
  int at = -1;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++)
      if (bb[j][i] > (real)0.5) {
        at++;
        flat[at] = aa[j][i];
      }
  return 0;
}
KERNEL(s481, "a condition that ends the loop") {
  for (int i = 0; i < N; i++) {
    if (d[i] < (real)0)
      return 1;
    a[i] += b[i] * c[i];
  }
  return 0;
}
KERNEL(s482, "a condition that ends the loop after a store") {
  for (int i = 0; i < N; i++) {
    a[i] += b[i] * c[i];
    if (c[i] > b[i] + (real)100)
      break;
  }
  return 0;
}
