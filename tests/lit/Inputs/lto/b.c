unsigned a(unsigned X);
unsigned scale(unsigned X) { return X * 5 + 3; }
unsigned b(unsigned X) { return X ? a(X) + scale(X) : a(7); }
