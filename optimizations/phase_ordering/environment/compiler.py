# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the compiler of phase ordering, which is stock opt with the plug-in."""

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
# All features, in the order in which they are concatenated to a row.
FEATURES = ("histogram", "embedding", "counts", "step", "actions")

TIMEOUT = 120.0  # Seconds for a sequence on a module of up to `_LARGE` bytes.
_LARGE = 100_000  # Bytes of bitcode, which is about 10,000 instructions.

PASSES = "mlbridge-phase-ordering-environment"
_OPTION = "-mlbridge-phase-ordering"


@dataclass(frozen=True)
class EpisodeOptions:
    """The options of the compiler for episodes."""

    actions: str = "oz"  # The name of an action space in the plug-in, or a JSON file.
    observation: tuple[str, ...] = ("histogram", "counts", "step")
    # A list of text-size, instructions, mca-cycles and weighted-cycles with weights, or
    # ``none``.
    reward: str = "text-size:10"
    steps: int = 15  # The maximum number of actions in an episode.
    stop: bool = False  # Whether there is an extra action that ends the episode.
    vocabulary: Path | None = None  # The IR2Vec vocabulary of ``embedding``.
    plugin: Path | None = None  # The default is the path that `mlbridge doctor` shows.
    # The number of modules whose results are cached. None is the default, 16.
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
        """Returns options for a space, and writes the space to a file."""
        space.save(file)
        return cls(str(file), observation, reward, steps, **more)

    def checked(self) -> "EpisodeOptions":
        """Returns the options. Raises if a file is missing or options conflict."""
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
        """The number of actions, including the action that ends the episode."""
        return len(self.space.actions) + self.stop

    @property
    def widths(self) -> dict[str, int]:
        """Maps the observed features to their widths, in the order of a row."""
        every = {
            "histogram": HISTOGRAM,
            "embedding": self.dimension,
            "counts": COUNTS,
            "step": 1,
            "actions": 2 * len(self.space.actions),
        }
        return {name: every[name] for name in FEATURES if name in self.observation}

    def row(self, features: Mapping[str, Any]) -> NDArray[np.float32]:
        """Concatenates the features of a state to a row."""
        return np.concatenate([features[name] for name in self.widths])

    def plugin_file(self) -> Path:
        """Returns the path of MLBridgeLLVM.so. Raises OSFailure if it is missing."""
        plugin = self.plugin or find_llvm_plugin()
        if plugin is None:
            raise OSFailure(
                "there is no MLBridgeLLVM.so: build it (`make build`), or set"
                " MLBRIDGE_LLVM_PLUGIN to its path"
            )
        return plugin

    def task_flags(self) -> list[str]:
        """Returns the flags of opt for actions and observations."""
        words = f"-mlbridge-ir2vec-vocabulary={self.vocabulary}"
        return [
            f"{_OPTION}-actions={self.actions}",
            f"{_OPTION}-observation={','.join(self.widths)}",
            f"{_OPTION}-steps={self.steps}",
            *([f"{_OPTION}-stop"] if self.stop else []),
            *([words] if self.vocabulary else []),
        ]

    def command(self) -> list[str]:
        """Returns the command, which contains ``{spec}``.

        Raises OSFailure if the plug-in is missing.
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
            os.devnull,  # opt requires a module.
        ]

    def reproducer(
        self, module: str, sequence: Sequence[int], to: str = os.devnull
    ) -> str:
        """Returns a command line that makes an object file with the same passes."""
        taken = [action for action in sequence if action < len(self.space.actions)]
        pipeline = self.space.pipeline(taken)
        return (
            f"{OPT} -relocation-model=pic -passes={shlex.quote(pipeline)} "
            f"{shlex.quote(module)} -o - | clang-22 -x ir - -c -Oz -Xclang "
            f"-disable-llvm-passes -o {shlex.quote(to)}"
        )


@dataclass(frozen=True)
class Sizes:
    """The code sizes of a module during a sequence of actions, in bytes."""

    start: int  # The size before the first action.
    prefixes: tuple[int, ...]  # The size after each action.
    oz: int  # The size after stock -Oz.
    # The info that the compiler has sent.
    info: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def last(self) -> int:
        """The size at the end of the sequence."""
        return self.prefixes[-1] if self.prefixes else self.start

    @property
    def ratio(self) -> float:
        """The size at the end relative to -Oz, or 1 for a module without code."""
        return self.last / self.oz if self.oz else 1.0


TIMED_OUT = "timeout"  # The kind of a failure after which a retry may succeed.


class SequenceFailed(ModelError):
    """A compiler failed on a sequence. The message has a command that reproduces it."""

    # The pipeline of the sequence, without the passes that run before the first action.
    pipeline: str = ""
    kind: str = "crash"  # ``crash``, ``timeout``, or ``refused`` for an error.


class ModuleFailed(SequenceFailed):
    """A compiler failed on a module before the first action of a sequence."""


class SequenceRunner(AbstractContextManager["SequenceRunner"]):
    """Runs whole sequences on modules, and measures the code size.

    The compiler caches results, so sequences with the same beginning share the work.
    After a failure, another compiler is started. One thread at a time may use a runner,
    which is a context manager.
    """

    def __init__(
        self, options: EpisodeOptions, *, spec: str = "shm", timeout: float = TIMEOUT
    ) -> None:
        """Prepares to connect with `spec`. The compiler starts when it is first used.

        ``timeout`` is the time limit for a sequence in seconds. Above 10,000
        instructions, the limit grows in proportion to the module.
        """
        self.options = options
        self._timeout = timeout
        self._taken: list[int] = []
        # Allow one restart, so that a second consecutive failure raises.
        by = (options.command(), spec, timeout, timeout, 1)
        self._session = CompilerSession(CompilerSettings(*by))

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process ID of the compiler, or None if no compiler runs."""
        return self._session.pid

    def close(self) -> None:
        """Ends the compiler."""
        self._session.close()

    def interrupt(self) -> None:
        """Kills the compiler. Later calls raise OSFailure. Thread-safe."""
        self._session.interrupt()

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupt` was called. Then other work should end, too."""
        return self._session.is_interrupted

    def reset(self, module: Path, **more: Any) -> Outcome:
        """Begins an episode with the options in docs/guides/phase-ordering.md.

        Raises ModuleFailed if the compiler fails on the module. Raises PeerClosed or
        Timeout if no compiler has ever connected, for example because of a wrong
        command. Raises Error if the module cannot be read.
        """
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
        """Measures the size after each action of a sequence. See `write` for errors."""
        outcome = self.reset(module, steps=max(len(sequence), 1))
        start, oz = outcome.info["text_size"], outcome.info["oz_text_size"]
        if not sequence:
            return Sizes(start, (), oz, outcome.info)
        outcome = self.step(module, sequence)
        return Sizes(start, tuple(outcome.info["text_sizes"]), oz, outcome.info)

    def step(self, module: Path, sequence: Sequence[int]) -> Outcome:
        """Runs several actions. Raises SequenceFailed, or OSFailure for a full disk."""
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
            size = 0  # Let the compiler report the error.
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

        The file is an object if its name ends in ``.o``, and otherwise bitcode. With
        the reward ``none``, no code size is measured. Raises SequenceFailed if the
        compiler fails, and Error if a file cannot be read or written.
        """
        self.reset(module, steps=len(sequence), output=str(to))
        self.step(module, sequence)

    def last_size(self, module: Path, sequence: Sequence[int], through: Path) -> int:
        """Returns the code size after a sequence, in bytes. See `write` for errors.

        This is faster than `run`, which measures the size after each action. The object
        file ``through`` is overwritten. Set the reward to ``none``.
        """
        self.write(module, sequence, through)
        return text_size(through.read_bytes(), through.name)
