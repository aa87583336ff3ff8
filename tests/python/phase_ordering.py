# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The phase-ordering environment for tests: opt with the plug-in, and programs."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from mlbridge.envs import CompilerEnv
from mlbridge.envs.machine_code import text_size
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "build/release/lib/MLBridgeLLVM.so"
PARTS = ROOT / "optimizations/phase_ordering"

# Loops, a call to inline, one that must be inlined, a switch, memory, a recursion.
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
    """The bitcode of a C program before any pass, as clang -Oz would begin with."""
    (folder / f"{name}.c").write_text(source)
    path = folder / f"{name}.bc"
    run(
        *("clang-22", "-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c"),
        *(str(folder / f"{name}.c"), "-o", str(path)),
    )
    return str(path)


def run(*command: str) -> str:
    """What a command prints."""
    return run_program(command, check=True).stdout


def actions(space: str = "oz") -> dict[str, Any]:
    """An action space of the plug-in."""
    found: dict[str, Any] = json.loads(
        (PARTS / f"action_spaces/{space}.json").read_text()
    )
    return found


def code_of(module: str, folder: Path, pipeline: str | None = None) -> int:
    """The text size of what stock opt and clang make of a module; None: of -Oz."""
    made = module
    if pipeline is not None:
        made = str(folder / "stock.bc")
        run("opt-22", f"-passes={pipeline}", module, "-o", made)
    plain = [] if pipeline is None else ["-Xclang", "-disable-llvm-passes"]
    target = folder / "stock.o"
    run("clang-22", "-Oz", *plain, "-c", made, "-o", str(target))
    return text_size(target.read_bytes(), str(target))


@contextmanager
def environment(
    *options: str,
    spec: str = "pipe",
    count: int = 1,
    features: Sequence[tuple[str, int]] = (("counts", 12),),
    **settings: Any,
) -> Iterator[CompilerEnv]:
    """The environment, whose steps take so many actions at once; options as "-stop"."""
    words = [f"-mlbridge-phase-ordering{option}" for option in options]
    settings = {
        "observation_space": spaces.Dict(
            {n: spaces.Box(-np.inf, np.inf, (k,), np.float32) for n, k in features}
        ),
        "action_space": spaces.Box(-9, 999, (count,), np.int64),
        **settings,
    }
    env = CompilerEnv(
        [
            *("opt-22", f"-load-pass-plugin={PLUGIN}"),
            "-passes=mlbridge-phase-ordering-environment",
            *("-disable-output", *words, "/dev/null"),
        ],
        spec,
        **settings,
    )
    try:
        yield env
    finally:
        env.close()


def take(env: CompilerEnv, module: str, *sequence: int, **request: Any) -> Any:
    """One episode that takes these actions as one step: observation, reward, info."""
    env.reset(options={"module": module, **request})
    observation, reward, _, _, info = env.step(np.array(sequence))
    return observation, reward, info
