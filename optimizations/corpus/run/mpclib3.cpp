// Calculates with complex numbers and balls of MPC, at several precisions. The program's
// argument is the number of rounds.
#include "driver.h"
#include "mpc.h"

#include <array>
#include <cmath>
#include <cstdlib>

// A complex number.
struct Complex {
  mpc_t Value;
  explicit Complex(mpfr_prec_t Bits) { mpc_init2(Value, Bits); }
  Complex(const Complex &) = delete;
  Complex &operator=(const Complex &) = delete;
  ~Complex() { mpc_clear(Value); }
};

// A real number.
struct Real {
  mpfr_t Value;
  explicit Real(mpfr_prec_t Bits) { mpfr_init2(Value, Bits); }
  Real(const Real &) = delete;
  Real &operator=(const Real &) = delete;
  ~Real() { mpfr_clear(Value); }
};

// A ball, which is a complex number and the bound of its error.
struct Ball {
  mpcb_t Value;
  Ball() { mpcb_init(Value); }
  Ball(const Ball &) = delete;
  Ball &operator=(const Ball &) = delete;
  ~Ball() { mpcb_clear(Value); }
};

static void add(mpc_srcptr Value, Checksum &Sum) {
  char *Text = mpc_get_str(16, 0, Value, MPC_RNDNN);
  Sum.add(Text);
  mpc_free_str(Text);
}

static void add(mpfr_srcptr Value, Checksum &Sum) {
  char Text[300];
  mpfr_snprintf(Text, sizeof(Text), "%Ra", Value);
  Sum.add(Text);
}

static void draw(mpc_ptr Into, Draw &Random) {
  mpc_set_si_si(Into, static_cast<long>(Random.below(2000000)) - 1000000,
                static_cast<long>(Random.below(2000000)) - 1000000, MPC_RNDNN);
  mpc_div_ui(Into, Into, 1 + Random.below(3000000), MPC_RNDNN);
}

static void applyFunctions(mpc_srcptr X, mpc_srcptr Y, mpfr_prec_t Bits,
                           mpc_rnd_t Rounding, Checksum &Sum) {
  Complex Result(Bits), Second(Bits);
  for (auto *Each :
       {mpc_sqr,  mpc_sqrt, mpc_exp,  mpc_log,   mpc_log10, mpc_sin,
        mpc_cos,  mpc_tan,  mpc_sinh, mpc_cosh,  mpc_tanh,  mpc_asin,
        mpc_acos, mpc_atan, mpc_asinh, mpc_acosh, mpc_atanh, mpc_conj,
        mpc_neg,  mpc_proj, mpc_set}) {
    Sum.add(Each(Result.Value, X, Rounding));
    add(Result.Value, Sum);
  }
  for (auto *Each : {mpc_add, mpc_sub, mpc_mul, mpc_div, mpc_pow, mpc_agm}) {
    Sum.add(Each(Result.Value, X, Y, Rounding));
    add(Result.Value, Sum);
  }
  Sum.add(mpc_fma(Result.Value, X, Y, X, Rounding));
  add(Result.Value, Sum);
  Sum.add(
      mpc_sin_cos(Result.Value, Second.Value, X, Rounding, Rounding));
  mpc_swap(Result.Value, Second.Value);
  add(Result.Value, Sum);
  Real Size(Bits);
  for (auto *Each : {mpc_abs, mpc_norm, mpc_arg, mpc_real, mpc_imag}) {
    Sum.add(Each(Size.Value, X, MPFR_RNDN));
    add(Size.Value, Sum);
  }
  for (auto *Each :
       {mpc_add_fr, mpc_sub_fr, mpc_mul_fr, mpc_div_fr, mpc_pow_fr}) {
    Sum.add(Each(Result.Value, X, Size.Value, Rounding));
    add(Result.Value, Sum);
  }
  for (auto *Each : {mpc_fr_sub, mpc_fr_div}) {
    Sum.add(Each(Result.Value, Size.Value, X, Rounding));
    add(Result.Value, Sum);
  }
  for (auto *Each : {mpc_add_ui, mpc_sub_ui, mpc_mul_ui, mpc_div_ui,
                     mpc_mul_2ui, mpc_div_2ui, mpc_pow_ui}) {
    Sum.add(Each(Result.Value, X, 7, Rounding));
    add(Result.Value, Sum);
  }
  for (auto *Each :
       {mpc_add_si, mpc_mul_si, mpc_mul_2si, mpc_div_2si, mpc_pow_si}) {
    Sum.add(Each(Result.Value, X, -5, Rounding));
    add(Result.Value, Sum);
  }
  Sum.add(mpc_ui_div(Result.Value, 3, X, Rounding));
  add(Result.Value, Sum);
  Sum.add(mpc_ui_ui_sub(Result.Value, 3, 2, X, Rounding));
  Sum.add(mpc_mul_i(Result.Value, X, -1, Rounding));
  add(Result.Value, Sum);
  Sum.add(mpc_pow_d(Result.Value, X, 0.5, Rounding));
  Sum.add(mpc_pow_ld(Result.Value, X, 1.25L, Rounding));
  add(Result.Value, Sum);
  Sum.add(mpc_rootofunity(Result.Value, 7, 3, Rounding));
  add(Result.Value, Sum);
  Sum.add(mpc_cmp(X, Y) + 10 * mpc_cmp_si_si(X, 1, -1));
  Sum.add(mpc_cmp_abs(X, Y));
}

