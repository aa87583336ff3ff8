# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of phase ordering: stock opt with this project's plug-in.

One process for as many modules and sequences as one likes.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge import ir2vec
from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs.machine_code import text_size
from mlbridge.envs.session import CompilerSession, CompilerSettings, Outcome
from mlbridge.errors import (
    Error,
    InvalidArgument,
    Malformed,
    ModelError,
    OSFailure,
    PeerClosed,
    Timeout,
    Unsupported,
)

from .actions import ActionSpace

OPT = "opt-22"
HISTOGRAM, COUNTS = 110, 12
# What may be observed, in the order in which it is put in a row.
FEATURES = ("histogram", "embedding", "counts", "step", "actions")

TIMEOUT = 120.0  # Seconds for a sequence on a module that is not large.
_LARGE = 100_000  # Bytes of bitcode: 10,000 instructions or so.

PASSES = "mlbridge-phase-ordering-environment"
_OPTION = "-mlbridge-phase-ordering"


@dataclass(frozen=True)
class EpisodeOptions:
    """What the compiler is told of its episodes."""

    actions: str = "oz"  # A space's name in the plug-in, or its file.
    # The features, of `FEATURES`.
    observation: tuple[str, ...] = ("histogram", "counts", "step")
    # ``text-size:10``, ``instructions``, ``mca-cycles``, several of these with their
    # weights and commas between, or ``none``.
    reward: str = "text-size:10"
    steps: int = 15  # How many actions an episode may have.
    stop: bool = False  # Whether the last action, after those of the space, is to stop.
    # What ``embedding`` is made with: LLVM's form of IR2Vec's.
    vocabulary: Path | None = None
    # MLBridgeLLVM.so; found by itself as `mlbridge doctor` finds it.
    plugin: Path | None = None
    # Of how many modules it remembers what was made of them; None is as many as it does
    # by itself, 16.
    kept_programs: int | None = None

    def __post_init__(self) -> None:
        for name in self.observation:
            if name not in FEATURES or self.observation.count(name) > 1:
                raise InvalidArgument(
                    f"observation {','.join(self.observation)!r}: expected each of "
                    f"{', '.join(FEATURES)} once at most, found {name!r}"
                )
        if not self.observation:
            raise InvalidArgument(f"observe one of {', '.join(FEATURES)} at least")
        if self.kept_programs is not None and self.kept_programs < 1:
            raise InvalidArgument(
                f"kept_programs: expected 1 or more, found {self.kept_programs}"
            )

    @classmethod
    def of(
        cls,
        space: ActionSpace,
        file: Path,
        observation: tuple[str, ...] = ("step",),
        reward: str = "none",
        steps: int = 1,
        **more: Any,
    ) -> "EpisodeOptions":
        """With a space that is written to a file, where the compiler finds it."""
        space.save(file)
        return cls(str(file), observation, reward, steps, **more)

    def checked(self) -> "EpisodeOptions":
        """These, if all that they name is there and fits.

        Raises:
            InvalidArgument: it does not, in words for the command line.
            Malformed, SchemaMismatch: a file is something else.
        """
        if ("embedding" in self.observation) != (self.vocabulary is not None):
            raise InvalidArgument(
                "--observation embedding and --vocabulary FILE need each other"
            )
        self.space.pipeline(())
        assert self.dimension
        return self

    @cached_property
    def space(self) -> ActionSpace:
        """The actions themselves."""
        return ActionSpace.load(self.actions)

    @cached_property
    def dimension(self) -> int:
        """Of the vectors of ``embedding``."""
        return ir2vec.load(self.vocabulary).dimension if self.vocabulary else 300

    @property
    def choices(self) -> int:
        """How many numbers an action may be."""
        return len(self.space.actions) + self.stop

    @property
    def widths(self) -> dict[str, int]:
        """How many numbers each feature of the observation has, in their order."""
        every = {
            "histogram": HISTOGRAM,
            "embedding": self.dimension,
            "counts": COUNTS,
            "step": 1,
            "actions": 2 * len(self.space.actions),
        }
        return {name: every[name] for name in FEATURES if name in self.observation}

    def row(self, features: Mapping[str, Any]) -> NDArray[np.float32]:
        """The features of a state side by side, in their order."""
        return np.concatenate([features[name] for name in self.widths])

    def plugin_file(self) -> Path:
        """MLBridgeLLVM.so.

        Raises:
            OSFailure: there is none.
        """
        plugin = self.plugin or find_llvm_plugin()
        if plugin is None:
            raise OSFailure(
                "there is no MLBridgeLLVM.so: build it (`make build`), or say where it "
                "is in MLBRIDGE_LLVM_PLUGIN"
            )
        return plugin

    def task_flags(self) -> list[str]:
        """LLVM's options that say what is decided, and by what."""
        vocabulary = f"-mlbridge-ir2vec-vocabulary={self.vocabulary}"
        return [
            f"{_OPTION}-actions={self.actions}",
            f"{_OPTION}-observation={','.join(self.widths)}",
            f"{_OPTION}-steps={self.steps}",
            *([f"{_OPTION}-stop"] if self.stop else []),
            *([vocabulary] if self.vocabulary else []),
        ]

    def command(self) -> list[str]:
        """How the compiler is started; ``{spec}`` is where it has to go.

        Raises:
            OSFailure: there is no plug-in.
        """
        return [
            OPT,
            f"-load-pass-plugin={self.plugin_file()}",
            f"-passes={PASSES}",
            "-mlbridge-environment={spec}",
            *self.task_flags(),
            f"{_OPTION}-reward={self.reward}",
            *([f"{_OPTION}-programs={kept}"] if (kept := self.kept_programs) else []),
            "-disable-output",
            # The module that opt itself wants is empty.
            os.devnull,
        ]

    def reproducer(
        self, module: str, sequence: Sequence[int], to: str = os.devnull
    ) -> str:
        """The command line that makes an object by the same passes, alone."""
        taken = [action for action in sequence if action < len(self.space.actions)]
        pipeline = self.space.pipeline(taken)
        return (
            f"{OPT} -relocation-model=pic -passes={shlex.quote(pipeline)} "
            f"{shlex.quote(module)} -o - | clang-22 -x ir - -c -Oz -Xclang "
            f"-disable-llvm-passes -o {shlex.quote(to)}"
        )


