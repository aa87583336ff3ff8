/* Storage that overlaps, indirect addresses, calls of functions, and control loops. */
#include "tsvc.h"

KERNEL(s421, "two names of one array, one element ahead") {
  real *to = flat, *from = flat;
  for (int i = 0; i < N - 1; i++)
    to[i] = from[i + 1] + a[i];
  return 0;
}
KERNEL(s1421, "two halves of one array") {
  real *half = &b[N / 2];
  for (int i = 0; i < N / 2; i++)
    b[i] = half[i] + a[i];
  return 0;
}
KERNEL(s422, "reads far ahead of the writes") {
  real *to = flat + 4;
  for (int i = 0; i < N; i++)
    to[i] = flat[i + 8] + a[i];
  return 0;
}
KERNEL(s423, "writes one element ahead of the reads") {
  real *from = flat + 64;
  for (int i = 0; i < N - 1; i++)
    flat[i + 1] = from[i] + a[i];
  return 0;
}
KERNEL(s424, "writes 64 elements ahead of the reads") {
  real *from = flat + 63;
  for (int i = 0; i < N - 64; i++)
    from[i + 64] = flat[i] + a[i];
  return 0;
}
KERNEL(s431, "an offset that is a constant 0") {
  int k1 = 1, k2 = 2, offset = 2 * k1 - k2;
  for (int i = 0; i < N; i++)
    a[i] = a[i + offset] + b[i];
  return 0;
}
KERNEL(s441, "three branches by sign") {
  for (int i = 0; i < N; i++) {
    if (d[i] < (real)0.4)
      a[i] += b[i] * c[i];
    else if (d[i] == (real)0.5)
      a[i] += b[i] * b[i];
    else
      a[i] += c[i] * c[i];
  }
  return 0;
}
KERNEL(s442, "four branches by an index") {
  for (int i = 0; i < N; i++) {
    switch (ip[i] & 3) {
    case 0:
      a[i] += b[i] * b[i];
      break;
    case 1:
      a[i] += c[i] * c[i];
      break;
    case 2:
      a[i] += d[i] * d[i];
      break;
    default:
      a[i] += e[i] * e[i];
    }
  }
  return 0;
}
KERNEL(s443, "two branches by sign") {
  for (int i = 0; i < N; i++) {
    if (d[i] <= (real)0.5)
      a[i] += b[i] * c[i];
    else
      a[i] += b[i] * b[i];
  }
  return 0;
}
KERNEL(s451, "functions of the mathematical library") {
  for (int i = 0; i < N; i++)
    a[i] = sqrtf(b[i]) + fabsf(c[i]);
  return 0;
}
KERNEL(s452, "the iteration as a number") {
  for (int i = 0; i < N; i++)
    a[i] = b[i] + c[i] * (real)(i + 1);
  return 0;
}
KERNEL(s453, "a floating-point induction") {
  real s = 0;
  for (int i = 0; i < N; i++) {
    s += (real)2;
    a[i] = s * b[i];
  }
  return 0;
}
KERNEL(s471, "a call between two statements") {
  for (int i = 0; i < N; i++) {
    x[i] = b[i] + d[i] * d[i];
    y[i] = fmaxf(x[i], c[i]);
    b[i] = c[i] + d[i] * e[i];
  }
  return 0;
}
KERNEL(s491, "scatter") {
  for (int i = 0; i < N; i++)
    a[ip[i]] = b[i] + c[i] * d[i];
  return 0;
}
KERNEL(s4112, "gather") {
  for (int i = 0; i < N; i++)
    a[i] += b[ip[i]] * s1;
  return 0;
}
KERNEL(s4113, "gather and scatter by the same index") {
  for (int i = 0; i < N; i++)
    a[ip[i]] = b[ip[i]] + c[i];
  return 0;
}
KERNEL(s4114, "gather from the other end") {
  for (int i = n1 - 1; i < N; i++) {
    int at = ip[i];
    a[i] = b[i] + c[N - at - 1] * d[i];
  }
  return 0;
}
KERNEL(s4115, "sparse dot product") {
  real sum = 0;
  for (int i = 0; i < N; i++)
    sum += a[i] * b[ip[i]];
  return sum;
}
KERNEL(s4116, "sparse dot product with a row") {
  real sum = 0;
  for (int i = 0; i < M - 1; i++)
    sum += a[M - 1 + i] * aa[1][ip[i] % M];
  return sum;
}
KERNEL(s4117, "an index that is halved") {
  for (int i = 0; i < N; i++)
    a[i] = b[i] + c[i / 2] * d[i];
  return 0;
}
KERNEL(s4121, "a statement function") {
  for (int i = 0; i < N; i++)
    a[i] += b[i] * c[i];
  return 0;
}
KERNEL(va, "copy, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] = b[i];
  return 0;
}
KERNEL(vag, "gather, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] = b[ip[i]];
  return 0;
}
KERNEL(vas, "scatter, a control loop") {
  for (int i = 0; i < N; i++)
    a[ip[i]] = b[i];
  return 0;
}
KERNEL(vif, "conditional copy, a control loop") {
  for (int i = 0; i < N; i++)
    if (b[i] > (real)0.5)
      a[i] = b[i];
  return 0;
}
KERNEL(vpv, "sum of vectors, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] += b[i];
  return 0;
}
KERNEL(vtv, "product of vectors, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] *= b[i];
  return 0;
}
KERNEL(vpvtv, "sum and product, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] += b[i] * c[i];
  return 0;
}
KERNEL(vpvts, "sum and product with a scalar, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] += b[i] * s1;
  return 0;
}
KERNEL(vpvpv, "sum of three vectors, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] += b[i] + c[i];
  return 0;
}
KERNEL(vtvtv, "product of three vectors, a control loop") {
  for (int i = 0; i < N; i++)
    a[i] = a[i] * b[i] * c[i];
  return 0;
}
KERNEL(vbor, "much arithmetic for each access, a control loop") {
  for (int i = 0; i < M; i++) {
    real p = b[i], q = c[i], r = d[i], u = e[i], v = aa[0][i];
    real w = a[i];
    p = w * p * q + w * p * r + w * p * u + w * p * v + w * q * r + w * q * u + w * q * v +
        w * r * u + w * r * v + w * u * v;
    q = p * q * r + p * q * u + p * q * v + p * r * u + p * r * v + p * u * v;
    r = q * r * u + q * r * v + q * u * v;
    x[i] = p * q * r * (r * u * v);
  }
  return 0;
}
