// Builds tries with MARISA, searches them, and stores and loads them. The program's
// argument is the number of keys.
#include "driver.h"
#include "marisa/iostream.h"
#include "marisa/stdio.h"
#include "marisa/trie.h"

#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>
#include <vector>

using namespace marisa;

static void addKey(const Key &Found, Checksum &Sum) {
  Sum.add(std::string_view(Found.ptr(), Found.length()));
  Sum.add(static_cast<uint64_t>(Found.id()));
}

static void search(const Trie &Searched, const std::vector<std::string> &Words,
                   Draw &Random, Checksum &Sum) {
  Agent Each;
  for (size_t Left = Words.size() / 4; Left > 0; --Left) {
    std::string Word =
        Words[Random.below(static_cast<uint32_t>(Words.size()))];
    if (Random.below(4) == 0)
      Word += Random.word();
    Each.set_query(Word.data(), Word.size());
    const bool IsKey = Searched.lookup(Each);
    Sum.add(IsKey);
    if (IsKey)
      addKey(Each.key(), Sum);
    while (Searched.common_prefix_search(Each))
      addKey(Each.key(), Sum);
    const std::string Start = Word.substr(0, 1 + Random.below(4));
    Each.set_query(Start.c_str());
    for (int Most = 9; Most > 0 && Searched.predictive_search(Each); --Most)
      addKey(Each.key(), Sum);
    Each.set_query(Random.below(static_cast<uint32_t>(Searched.size())));
    Searched.reverse_lookup(Each);
    addKey(Each.key(), Sum);
  }
}

static void addSizes(const Trie &Made, Checksum &Sum) {
  for (size_t Each :
       {Made.num_tries(), Made.num_keys(), Made.num_nodes(), Made.size(),
        Made.io_size(), static_cast<size_t>(Made.tail_mode()),
        static_cast<size_t>(Made.node_order()), size_t(Made.empty())})
    Sum.add(static_cast<uint64_t>(Each));
}

// Stores a trie in all ways, and searches what was loaded.
static void store(const Trie &Made, const std::vector<std::string> &Words,
                  Draw &Random, Checksum &Sum) {
  Made.save("saved");
  Trie Loaded, Mapped, Read;
  Loaded.load("saved");
  search(Loaded, Words, Random, Sum);
  Mapped.mmap("saved");
  search(Mapped, Words, Random, Sum);
  std::stringstream Stream;
  Stream << Made;
  const std::string Bytes = Stream.str();
  Sum.add(Bytes);
  Stream >> Read;
  addSizes(Read, Sum);
  Read.clear();
  Read.map(Bytes.data(), Bytes.size());
  search(Read, Words, Random, Sum);
  const int Out = open("written", O_RDWR | O_CREAT | O_TRUNC, 0600);
  Made.write(Out);
  lseek(Out, 0, SEEK_SET);
  Loaded.read(Out);
  close(Out);
  addSizes(Loaded, Sum);
  std::FILE *File = std::fopen("file", "w+b");
  fwrite(File, Made);
  std::rewind(File);
  fread(File, &Mapped);
  std::fclose(File);
  Mapped.swap(Loaded);
  addSizes(Mapped, Sum);
}

template <typename Action> static void attempt(Checksum &Sum, Action Try) {
  try {
    Try();
    Sum.add("done");
  } catch (const Exception &Error) {
    Sum.add(static_cast<int>(Error.error_code()));
  }
}

static void tryErrors(Checksum &Sum) {
  Trie Empty;
  Agent Each;
  Keyset Keys;
  attempt(Sum, [&] { Empty.lookup(Each); });
  attempt(Sum, [&] { Empty.load("not-there"); });
  attempt(Sum, [&] { Empty.mmap("not-there"); });
  attempt(Sum, [&] { Empty.save(nullptr); });
  attempt(Sum, [&] { Empty.map("no trie, but a text", 19); });
  attempt(Sum, [&] { Empty.build(Keys, 1 << 30); });
  attempt(Sum, [&] { Empty.build(Keys); });
  attempt(Sum, [&] { Each.set_query(3), Empty.reverse_lookup(Each); });
  attempt(Sum, [&] { std::istringstream("short") >> Empty; });
}

static void build(const std::vector<std::string> &Words, int Flags,
                  Draw &Random, Checksum &Sum) {
  Keyset Keys, Other;
  for (const std::string &Word : Words)
    switch (Random.below(4)) {
    case 0:
      Keys.push_back(Word.c_str());
      break;
    case 1: {
      Key Made;
      Made.set_str(Word.data(), Word.size());
      Made.set_weight(2.0f);
      Keys.push_back(Made);
      Keys.push_back(Made, '\0');
      break;
    }
    default:
      Keys.push_back(Word.data(), Word.size(),
                     static_cast<float>(Random.below(100)));
    }
  Trie Made;
  Made.build(Keys, Flags);
  for (size_t Index = 0; Index < Keys.size(); Index += 17)
    addKey(Keys[Index], Sum);
  Sum.add(static_cast<uint64_t>(Keys.num_keys() + Keys.total_length()));
  addSizes(Made, Sum);
  search(Made, Words, Random, Sum);
  store(Made, Words, Random, Sum);
  Other.swap(Keys);
  Other.reset();
  Other.clear();
}

int main(int, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  std::vector<std::string> Words;
  for (int Left = std::atoi(Arguments[1]); Left > 0; --Left)
    Words.push_back(Left % 5 == 0 ? Random.text(3) + std::string(1, '\0')
                                  : Random.word());
  std::vector<std::string> Texts = Words;
  for (std::string &Each : Texts)
    if (Each.back() == '\0')
      Each.pop_back();
  Texts.push_back(std::string(5000, 'x'));
  for (int Order : {MARISA_LABEL_ORDER, MARISA_WEIGHT_ORDER})
    for (int Tail : {MARISA_TEXT_TAIL, MARISA_BINARY_TAIL}) {
      build(Texts, Order | Tail | MARISA_TINY_CACHE | 1, Random, Sum);
      build(Words, Order | Tail | MARISA_HUGE_CACHE | 5, Random, Sum);
    }
  build({}, 0, Random, Sum);
  tryErrors(Sum);
  Sum.print("marisa");
}
