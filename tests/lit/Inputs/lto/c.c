unsigned a(unsigned X);
unsigned b(unsigned X);
static unsigned pick(unsigned X) { return X & 1 ? a(X) : b(X); }
unsigned c(unsigned X) {
  unsigned Sum = 0;
  for (unsigned I = 0; I < X; ++I)
    Sum += pick(I) ^ pick(Sum);
  return Sum;
}
