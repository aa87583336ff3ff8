/* At -O2 every call is inlined, which more than doubles the module's IR. At
   double the size, LLVM stops its ML inliners. */

typedef unsigned int u32;

static u32 step(u32 X, u32 Y) {
  X ^= Y * 2654435761u;
  X = (X << 7) | (X >> 25);
  X += Y ^ (X >> 3);
  if (X & 8)
    X ^= Y << 2;
  return X * 31 + Y;
}

#define STEP                                                                   \
  X = step(X, Y);                                                              \
  Y = step(Y, X);
#define STEPS STEP STEP STEP STEP STEP STEP STEP STEP

u32 run(u32 X, u32 Y) { STEPS STEPS return X; }
