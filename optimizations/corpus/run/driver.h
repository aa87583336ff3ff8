// The common parts of the libraries' drivers: random data from a fixed seed, and
// a checksum of the results.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

// Draws random numbers, which are the same everywhere.
class Draw {
  uint64_t State;

public:
  explicit Draw(uint64_t Seed) : State(Seed * 2 + 1) {}

  // Returns a number below Limit.
  uint32_t below(uint32_t Limit) {
    State = State * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>((State >> 33) % Limit);
  }

  // Returns a word of 2 to 10 lower-case letters.
  std::string word() {
    std::string Letters(2 + below(9), ' ');
    for (char &Letter : Letters)
      Letter = static_cast<char>('a' + below(26));
    return Letters;
  }

  // Returns Count words with spaces between them.
  std::string text(int Count) {
    std::string Words = word();
    while (--Count > 0)
      Words += ' ' + word();
    return Words;
  }
};

// The FNV-1a hash of all values that were added.
class Checksum {
  uint64_t State = 14695981039346656037u;

public:
  void add(std::string_view Bytes) {
    for (unsigned char Byte : Bytes)
      State = (State ^ Byte) * 1099511628211;
    State = (State ^ 256) * 1099511628211;
  }
  void add(double Value) { add(std::to_string(Value)); }
  void add(int64_t Value) { add(std::to_string(Value)); }
  void add(uint64_t Value) { add(std::to_string(Value)); }
  void add(int Value) { add(static_cast<int64_t>(Value)); }
  void add(unsigned Value) { add(static_cast<uint64_t>(Value)); }
  void add(bool Value) { add(static_cast<int64_t>(Value)); }
  void add(const char *Text) { add(std::string_view(Text)); }
  void add(const std::string &Text) { add(std::string_view(Text)); }
  void print(const char *Title) const {
    std::printf("%s %016llx\n", Title, static_cast<unsigned long long>(State));
  }
};
