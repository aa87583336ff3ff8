// Detects the encodings of texts with uchardet: of the library's tests, of
// generated texts, and of random bytes. The program's arguments are the number
// of rounds, a text and the folder of the library's tests.
#include "uchardet.h"
#include "driver.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <glob.h>
#include <iterator>
#include <vector>

static std::string read(const char *Path) {
  std::ifstream File(Path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(File), {});
}

static void detect(uchardet_t Detector, std::string_view Bytes, size_t Part,
                   Checksum &Sum) {
  uchardet_reset(Detector);
  for (size_t At = 0; At < Bytes.size(); At += Part)
    Sum.add(uchardet_handle_data(Detector, Bytes.data() + At,
                                 std::min(Part, Bytes.size() - At)));
  uchardet_data_end(Detector);
  Sum.add(uchardet_get_charset(Detector));
}

// Returns a text in which some letters have been replaced by bytes with the
// high bit.
static std::string disguise(std::string Text, Draw &Random, uint32_t Share) {
  for (char &Each : Text)
    if (Random.below(Share) == 0)
      Each = static_cast<char>(128 + Random.below(128));
  return Text;
}

int main(int, char **Arguments) {
  const std::string Text = read(Arguments[2]);
  glob_t Found;
  if (glob((std::string(Arguments[3]) + "/*/*").c_str(), 0, nullptr, &Found) !=
      0)
    return 1;
  Draw Random(1);
  Checksum Sum;
  uchardet_t Detector = uchardet_new();
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    for (size_t Index = 0; Index < Found.gl_pathc; ++Index) {
      const std::string Bytes = read(Found.gl_pathv[Index]);
      detect(Detector, Bytes, Bytes.size() + 1, Sum);
      detect(Detector, Bytes, 1 + Random.below(999), Sum);
      detect(Detector, disguise(Bytes, Random, 50), 4096, Sum);
      detect(Detector, std::string_view(Bytes).substr(0, 60), 7, Sum);
    }
    for (uint32_t Share : {2, 5, 20, 200, 5000})
      detect(Detector, disguise(Text, Random, Share), 5000, Sum);
    for (const char *Start : {"\xef\xbb\xbf", "\xfe\xff", "\xff\xfe", "\x1b$B",
                              "~{", "\x1b$)C", "\x1b$)A", "\xc2\xa0", ""})
      detect(Detector, Start + Text.substr(0, 3000), 100, Sum);
  }
  globfree(&Found);
  detect(Detector, "", 1, Sum);
  uchardet_delete(Detector);
  Sum.print("uchardet");
}