static void addMany(mpfr_prec_t Bits, Draw &Random, Checksum &Sum) {
  std::array<mpc_t, 12> Values;
  std::array<mpc_ptr, 12> Places;
  for (size_t Index = 0; Index < Values.size(); ++Index) {
    mpc_init3(Values[Index], Bits, Bits + 20);
    draw(Values[Index], Random);
    Places[Index] = Values[Index];
  }
  Complex Total(Bits);
  Sum.add(mpc_sum(Total.Value, Places.data(), Places.size(), MPC_RNDNN));
  add(Total.Value, Sum);
  Sum.add(mpc_dot(Total.Value, Places.data(), Places.data() + 6, 6,
                  MPC_RNDZU));
  add(Total.Value, Sum);
  for (mpc_t &Each : Values)
    mpc_clear(Each);
}

static void setAll(mpfr_prec_t Bits, Draw &Random, Checksum &Sum) {
  Complex Z(Bits);
  const double Number = Random.below(1000) / 7.0;
  const auto done = [&](int Ternary) {
    Sum.add(Ternary);
    add(Z.Value, Sum);
  };
  done(mpc_set_d(Z.Value, Number, MPC_RNDNN));
  done(mpc_set_d_d(Z.Value, Number, -Number, MPC_RNDNN));
  done(mpc_set_ld(Z.Value, 1.5L, MPC_RNDNN));
  done(mpc_set_ld_ld(Z.Value, 1.5L, 2.5L, MPC_RNDNN));
  done(mpc_set_si(Z.Value, -3, MPC_RNDNN));
  done(mpc_set_ui(Z.Value, 3, MPC_RNDNN));
  done(mpc_set_ui_ui(Z.Value, 3, 4, MPC_RNDNN));
  Real One(Bits);
  mpfr_set_d(One.Value, Number, MPFR_RNDN);
  done(mpc_set_fr(Z.Value, One.Value, MPC_RNDNN));
  done(mpc_set_fr_fr(Z.Value, One.Value, One.Value, MPC_RNDNN));
  mpz_t Whole;
  mpz_init_set_ui(Whole, 12345 + Random.below(99));
  done(mpc_set_z(Z.Value, Whole, MPC_RNDNN));
  done(mpc_set_z_z(Z.Value, Whole, Whole, MPC_RNDNN));
  mpz_set_si(Whole, -3);
  done(mpc_pow_z(Z.Value, Z.Value, Whole, MPC_RNDNN));
  mpz_clear(Whole);
  mpq_t Ratio;
  mpq_init(Ratio);
  mpq_set_si(Ratio, 22, 7);
  done(mpc_set_q(Z.Value, Ratio, MPC_RNDNN));
  done(mpc_set_q_q(Z.Value, Ratio, Ratio, MPC_RNDNN));
  mpq_clear(Ratio);
  mpf_t Old;
  mpf_init_set_d(Old, Number);
  done(mpc_set_f(Z.Value, Old, MPC_RNDNN));
  done(mpc_set_f_f(Z.Value, Old, Old, MPC_RNDNN));
  mpf_clear(Old);
  gmp_randstate_t State;
  gmp_randinit_default(State);
  gmp_randseed_ui(State, Random.below(1000));
  done(mpc_urandom(Z.Value, State));
  gmp_randclear(State);
  mpc_set_prec(Z.Value, Bits + 10);
  mpfr_prec_t Parts[2];
  mpc_get_prec2(&Parts[0], &Parts[1], Z.Value);
  Sum.add(static_cast<int64_t>(mpc_get_prec(Z.Value) + Parts[0]));
  mpc_set_nan(Z.Value);
  add(Z.Value, Sum);
}

static void useTexts(Draw &Random, Checksum &Sum) {
  Complex Z(80);
  for (const char *Text : {"(1.5 -2.25)", " ( 0x1p3 @inf@ )", "(nan 1)", "7",
                           "(1", "word", "(-1e5 2) rest"}) {
    char *End = nullptr;
    Sum.add(mpc_strtoc(Z.Value, Text, &End, 0, MPC_RNDNN));
    Sum.add(static_cast<int64_t>(End - Text));
    Sum.add(mpc_set_str(Z.Value, Text, 10, MPC_RNDNN));
    add(Z.Value, Sum);
  }
  std::FILE *File = std::tmpfile();
  for (int Base : {2, 10, 36}) {
    draw(Z.Value, Random);
    Sum.add(static_cast<uint64_t>(
        mpc_out_str(File, Base, 9, Z.Value, MPC_RNDNN)));
    std::fputc('\n', File);
  }
  std::rewind(File);
  for (int Base : {2, 10, 36, 10}) {
    size_t Size = 0;
    Sum.add(mpc_inp_str(Z.Value, File, &Size, Base, MPC_RNDNN));
    Sum.add(static_cast<uint64_t>(Size));
    add(Z.Value, Sum);
  }
  std::fclose(File);
}

