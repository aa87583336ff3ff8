# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flow that the bridge replaces, as POSET-RL's authors published it.

A Python driver runs the model. For each action, it starts opt, which reads the module,
runs the action's passes and writes the module. Then it starts llvm-ir2vec, which
computes the features. At the end, clang writes the object. All tools are stock tools.

The model and its features are the same as in flows with the bridge, so times are
comparable. `OriginalEnv` is the training environment. It has the same caches as our
environment.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge import ir2vec
from mlbridge.envs.machine_code import text_size
from mlbridge.errors import Malformed, Unsupported
from mlbridge.types import Features
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.environment.measure import oz_size

Row = NDArray[np.float32]
IR2VEC = "llvm-ir2vec-22"
# Scale the vocabulary, because the tool prints only two decimals.
ONE = 1024.0
# LLVM's weights for the vectors of each section.
WEIGHTS = {"Opcodes": 1.0, "Types": 0.5, "Arguments": 0.2}
_FIRST_TYPE, _FIRST_ARGUMENT = "FloatTy", "Function"


def _run(command: Sequence[str | Path]) -> bytes:
    """Runs a command in its own session, as environments do. Returns the output."""
    return toolchain.run(command, own_session=True)[0]


class Embedder:
    """Runs llvm-ir2vec with a vocabulary that also counts entities."""

    def __init__(
        self, folder: Path, vocabulary: Path | None, *, histogram: bool
    ) -> None:
        """Writes the tool's vocabulary to a folder."""
        self._file = folder / "vocabulary.json"
        entities = toolchain.run([IR2VEC, "entities"])[0].decode().split("\n")[1:]
        names = [line.split("\t")[0] for line in entities if line]
        self._entities = len(names) if histogram else 0
        found = ir2vec.load(vocabulary) if vocabulary else None
        self._dimension = found.dimension if found else 0
        made: dict[str, dict[str, list[float]]] = {name: {} for name in WEIGHTS}
        section = "Opcodes"
        for number, name in enumerate(names):
            section = {_FIRST_TYPE: "Types", _FIRST_ARGUMENT: "Arguments"}.get(
                name, section
            )
            vector = found.sections[section].get(name) if found else None
            row = [ONE * x for x in vector] if vector else [0.0] * self._dimension
            # This element counts instructions, because each instruction has one opcode.
            row.append(ONE * (section == "Opcodes"))
            counted = [0.0] * self._entities
            if histogram:
                counted[number] = ONE / WEIGHTS[section]
            made[section][name] = row + counted
        self._file.write_text(json.dumps(made))

    def see(self, module: Path) -> dict[str, Row]:
        """Runs the tool on a module and parses its output.

        The histogram, float32 [110], counts each entity. The embedding, float32
        [dimension], is the mean over instructions. Unused features are empty.
        """
        told = f"--ir2vec-vocab-path={self._file}"
        printed = _run([IR2VEC, "embeddings", told, module]).decode()
        # For each function, the tool prints the name and a line of numbers in brackets.
        rows = [line[2:-1] for line in printed.split("\n") if line[:2] == " ["]
        width = self._dimension + 1 + self._entities
        numbers = np.fromstring(" ".join(rows), sep=" ")
        if len(numbers) != width * len(rows):
            raise Malformed(
                f"{IR2VEC}: expected {width} numbers for each of {len(rows)} "
                f"functions, found {len(numbers)} in all"
            )
        total = numbers.reshape(len(rows), width).sum(axis=0) / ONE
        vector, instructions, counts = np.split(
            total, [self._dimension, self._dimension + 1]
        )
        mean = vector / max(float(instructions[0]), 1.0)
        histogram = np.rint(counts).astype(np.float32)
        return {"histogram": histogram, "embedding": mean.astype(np.float32)}


