/* A program with more live values than registers: integers, floating-point
   numbers, calls in loops, variable arguments, assembly. It prints a hash of
   its results. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t hash = 0xcbf29ce484222325;

__attribute__((noinline)) static uint64_t add(uint64_t value) {
  hash = (hash ^ value) * 0x100000001b3;
  return hash;
}

__attribute__((noinline)) static uint64_t integers(unsigned n,
                                                   const uint64_t *in) {
  uint64_t a = 1, b = 2, c = 3, d = 5, e = 7, f = 11, g = 13, h = 17, i = 19,
           j = 23, k = 29, l = 31, m = 37, o = 41, p = 43, q = 47;
  for (unsigned x = 0; x < n; ++x) {
    a += in[x] * b;
    b ^= a + c;
    c += b * d;
    d ^= c + e;
    e += d * f;
    f ^= e + g;
    g += f * h;
    h ^= g + i;
    i += h * j;
    j ^= i + k;
    k += j * l;
    l ^= k + m;
    m += l * o;
    o ^= m + p;
    p += o * q;
    q ^= p + a;
    if (x % 7 == 3)
      a += add(b); /* Everything is live across this call. */
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ o ^ p ^ q;
}

__attribute__((noinline)) static double reals(unsigned n, const uint64_t *in) {
  double v[20];
  for (unsigned x = 0; x < 20; ++x)
    v[x] = 1.0 + x / 16.0;
  for (unsigned x = 0; x < n; ++x) {
    double w = (double)(in[x] % 1024) / 1024;
    for (unsigned y = 0; y < 20; ++y)
      v[y] = v[y] * 0.5 + v[(y + 7) % 20] * 0.25 + w;
  }
  double sum = 0;
  for (unsigned x = 0; x < 20; ++x)
    sum += v[x];
  return sum;
}

/* On x86-64, a call changes all registers for floating-point numbers. */
__attribute__((noinline)) static double across(double x) {
  double y = x * 2;
  add((uint64_t)y);
  return x + y;
}

__attribute__((noinline)) static uint64_t varying(unsigned n, ...) {
  va_list list;
  uint64_t sum = 0;
  va_start(list, n);
  for (unsigned x = 0; x < n; ++x)
    sum = sum * 31 + va_arg(list, unsigned);
  va_end(list);
  return sum;
}

#if defined(__x86_64__) && !defined(NO_ASM)
/* The jump takes place, so the value must be an output of the assembly on that
 * edge, too. */
__attribute__((noinline)) static uint64_t jumping(uint64_t x,
                                                  const uint64_t *in) {
  uint64_t a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5],
           g = in[6], h = in[7], i = in[8], j = in[9], k = in[10], l = in[11],
           m = in[12], out;
  __asm__ goto("leaq 5(%1), %0; testq %1, %1; jnz %l2"
               : "=&r"(out)
               : "r"(x)
               : "cc"
               : taken);
  return out + add(a) + b + c + d + e + f + g + h + i + j + k + l + m;
taken:
  return out * 3 + add(m) + a * b + c * d + e * f + g * h + i * j + k * l;
}

__attribute__((noinline)) static uint64_t clobbered(uint64_t x, uint64_t y) {
  uint64_t low, high;
  __asm__("mulq %3" : "=a"(low), "=d"(high) : "a"(x), "r"(y) : "cc");
  __asm__ volatile("" ::
                       : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11",
                         "r12");
  return low ^ high ^ x ^ y;
}
#endif

int main(void) {
  uint64_t in[64];
  for (unsigned x = 0; x < 64; ++x)
    in[x] = x * 0x9e3779b97f4a7c15 + 1;
  for (unsigned n = 0; n < 64; n += 9)
    add(integers(n, in));
  union {
    double real;
    uint64_t bits;
  } pun = {reals(64, in)};
  add(pun.bits);
  pun.real = across(pun.real);
  add(pun.bits);
  add(varying(9, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u));
#if defined(__x86_64__) && !defined(NO_ASM)
  add(jumping(0, in));
  add(jumping(9, in));
  add(clobbered(in[3], in[5]));
#endif
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
