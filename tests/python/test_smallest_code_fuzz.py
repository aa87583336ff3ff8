# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random decisions about code size do not change what programs print."""

from pathlib import Path

from mlbridge_optimizations.smallest_code import fuzz
from phase_ordering import PLUGIN
from test_outputs import FINE, OVERFLOW, small_corpus

# Repeats code that LLVM's outliner finds.
REPEATS = """
#include <stdio.h>
__attribute__((noinline)) static void say(const char *word) { printf("%s ", word); }
static int sum(const int *p) { return p[0] + p[1] * p[2] - p[3] + p[4]; }
#define STORE p[0] = 11; p[1] = 12; p[2] = 13; p[3] = 14; p[4] = 15;
void one(volatile int *p) { say("a"); STORE say("b"); }
void two(volatile int *p) { say("c"); STORE say("d"); say("e"); }
void three(volatile int *p) { say("f"); say("g"); STORE say("h"); }
int main(void) {
  int a[5];
  one(a); two(a); three(a);
  printf("%d %d\\n", sum(a), sum(a) + a[2]);
  return 0;
}
"""
REPLAYS, DECIDES = 46, 53  # The seeds of two policies that outline code.


def test_random_policies(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, fine=FINE, repeats=REPEATS)
    programs = list(corpus.programs.values())
    for seed in (REPLAYS, DECIDES):
        policy = fuzz.Policy.draw(seed)
        assert policy.replays == (seed == REPLAYS)
        rounds = list(fuzz.fuzz(corpus, programs, PLUGIN, 1, seed=seed, jobs=2))
        assert [one.problem for one in rounds] == ["", ""]
        assert {one.program for one in rounds} == {"fine", "repeats"}
        assert sum(one.inlining for one in rounds) > 0
        assert sum(one.outlined for one in rounds) > 0
        again = list(fuzz.fuzz(corpus, programs, PLUGIN, 1, seed=seed))
        assert again == rounds


def test_a_wrong_program_is_found(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, overflow=OVERFLOW)
    programs = list(corpus.programs.values())
    (found,) = fuzz.fuzz(corpus, programs, PLUGIN, 1, seed=DECIDES)
    assert "not as expected: out" in found.problem
    (failed,) = fuzz.fuzz(corpus, programs, tmp_path / "no.so", 1, seed=REPLAYS)
    assert "no.so" in failed.problem
