# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of phase ordering: stock opt with the plug-in, for many modules."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
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
# The features, in the order of a row.
FEATURES = ("histogram", "embedding", "counts", "step", "actions")

TIMEOUT = 120.0  # Seconds for a sequence on a module of up to `_LARGE` bytes.
_LARGE = 100_000  # Bytes of bitcode: some 10,000 instructions.

PASSES = "mlbridge-phase-ordering-environment"
_OPTION = "-mlbridge-phase-ordering"


@dataclass(frozen=True)
class EpisodeOptions:
    """The compiler's options for its episodes."""

    actions: str = "oz"  # A space's name in the plug-in, or its file.
    observation: tuple[str, ...] = ("histogram", "counts", "step")  # Of `FEATURES`.
    # A list of text-size, instructions and mca-cycles with weights, or ``none``.
    reward: str = "text-size:10"
    steps: int = 15  # Most actions in an episode.
    stop: bool = False  # Adds a last action that ends the episode.
    vocabulary: Path | None = None  # Of ``embedding``: IR2Vec's in LLVM's format.
    plugin: Path | None = None  # Default: MLBridgeLLVM.so as for `mlbridge doctor`.
    # The number of modules whose results are kept; None is the compiler's default, 16.
    kept_programs: int | None = None

    def __post_init__(self) -> None:
        for name in self.observation:
            if name not in FEATURES or self.observation.count(name) > 1:
                raise InvalidArgument(
                    f"observation {','.join(self.observation)!r}: expected each of "
                    f"{', '.join(FEATURES)} at most once, found {name!r}"
                )
        if not self.observation:
            raise InvalidArgument(f"observe at least one of {', '.join(FEATURES)}")
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
        """Makes options for a space, which is written to the file."""
        space.save(file)
        return cls(str(file), observation, reward, steps, **more)

    def checked(self) -> "EpisodeOptions":
        """Returns the options if their files exist and fit each other, else raises."""
        if ("embedding" in self.observation) != (self.vocabulary is not None):
            both = "--observation embedding and --vocabulary FILE"
            raise InvalidArgument(f"{both} need each other")
        self.space.pipeline(())
        assert self.dimension
        return self

    @cached_property
    def space(self) -> ActionSpace:
        """The action space."""
        return ActionSpace.load(self.actions)

    @cached_property
    def dimension(self) -> int:
        """The dimension of ``embedding``."""
        return ir2vec.load(self.vocabulary).dimension if self.vocabulary else 300

    @property
    def choices(self) -> int:
        """The number of actions, with stop."""
        return len(self.space.actions) + self.stop

    @property
    def widths(self) -> dict[str, int]:
        """The width of each feature of the observation, in order."""
        every = {
            "histogram": HISTOGRAM,
            "embedding": self.dimension,
            "counts": COUNTS,
            "step": 1,
            "actions": 2 * len(self.space.actions),
        }
        return {name: every[name] for name in FEATURES if name in self.observation}

    def row(self, features: Mapping[str, Any]) -> NDArray[np.float32]:
        """Concatenates the features of a state, in order."""
        return np.concatenate([features[name] for name in self.widths])

    def plugin_file(self) -> Path:
        """Returns the path of MLBridgeLLVM.so; OSFailure if it is missing."""
        plugin = self.plugin or find_llvm_plugin()
        if plugin is None:
            raise OSFailure(
                "there is no MLBridgeLLVM.so: build it (`make build`), or set"
                " MLBRIDGE_LLVM_PLUGIN to its path"
            )
        return plugin

    def task_flags(self) -> list[str]:
        """Returns LLVM's options for actions and observations."""
        words = f"-mlbridge-ir2vec-vocabulary={self.vocabulary}"
        return [
            f"{_OPTION}-actions={self.actions}",
            f"{_OPTION}-observation={','.join(self.widths)}",
            f"{_OPTION}-steps={self.steps}",
            *([f"{_OPTION}-stop"] if self.stop else []),
            *([words] if self.vocabulary else []),
        ]

    def command(self) -> list[str]:
        """Returns the command, with ``{spec}``; OSFailure if the plug-in is missing."""
        return [
            OPT,
            f"-load-pass-plugin={self.plugin_file()}",
            f"-passes={PASSES}",
            "-mlbridge-environment={spec}",
            *self.task_flags(),
            f"{_OPTION}-reward={self.reward}",
            *([f"{_OPTION}-programs={kept}"] if (kept := self.kept_programs) else []),
            "-disable-output",
            os.devnull,  # opt requires a module.
        ]

    def reproducer(
        self, module: str, sequence: Sequence[int], to: str = os.devnull
    ) -> str:
        """Returns a command line that makes an object by the same passes."""
        taken = [action for action in sequence if action < len(self.space.actions)]
        pipeline = self.space.pipeline(taken)
        return (
            f"{OPT} -relocation-model=pic -passes={shlex.quote(pipeline)} "
            f"{shlex.quote(module)} -o - | clang-22 -x ir - -c -Oz -Xclang "
            f"-disable-llvm-passes -o {shlex.quote(to)}"
        )