static void add(mpcb_srcptr Value, Checksum &Sum) {
  const mpfr_prec_t Bits = mpcb_get_prec(Value);
  Complex Result(Bits);
  const int CanRound = mpcb_can_round(Value, Bits / 2, Bits / 2, MPC_RNDNN);
  Sum.add(CanRound);
  mpc_set_prec(Result.Value, Bits / 2);
  if (CanRound != 0) {
    Sum.add(mpcb_round(Result.Value, Value, MPC_RNDNN));
    add(Result.Value, Sum);
  }
}

static void useBalls(mpc_srcptr X, mpc_srcptr Y, mpfr_prec_t Bits,
                     Checksum &Sum) {
  Ball A, B, C;
  mpcb_set_c(A.Value, X, Bits, 0, 0);
  mpcb_set_c(B.Value, Y, Bits, 1, 1);
  for (auto *Each : {mpcb_add, mpcb_mul, mpcb_div}) {
    Each(C.Value, A.Value, B.Value);
    add(C.Value, Sum);
  }
  for (auto *Each : {mpcb_sqr, mpcb_sqrt, mpcb_neg, mpcb_set}) {
    Each(C.Value, A.Value);
    add(C.Value, Sum);
  }
  mpcb_pow_ui(C.Value, A.Value, 9);
  add(C.Value, Sum);
  mpcb_div_2ui(C.Value, C.Value, 3);
  add(C.Value, Sum);
  mpcb_set_ui_ui(C.Value, 3, 5, Bits);
  add(C.Value, Sum);
  mpcb_set_inf(C.Value);
  Sum.add(mpcb_can_round(C.Value, 4, 4, MPC_RNDNN));
}

// Uses the bounds of errors.
static void useBounds(Draw &Random, Checksum &Sum) {
  mpcr_t A, B, C;
  mpcr_set_ui64_2si64(A, 1 + Random.below(1000000), -20);
  mpcr_set_ui64_2si64(B, 1 + Random.below(1000000), -18);
  for (auto *Each : {mpcr_add, mpcr_mul, mpcr_div, mpcr_max}) {
    Each(C, A, B);
    Sum.add(mpcr_get_exp(C));
    Sum.add(mpcr_cmp(A, C) + 10 * mpcr_lt_half_p(C));
  }
  mpcr_sub(C, mpcr_cmp(A, B) > 0 ? A : B, mpcr_cmp(A, B) > 0 ? B : A);
  Sum.add(mpcr_zero_p(C) + 2 * mpcr_inf_p(C));
  mpcr_sqr(C, A);
  mpcr_sqrt(C, C);
  mpcr_mul_2ui(C, C, 3);
  mpcr_div_2ui(C, C, 1);
  mpcr_add_rounding_error(C, 30, MPFR_RNDN);
  Sum.add(mpcr_get_exp(C));
  mpcr_set_one(C);
  mpcr_set_zero(C);
  mpcr_set_inf(C);
  Sum.add(mpcr_inf_p(C));
}

// Calculates Dedekind's function, which needs a number of the fundamental domain.
static void useEta(mpfr_prec_t Bits, Draw &Random, Checksum &Sum) {
  Complex Z(Bits), Result(Bits);
  mpc_set_d_d(Z.Value, Random.below(100) / 250.0,
              1.0 + Random.below(100) / 50.0, MPC_RNDNN);
  Sum.add(mpc_eta_fund(Result.Value, Z.Value, MPC_RNDNN));
  add(Result.Value, Sum);
}

static void trySpecial(Checksum &Sum) {
  const double Values[] = {0.0, -0.0, 1.0, -2.0, 1e300, HUGE_VAL, -HUGE_VAL,
                           __builtin_nan("")};
  Complex X(53), Y(53);
  mpc_set_d_d(Y.Value, 2.0, 0.0, MPC_RNDNN);
  for (double Re : Values)
    for (double Im : {0.0, -0.0, 1.0, -HUGE_VAL, __builtin_nan("")}) {
      mpc_set_d_d(X.Value, Re, Im, MPC_RNDNN);
      // The sine of a huge number needs a long time.
      if (Re != 1e300)
        applyFunctions(X.Value, Y.Value, 53, MPC_RNDNN, Sum);
    }
}

int main(int, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  Sum.add(mpc_get_version());
  trySpecial(Sum);
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    for (mpfr_prec_t Bits : {24, 53, 200, 1000}) {
      Complex X(Bits), Y(Bits);
      draw(X.Value, Random);
      draw(Y.Value, Random);
      for (mpc_rnd_t Rounding : {MPC_RNDNN, MPC_RNDZU, MPC_RNDDZ})
        applyFunctions(X.Value, Y.Value, Bits, Rounding, Sum);
      addMany(Bits, Random, Sum);
      setAll(Bits, Random, Sum);
      useBalls(X.Value, Y.Value, Bits, Sum);
      useBounds(Random, Sum);
      useEta(Bits, Random, Sum);
    }
    useTexts(Random, Sum);
  }
  mpfr_free_cache();
  Sum.print("mpclib3");
}
