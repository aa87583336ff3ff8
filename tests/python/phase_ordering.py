# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for tests of phase ordering, which run opt with the plug-in."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs import CompilerEnv
from mlbridge.envs.machine_code import text_size
from programs import BUILD, ROOT, run_program

PLUGIN = BUILD / "lib/MLBridgeLLVM.so"
PARTS = ROOT / "optimizations/phase_ordering"
CLANG = ("clang-22", "-Oz", "-c")
NO_PASSES = ("-Xclang", "-disable-llvm-passes")

# Has loops, a switch, memory, a recursion, and calls that may or must be inlined.
PROGRAM = """
#include <stdint.h>
typedef struct { uint32_t table[256]; uint8_t seen[32]; } State;
static inline __attribute__((always_inline)) uint32_t mix(uint32_t x) {
  x ^= x << 13; x ^= x >> 17; return x ^ (x << 5);
}
static uint32_t step(const State *s, uint32_t crc, uint8_t c) {
  return s->table[(crc ^ c) & 255] ^ (crc >> 8);
}
void make(State *s) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    s->table[i] = c;
  }
}
uint32_t run(State *s, const uint8_t *p, long n) {
  uint32_t crc = ~0u;
  for (long i = 0; i < n; i++) { crc = step(s, crc, p[i]); s->seen[p[i] >> 3] |= 1; }
  return mix(~crc);
}
int kind(int c) {
  switch (c) {
  case 'a': return 10; case 'b': return 11; case 'c': return 12; case 'd': return 13;
  case '-': case '+': return 1; default: return mix((uint32_t)c) % 7 == 3 ? 2 : 0;
  }
}
static long depth(const int *next, int i) {
  return i < 0 ? 0 : 1 + depth(next, next[i]);
}
long longest(const int *next, int n) {
  long best = 0;
  for (int i = 0; i < n; i++) { long d = depth(next, i); if (d > best) best = d; }
  return best;
}
"""


def bitcode(folder: Path, source: str = PROGRAM, name: str = "program") -> str:
    """Returns the bitcode of a C program before any pass of clang -Oz."""
    (folder / f"{name}.c").write_text(source)
    path = str(folder / f"{name}.bc")
    run(*CLANG, *NO_PASSES, "-emit-llvm", str(folder / f"{name}.c"), "-o", path)
    return path


def run(*command: str) -> str:
    return run_program(command, check=True).stdout


def actions(space: str = "oz") -> dict[str, Any]:
    text = (PARTS / f"action_spaces/{space}.json").read_text()
    return dict(json.loads(text))


def code_of(module: str, folder: Path, pipeline: str | None = None) -> int:
    """Returns the text size, in bytes, of a module compiled by stock LLVM.

    Runs a pipeline of opt, or clang's own -Oz if `pipeline` is None.
    """
    target = folder / "stock.o"
    if pipeline is None:
        run(*CLANG, module, "-o", str(target))
    else:
        optimised = str(folder / "stock.bc")
        run("opt-22", f"-passes={pipeline}", module, "-o", optimised)
        run(*CLANG, *NO_PASSES, optimised, "-o", str(target))
    return text_size(target.read_bytes(), str(target))


@contextmanager
def environment(
    *options: str,
    spec: str = "pipe",
    count: int = 1,
    features: Sequence[tuple[str, int]] = (("counts", 12),),
    **settings: Any,
) -> Iterator[CompilerEnv]:
    """Yields the environment in opt, with `count` actions per step."""
    command = [
        *("opt-22", f"-load-pass-plugin={PLUGIN}", "-disable-output", "/dev/null"),
        "-passes=mlbridge-phase-ordering-environment",
        *(f"-mlbridge-phase-ordering{option}" for option in options),
    ]
    settings = {
        "observation_space": spaces.Dict(
            {n: spaces.Box(-np.inf, np.inf, (k,), np.float32) for n, k in features}
        ),
        "action_space": spaces.Box(-9, 999, (count,), np.int64),
        **settings,
    }
    with closing(CompilerEnv(command, spec, **settings)) as env:
        yield env


def take(env: CompilerEnv, module: str, *sequence: int, **request: Any) -> Any:
    """Runs the actions in one step of a new episode.

    Returns the observation, the reward and the info.
    """
    env.reset(options={"module": module, **request})
    observation, reward, _, _, info = env.step(np.array(sequence))
    return observation, reward, info