@dataclass(frozen=True)
class Sizes:
    """The code sizes of a module after the actions of a sequence, in bytes."""

    start: int  # Before the first action.
    prefixes: tuple[int, ...]  # After each action.
    oz: int  # By stock -Oz.
    # The compiler's whole info.
    info: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def last(self) -> int:
        """The size at the end of the sequence."""
        return self.prefixes[-1] if self.prefixes else self.start

    @property
    def ratio(self) -> float:
        """The size at the end / stock -Oz; 1 without code."""
        return self.last / self.oz if self.oz else 1.0


TIMED_OUT = "timeout"  # The kind of a failure that may not occur with more time.


class SequenceFailed(ModelError):
    """A compiler failed on a sequence; the text has a command line to reproduce it."""

    pipeline: str = ""  # Of the sequence, without the prologue.
    kind: str = "crash"  # Or ``timeout``, or ``refused``: the result is not code.


class ModuleFailed(SequenceFailed):
    """A compiler failed before the first action, as it will for other sequences."""


class SequenceRunner(AbstractContextManager["SequenceRunner"]):
    """Runs whole sequences on modules, and measures the code size.

    The compiler keeps its results: sequences with the same beginning share the work. A
    compiler that fails is replaced, however often. Use a runner from one thread at a
    time; it is a context manager.
    """

    def __init__(
        self, options: EpisodeOptions, *, spec: str = "shm", timeout: float = TIMEOUT
    ) -> None:
        """The compiler starts at the first use, and is reached by the spec.

        ``timeout`` is for a sequence on a module of up to 10,000 instructions, in
        seconds; a larger module has more in proportion.
        """
        self.options = options
        self._timeout = timeout
        self._taken: list[int] = []
        # A second failure in a row gives up the module.
        by = (options.command(), spec, timeout, timeout, 1)
        self._session = CompilerSession(CompilerSettings(*by))

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process of the running compiler, or None."""
        return self._session.pid

    def close(self) -> None:
        """Ends the compiler."""
        self._session.close()

    def interrupt(self) -> None:
        """Ends the compiler for good, from any thread; later calls raise OSFailure."""
        self._session.interrupt()

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupt` was called, so other work should end, too."""
        return self._session.is_interrupted

    def reset(self, module: Path, **more: Any) -> Outcome:
        """Begins an episode; docs/guides/phase-ordering.md has the further options.

        Raises ModuleFailed if the compilers failed, PeerClosed or Timeout if the first
        one failed, for a wrong command line, and Error if the module cannot be read.
        """
        # Count failures anew for this sequence.
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
        """Measures the size after each action of a sequence; errors as in `write`."""
        outcome = self.reset(module, steps=max(len(sequence), 1))
        start, oz = outcome.info["text_size"], outcome.info["oz_text_size"]
        if not sequence:
            return Sizes(start, (), oz, outcome.info)
        outcome = self.step(module, sequence)
        return Sizes(start, tuple(outcome.info["text_sizes"]), oz, outcome.info)

    def step(self, module: Path, sequence: Sequence[int]) -> Outcome:
        """Takes several actions; raises SequenceFailed, or OSFailure: a full disk."""
        self._taken += sequence
        self._session.send_step({"action": np.asarray(sequence, np.int64)})
        try:
            outcome = self._session.receive_step(self._seconds(module))
        except (PeerClosed, Timeout, Malformed, Unsupported) as error:
            raise self._failed(SequenceFailed, module, error) from error
        if isinstance(outcome.error, OSFailure):
            raise outcome.error
        if outcome.error is not None:
            raise self._failed(SequenceFailed, module, outcome.error)
        return outcome

    def _seconds(self, module: Path) -> float:
        try:
            size = module.stat().st_size
        except OSError:
            size = 0  # The compiler reports the error.
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
        """Runs a sequence of at least one action on a bitcode file, and writes a file.

        The file is an object if its name ends in ``.o``, else bitcode. With the reward
        ``none`` no other machine code is made. Raises SequenceFailed if the compiler
        failed, and Error if the module cannot be read or the file cannot be written.
        """
        self.reset(module, steps=len(sequence), output=str(to))
        self.step(module, sequence)

    def last_size(self, module: Path, sequence: Sequence[int], through: Path) -> int:
        """Returns the bytes of machine code after a sequence; errors as in `write`.

        This is faster than `run`, which also measures prefixes. ``through`` is an
        object file to overwrite. The reward should be ``none``.
        """
        self.write(module, sequence, through)
        return text_size(through.read_bytes(), through.name)