class OriginalTools:
    """Runs the original flow's tools as processes. A state is a bitcode file."""

    def __init__(self, options: EpisodeOptions, folder: Path) -> None:
        """Prepares the tools for the task in `options`.

        Files are written to `folder`.
        """
        observation = tuple(options.widths)
        if "counts" in observation:
            raise Unsupported(
                "no stock tool computes the feature 'counts' for the original flow; "
                "omit this flow with --flow"
            )
        self.space = options.space
        self.observation = observation
        self._embedder = Embedder(
            folder,
            options.vocabulary if "embedding" in observation else None,
            histogram="histogram" in observation,
        )

    def begin(self, module: Path, to: Path) -> None:
        """Runs the passes of the action space that run before the first action."""
        self._opt(self.space.prologue, module, to)

    def act(self, action: int, state: Path, to: Path) -> None:
        """Runs the passes of an action."""
        self._opt(self.space.actions[action].pipeline, state, to)

    def features(self, state: Path, taken: Sequence[int]) -> Features:
        """Computes the features of a state."""
        count = len(self.space.actions)
        actions = np.zeros(2 * count, np.float32)
        for action in taken:
            actions[action] += 1
        if taken:
            actions[count + taken[-1]] = 1
        every = self._embedder.see(state)
        every |= {"step": np.array([len(taken)], np.float32), "actions": actions}
        return {name: every[name] for name in self.observation}

    @staticmethod
    def emit(state: Path, to: Path) -> None:
        """Writes the object file of a state."""
        command = [toolchain.CLANG, "-Oz", "-Xclang", "-disable-llvm-passes", "-w"]
        _run([*command, "-x", "ir", "-c", state, "-o", to])

    @staticmethod
    def _opt(pipeline: str, source: Path, to: Path) -> None:
        command = [toolchain.OPT, "-relocation-model=pic", f"-passes={pipeline}"]
        # Preserve the order of uses, because passes may depend on it.
        _run([*command, "--preserve-bc-uselistorder", source, "-o", to])


@dataclass
class _Program:
    module: Path
    oz: int
    # Maps a sequence of actions to the state's file, features and code size.
    states: dict[tuple[int, ...], tuple[Path, Row, int]] = field(default_factory=dict)
    # Maps the hash of the IR to the code size.
    sizes: dict[bytes, int] = field(default_factory=dict)


class OriginalEnv(gymnasium.Env[Row, Any]):
    """An environment whose steps start opt, llvm-ir2vec and clang.

    As in our environment, states are cached by sequence, code sizes are cached by the
    hash of the IR, and -Oz is measured once per module. This environment also keeps the
    files of states, so that no passes run twice.
    """

    def __init__(self, options: EpisodeOptions, folder: Path) -> None:
        """Starts no process yet. The options are the same as for our environment."""
        folder.mkdir()
        self._tools = OriginalTools(options, folder)
        self._names, self._steps = list(options.widths), options.steps
        self._folder = folder
        self._programs: dict[Path, _Program] = {}
        self._taken: tuple[int, ...] = ()
        self._now: _Program | None = None
        self.known = 0
        """The number of actions that led to a cached state."""
        width = sum(options.widths.values())
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = spaces.Discrete(options.choices)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Row, dict[str, Any]]:
        """Starts an episode on ``options["module"]``."""
        super().reset(seed=seed)
        module = Path((options or {})["module"])
        if module not in self._programs:
            self._programs[module] = _Program(module, oz_size(module, own_session=True))
        self._now, self._taken = self._programs[module], ()
        return self._look()

    def step(self, action: Any) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        """Applies an action. The reward is ``text-size:10``."""
        assert self._now is not None
        before = self._now.states[self._taken][2]
        self._taken += (int(action),)
        self.known += self._taken in self._now.states
        row, info = self._look()
        reward = 10 * (before - info["text_size"]) / max(self._now.oz, 1)
        return row, reward, len(self._taken) >= self._steps, False, info

    def _look(self) -> tuple[Row, dict[str, Any]]:
        program, taken = self._now, self._taken
        assert program is not None
        if taken not in program.states:
            file = self._folder / f"{len(self._programs)}-{len(program.states)}.bc"
            if taken:
                self._tools.act(taken[-1], program.states[taken[:-1]][0], file)
            else:
                self._tools.begin(program.module, file)
            features = self._tools.features(file, taken)
            key = hashlib.sha256(file.read_bytes()).digest()
            if key not in program.sizes:
                target = self._folder / "state.o"
                self._tools.emit(file, target)
                program.sizes[key] = text_size(target.read_bytes(), str(target))
            row = np.concatenate([features[name] for name in self._names])
            program.states[taken] = file, row, program.sizes[key]
        _, row, size = program.states[taken]
        return row, {"text_size": size, "oz_text_size": program.oz}
