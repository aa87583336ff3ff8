// Six values live only from one instruction to the next, so they cannot be
// spilled. Four of them need a register whose second byte has its own name. If
// another value gets such a register first, it must move.
#include <stdio.h>
long f(long a) {
  long u, w, v1, v2, v3, v4;
  asm volatile("mov %6, %0\n\tmov $1, %1\n\tmov $2, %2\n\tmov $3, %3\n\tmov "
               "$4, %4\n\tmov $5, %5"
               : "=&r"(u), "=&Q"(v1), "=&Q"(v2), "=&Q"(v3), "=&Q"(v4), "=&r"(w)
               : "m"(a));
  long r;
  asm volatile("mov %1, %0\n\tadd %2, %0\n\tadd %3, %0\n\tadd %4, %0\n\tadd "
               "%5, %0\n\tadd %6, %0"
               : "=&r"(r)
               : "r"(u), "Q"(v1), "Q"(v2), "Q"(v3), "Q"(v4), "r"(w));
  return r;
}
int main(void) { printf("%ld\n", f(100)); }
