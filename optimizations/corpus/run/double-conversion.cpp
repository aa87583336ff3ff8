// Converts doubles and floats to text and back in all ways of
// double-conversion.
#include "double-conversion/double-conversion.h"
#include "double-conversion/bignum.h"
#include "double-conversion/ieee.h"
#include "double-conversion/strtod.h"
#include "driver.h"

#include <cmath>
#include <cstring>
#include <vector>

using namespace double_conversion;

static double randomDouble(Draw &Random, int Round) {
  if (Round % 4 == 0)
    return std::ldexp(Random.below(1u << 31),
                      static_cast<int>(Random.below(60)) - 40);
  if (Round % 4 == 1)
    return Random.below(1000000) / 1000.0;
  if (Round % 997 == 2)
    return Round % 2 ? HUGE_VAL : std::nan("");
  const uint64_t Bits = static_cast<uint64_t>(Random.below(1u << 31)) << 33 |
                        static_cast<uint64_t>(Random.below(1u << 31)) << 2;
  return Double(Bits).value();
}

static void toText(double Value, int Digits, Checksum &Sum) {
  static const DoubleToStringConverter Other(
      DoubleToStringConverter::EMIT_POSITIVE_EXPONENT_SIGN |
          DoubleToStringConverter::EMIT_TRAILING_DECIMAL_POINT |
          DoubleToStringConverter::EMIT_TRAILING_ZERO_AFTER_POINT,
      "inf", "nan", 'E', -4, 8, 6, 0, 2);
  char Buffer[400];
  for (const DoubleToStringConverter *Each :
       {&DoubleToStringConverter::EcmaScriptConverter(), &Other}) {
    StringBuilder Text(Buffer, sizeof(Buffer));
    Sum.add(Each->ToShortest(Value, &Text));
    Text.AddCharacter(' ');
    Sum.add(Each->ToShortestSingle(static_cast<float>(Value), &Text));
    Text.AddPadding('-', 3);
    Sum.add(Each->ToFixed(Value, Digits, &Text));
    Text.AddString(", ");
    Sum.add(Each->ToExponential(Value, Digits, &Text));
    Text.AddSubstring(" =", 1);
    Sum.add(Each->ToExponential(Value, -1, &Text));
    Sum.add(Each->ToPrecision(Value, Digits + 1, &Text));
    Sum.add(Text.Finalize());
  }
}

static void fromText(const std::string &Text, Checksum &Sum) {
  static const StringToDoubleConverter Strict(0, 0.0, 1.0, "Infinity", "NaN");
  static const StringToDoubleConverter Loose(
      StringToDoubleConverter::ALLOW_HEX |
          StringToDoubleConverter::ALLOW_OCTALS |
          StringToDoubleConverter::ALLOW_TRAILING_JUNK |
          StringToDoubleConverter::ALLOW_LEADING_SPACES |
          StringToDoubleConverter::ALLOW_TRAILING_SPACES |
          StringToDoubleConverter::ALLOW_SPACES_AFTER_SIGN |
          StringToDoubleConverter::ALLOW_CASE_INSENSITIVITY |
          StringToDoubleConverter::ALLOW_HEX_FLOATS,
      2.0, 3.0, "inf", "nan", ',');
  const std::vector<uint16_t> Wide(Text.begin(), Text.end());
  const int Size = static_cast<int>(Text.size());
  for (const StringToDoubleConverter *Each : {&Strict, &Loose}) {
    int Used = 0;
    const auto Add = [&](double Value) {
      Sum.add(Double(Value).AsUint64());
      Sum.add(Used);
    };
    Add(Each->StringToDouble(Text.data(), Size, &Used));
    Add(Each->StringToDouble(Wide.data(), Size, &Used));
    Add(Each->StringToFloat(Text.data(), Size, &Used));
    Add(Each->StringToFloat(Wide.data(), Size, &Used));
    Add(Each->StringTo<double>(Text.data(), Size, &Used));
    Add(Each->StringTo<float>(Wide.data(), Size, &Used));
  }
}

// Computes with the library's large numbers.
static void calculate(Draw &Random, Checksum &Sum) {
  Bignum A, B, C;
  char Digits[1200];
  std::string Decimal(1 + Random.below(200), '7'),
      Hex(1 + Random.below(99), 'B');
  A.AssignDecimalString(
      Vector<const char>(Decimal.data(), static_cast<int>(Decimal.size())));
  B.AssignHexString(
      Vector<const char>(Hex.data(), static_cast<int>(Hex.size())));
  C.AssignPowerUInt16(static_cast<uint16_t>(2 + Random.below(30)),
                      Random.below(40));
  A.AddBignum(B);
  A.AddUInt64(Random.below(1u << 30));
  A.MultiplyByUInt64(0x123456789ABCDEF);
  A.MultiplyByUInt32(12345);
  A.MultiplyByPowerOfTen(5);
  C.Square();
  C.ShiftLeft(Random.below(40));
  Sum.add(Bignum::PlusCompare(A, B, C));
  if (Bignum::Less(B, A))
    A.SubtractBignum(B);
  B.AssignBignum(A);
  B.Times10();
  B.AddUInt64(7);
  Sum.add(static_cast<int>(B.DivideModuloIntBignum(A)));
  Sum.add(Bignum::Equal(A, B) + 2 * Bignum::LessEqual(A, C));
  for (const Bignum *Each : {&A, &B, &C})
    if (Each->ToHexString(Digits, sizeof(Digits)))
      Sum.add(Digits);
}

int main(int, char **Arguments) {
  Checksum Sum;
  Draw Random(1);
  const int Rounds = std::atoi(Arguments[1]);
  for (int Round = 0; Round < Rounds; ++Round) {
    const double Value = randomDouble(Random, Round);
    toText(Value, Round % 20, Sum);
    char Buffer[120];
    std::snprintf(Buffer, sizeof(Buffer), "%.*g", 1 + Round % 25, Value);
    fromText(Buffer, Sum);
    if (Round % 10 == 0) {
      std::snprintf(Buffer, sizeof(Buffer), Round % 4 ? "%a" : " +%.90f x",
                    std::fmod(Value, 1e9));
      fromText(Buffer, Sum);
      calculate(Random, Sum);
      Double Near(std::isfinite(Value) ? Value : 1.0);
      Sum.add(Near.NextDouble() > Near.PreviousDouble());
      Sum.add(Near.IsDenormal() || Near.LowerBoundaryIsCloser());
    }
  }
  for (const char *Text : {"",           " ",
                           "-",          "0x1F",
                           "0xg",        "017",
                           "1,234.5",    "nan",
                           "-Infinity",  "INF",
                           "1e",         "1e+",
                           ".",          "1.e5",
                           ".5",         "123456789012345678901234567890e-400",
                           "1e400",      "0x1.8p3",
                           "0x.8p-1074", "  12  ",
                           "- 5",        "08",
                           "1.5x"})
    fromText(Text, Sum);
  Sum.print("double-conversion");
}
