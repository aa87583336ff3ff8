/* If a fallback starts too late, this function is not inlined. */
static inline __attribute__((always_inline)) int twice(int x) { return x + x; }
static int sum(const int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++)
    s += twice(p[i]) * i;
  return s;
}
__attribute__((optnone, noinline)) int plain(int x) { return twice(x) + 1; }
int main(int argc, char **argv) {
  int a[] = {1, 2, 3, argc};
  (void)argv;
  return sum(a, 4) == 16 + 6 * argc && plain(3) == 7 ? 0 : 1;
}
