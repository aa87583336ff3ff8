/* Functions of growing size: -Oz and -O2 inline some of them and not others.
   The checksum shows whether the program still works. */

typedef unsigned int u32;

static u32 tiny(u32 X) { return X * 3 + 1; }

static u32 mix(u32 Hash, u32 X) {
  Hash ^= X;
  Hash *= 16777619u;
  Hash ^= Hash >> 13;
  return Hash;
}

static u32 fold(const u32 *Values, u32 Count) {
  u32 Hash = 2166136261u;
  for (u32 I = 0; I < Count; ++I) {
    Hash = mix(Hash, Values[I]);
    if (Hash & 1)
      Hash = mix(Hash, tiny(I));
    else if (Hash & 2)
      Hash = mix(Hash, tiny(I + Count));
  }
  return Hash;
}

static void shuffle(u32 *Values, u32 Count, u32 Seed) {
  for (u32 I = Count; I > 1; --I) {
    Seed = Seed * 1103515245u + 12345u;
    u32 J = (Seed >> 8) % I, T = Values[I - 1];
    Values[I - 1] = Values[J];
    Values[J] = T;
  }
}

static void sift(u32 *Values, u32 Root, u32 Count) {
  for (;;) {
    u32 Child = 2 * Root + 1;
    if (Child >= Count)
      return;
    if (Child + 1 < Count && Values[Child] < Values[Child + 1])
      ++Child;
    if (Values[Root] >= Values[Child])
      return;
    u32 T = Values[Root];
    Values[Root] = Values[Child];
    Values[Child] = T;
    Root = Child;
  }
}

static void sort(u32 *Values, u32 Count) {
  for (u32 I = Count / 2; I-- > 0;)
    sift(Values, I, Count);
  for (u32 End = Count - 1; End > 0; --End) {
    u32 T = Values[0];
    Values[0] = Values[End];
    Values[End] = T;
    sift(Values, 0, End);
  }
}

u32 run(u32 *Values, u32 Count) {
  for (u32 I = 0; I < Count; ++I)
    Values[I] = tiny(I);
  shuffle(Values, Count, 7);
  u32 Shuffled = fold(Values, Count);
  sort(Values, Count);
  return mix(Shuffled, fold(Values, Count));
}

int main(void) {
  u32 Values[100];
  return run(Values, 100) == 2193149399u ? 0 : 1;
}
