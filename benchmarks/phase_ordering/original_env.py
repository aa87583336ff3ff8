# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The original flow as an environment to train on, with the caches that ours has."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge.envs.machine_code import text_size
from mlbridge.types import Features
from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions
from mlbridge_optimizations.phase_ordering.compiler.measure import oz_size

from .original import OriginalTools

Row = NDArray[np.float32]


@dataclass
class _State:
    file: Path
    features: Features
    text_size: int


@dataclass
class _Program:
    module: Path
    oz: int
    states: dict[tuple[int, ...], _State] = field(default_factory=dict)
    # Of machine code, by the hash of the IR.
    sizes: dict[bytes, int] = field(default_factory=dict)


class OriginalEnv(gymnasium.Env[Row, Any]):
    """Each step starts an opt, an llvm-ir2vec, and a clang to see the size.

    As in the compiler's own environment, a state is remembered by its sequence, and
    machine code by the hash of the IR that it was made of; -Oz is measured once a
    module. The files of states are kept, too, so that no pass runs twice: that is more
    than ours has, which runs the passes of a sequence again when it goes on from there.
    """

    def __init__(self, options: CompilerOptions, folder: Path) -> None:
        """Nothing runs yet. The options are those of our own environment."""
        folder.mkdir()
        self._tools = OriginalTools(options, folder)
        self._names, self._steps = list(options.widths), options.steps
        self._folder = folder
        self._programs: dict[Path, _Program] = {}
        self._taken: tuple[int, ...] = ()
        self._now: _Program | None = None
        self.known = 0
        """How many states were known when an action led to them."""
        width = sum(options.widths.values())
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = spaces.Discrete(options.choices)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Row, dict[str, Any]]:
        """Starts an episode on the module that the options name."""
        super().reset(seed=seed)
        module = Path((options or {})["module"])
        if module not in self._programs:
            self._programs[module] = _Program(module, oz_size(module, own_session=True))
        self._now, self._taken = self._programs[module], ()
        state = self._look()
        return self._row(state), self._info(state)

    def step(self, action: Any) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        """Takes an action; the reward is that of ``text-size:10``."""
        assert self._now is not None
        before = self._now.states[self._taken].text_size
        self._taken += (int(action),)
        self.known += self._taken in self._now.states
        state = self._look()
        reward = 10 * (before - state.text_size) / max(self._now.oz, 1)
        is_over = len(self._taken) >= self._steps
        return self._row(state), reward, is_over, False, self._info(state)

    def _look(self) -> _State:
        program, taken = self._now, self._taken
        assert program is not None
        if taken in program.states:
            return program.states[taken]
        file = self._folder / f"{len(self._programs)}-{len(program.states)}.bc"
        if taken:
            self._tools.act(taken[-1], program.states[taken[:-1]].file, file)
        else:
            self._tools.begin(program.module, file)
        features = self._tools.features(file, taken)
        key = hashlib.sha256(file.read_bytes()).digest()
        if key not in program.sizes:
            target = self._folder / "state.o"
            self._tools.emit(file, target)
            program.sizes[key] = text_size(target.read_bytes(), str(target))
        state = _State(file, features, program.sizes[key])
        program.states[taken] = state
        return state

    def _row(self, state: _State) -> Row:
        return np.concatenate([state.features[name] for name in self._names])

    def _info(self, state: _State) -> dict[str, Any]:
        assert self._now is not None
        return {"text_size": state.text_size, "oz_text_size": self._now.oz}
