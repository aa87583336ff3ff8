unsigned c(unsigned X);
static unsigned twice(unsigned X) { return c(X) + c(X + 1); }
int main(void) { return twice(50) == 1944742077u ? 0 : 1; }