@dataclass(frozen=True)
class Sizes:
    """What a sequence made of a module."""

    start: int  # Bytes of machine code before the first action.
    prefixes: tuple[int, ...]  # After each action.
    oz: int  # Of what stock -Oz makes of the module.
    # All that the compiler said.
    info: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def last(self) -> int:
        """Of the state that the sequence ends in."""
        return self.prefixes[-1] if self.prefixes else self.start

    @property
    def ratio(self) -> float:
        """Of that state, to stock -Oz; 1 where there is no code at all."""
        return self.last / self.oz if self.oz else 1.0


# The kind of a failure that another time may be none: there may be more time then.
TIMED_OUT = "timeout"


class SequenceFailed(ModelError):
    """A sequence that a compiler does not get through on a module.

    The text says what befell it, and has a command line to see that alone.
    """

    pipeline: str = ""  # What was to run, without the space's prologue.
    # ``crash``, ``timeout``, or ``refused``: what became of the module is no code.
    kind: str = "crash"


class ModuleFailed(SequenceFailed):
    """No compiler gets as far as the first action: no other sequence will do better."""


class SequenceRunner:
    """Runs whole sequences on modules, and says how large the code becomes.

    The compiler remembers what it has run: sequences that begin alike share the work,
    and a state that was emitted once is not emitted again. It is started again when it
    fails, however often: another sequence may fare better. Used by one thread at a
    time; a context manager.
    """

    def __init__(
        self,
        options: EpisodeOptions,
        *,
        spec: str = "shm",
        timeout: float = TIMEOUT,
        max_restarts: int = 1,
    ) -> None:
        """Nothing is started before it is needed.

        Args:
            options: of the compiler.
            spec: how to reach it.
            timeout: seconds that a sequence may take on a module of up to 10,000
                instructions; on a larger one so much longer as it is larger.
            max_restarts: how many compilers are started for one module in place of
                one that failed, before it is given up.
        """
        self.options = options
        self._timeout = timeout
        self._taken: list[int] = []
        self._session = CompilerSession(
            CompilerSettings(options.command(), spec, timeout, timeout, max_restarts)
        )

    def __enter__(self) -> "SequenceRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process of the compiler that runs, if one does."""
        return self._session.pid

    def close(self) -> None:
        """Ends the compiler."""
        self._session.close()

    def interrupt(self) -> None:
        """From another thread: ends the compiler, and there will be no other.

        Who waits for it is told that it is gone, and gets an OSFailure from then on.
        """
        self._session.interrupt()

    @property
    def is_interrupted(self) -> bool:
        """Whether that was done: who does other work in between should end, too."""
        return self._session.is_interrupted

    def reset(self, module: Path, **more: Any) -> Outcome:
        """Begins an episode; for what else may be asked see docs/phase-ordering.md.

        Raises:
            ModuleFailed: no compiler survives it.
            PeerClosed, Timeout: none of them ever runs: its command line is wrong.
            Error: the module cannot be read.
        """
        # What has failed before was another sequence.
        self._session.failures = 0
        self._taken = list(more.get("sequence", ()))
        asked = {"module": str(module), **more}
        try:
            return self._session.reset(None, asked, timeout=self._seconds(module))
        except (PeerClosed, Timeout) as error:
            if not self._session.is_connected:
                raise
            raise self._failed(ModuleFailed, module, error) from error

    def run(self, module: Path, sequence: Sequence[int]) -> Sizes:
        """The sizes after each action of a sequence.

        Raises:
            SequenceFailed: the compiler failed.
            Error: the module cannot be read.
        """
        steps = max(len(sequence), 1)
        outcome = self.reset(module, steps=steps)
        start, oz = outcome.info["text_size"], outcome.info["oz_text_size"]
        if not sequence:
            return Sizes(start, (), oz, outcome.info)
        outcome = self.step(module, sequence)
        return Sizes(start, tuple(outcome.info["text_sizes"]), oz, outcome.info)

    def step(self, module: Path, sequence: Sequence[int]) -> Outcome:
        """Takes several actions at once, of an episode that has begun.

        Raises:
            SequenceFailed: the compiler failed.
            OSFailure: the operating system failed it.
        """
        self._taken += sequence
        self._session.send_step({"action": np.asarray(sequence, np.int64)})
        try:
            outcome = self._session.receive_step(self._seconds(module))
        except (PeerClosed, Timeout, Malformed, Unsupported) as error:
            raise self._failed(SequenceFailed, module, error) from error
        if isinstance(outcome.error, OSFailure):
            # A disk that is full, say: no sequence's fault.
            raise outcome.error
        if outcome.error is not None:
            raise self._failed(SequenceFailed, module, outcome.error)
        return outcome

    def _seconds(self, module: Path) -> float:
        try:
            size = module.stat().st_size
        except OSError:
            # It is for the compiler to say what is wrong.
            size = 0
        return self._timeout * max(1.0, size / _LARGE)

    def _failed(
        self, kind: type[SequenceFailed], module: Path, error: Error
    ) -> SequenceFailed:
        command = self.options.reproducer(str(module), self._taken)
        failed = kind(f"{error}; to see it alone: {command}")
        actions = self.options.space.actions
        taken = [actions[a].pipeline for a in self._taken if a < len(actions)]
        failed.pipeline = ",".join(taken)
        if isinstance(error, Timeout):
            failed.kind = TIMED_OUT
        elif not isinstance(error, PeerClosed):
            failed.kind = "refused"
        return failed

    def write(self, module: Path, sequence: Sequence[int], to: Path) -> None:
        """Writes what a sequence of one action or more makes of a bitcode file.

        That is an object if the name ends in ``.o``, else bitcode. With the reward
        ``none`` this is all the machine code that is made.

        Raises:
            SequenceFailed: the compiler failed.
            Error: the module cannot be read, or the file not be written.
        """
        self.reset(module, steps=len(sequence), output=str(to))
        self.step(module, sequence)

    def last_size(self, module: Path, sequence: Sequence[int], through: Path) -> int:
        """Bytes of machine code after a sequence, with none made on the way.

        Quicker than `run` for who does not look at prefixes; ``through`` is an object
        file that may be written over. The reward should be ``none``.

        Raises:
            Error: as `write`.
        """
        self.write(module, sequence, through)
        return text_size(through.read_bytes(), through.name)
