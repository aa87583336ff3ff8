unsigned scale(unsigned X);
static unsigned square(unsigned X) { return X * X + 1; }
unsigned a(unsigned X) { return scale(square(X)) ^ square(X + 1); }
