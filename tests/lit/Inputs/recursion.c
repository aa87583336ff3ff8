/* The stock inliner inlines append into itself: the first argument of the
   recursive call is null, so the inlined body is small. */

struct Cell {
  struct Cell *Link;
  unsigned Value;
};

struct Cell *append(struct Cell *Root, unsigned Value, struct Cell *Fresh) {
  if (!Root) {
    Fresh->Link = 0;
    Fresh->Value = Value;
    return Fresh;
  }
  struct Cell *Last = Root;
  while (Last->Link)
    Last = Last->Link;
  Last->Link = append(Last->Link, Value, Fresh);
  return Root;
}
