# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PhaseOrderingEnv: in which order LLVM's passes run on a module, as an environment."""

import io
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.spaces import ObservationReader
from mlbridge.envs.vector import CompilerVectorEnv
from mlbridge.errors import InvalidArgument, PeerClosed, Timeout
from mlbridge.types import Features
from mlbridge_optimizations.corpus import manifest

from .compiler import EpisodeOptions

logger = logging.getLogger("mlbridge.envs")

_TIMES = ("step_ms", "emit_ms")

# Modules in a row on which no compiler may survive a reset, before that is raised.
_FAILURES = 5

# Of each measure in the compiler's info; of stock -Oz with ``oz_`` before it.
_MEASURES = {
    "text-size": "text_size",
    "instructions": "instructions",
    "mca-cycles": "mca_cycles",
}


@dataclass(frozen=True)
class Reward:
    """What a state is worth, as the compiler's Reward.cpp has it.

    It is a weighted sum of sizes, each relative to that of stock -Oz.
    """

    weights: Mapping[str, float]  # By the measure's name.

    @classmethod
    def parse(cls, text: str) -> "Reward":
        """Such as ``text-size:10,mca-cycles:5``.

        Raises:
            InvalidArgument: it is none, or of no measure.
        """
        weights: dict[str, float] = {}
        for part in text.split(","):
            name, colon, number = part.partition(":")
            try:
                weight = float(number) if colon else 1.0
            except ValueError:
                weight = math.nan
            if name not in _MEASURES or name in weights or not math.isfinite(weight):
                raise InvalidArgument(
                    f"reward '{text}': expected a list of {', '.join(_MEASURES)}, each"
                    f" with a weight such as text-size:10, found '{part}'"
                )
            weights[name] = weight
        return cls(weights)

    def value(self, info: Mapping[str, Any], which: str = "") -> float:
        """Of the state that an info is of: the more, the better.

        With ``oz_`` of what stock -Oz makes of the same module.
        """
        total = 0.0
        for name, weight in self.weights.items():
            stock = max(float(info["oz_" + _MEASURES[name]]), 1.0)
            total -= weight * float(info[which + _MEASURES[name]]) / stock
        return total


@dataclass(frozen=True)
class EnvSettings:
    """What a `PhaseOrderingEnv` is made with."""

    # Its folder; `mlbridge corpus fetch` makes one.
    corpus: str | PathLike[str] | None = None
    # A list of ``histogram``, ``embedding``, ``counts``, ``step`` and ``actions``, also
    # with commas between. One alone is a Box, several are a Dict of them by name.
    observation: str | Sequence[str] = ("histogram", "counts", "step")
    action: str = "oz"  # The space of actions: ``oz``, ``odg``, ``passes``, or a file.
    # ``text-size``, ``instructions`` and ``mca-cycles``, each with its weight, such as
    # ``text-size:10,mca-cycles:5``.
    reward: str = "text-size:10"
    # Bitcode files, instead of a corpus.
    modules: Sequence[str | PathLike[str]] | None = None
    # Of the corpus: ``training``, ``held-out``, ``generated``; None for all but the
    # generated.
    split: str | None = "training"
    leave_out: Sequence[str] = ()  # Programs of the split that no episode is about.
    max_instructions: int | None = None  # Larger modules are left out.
    steps: int = 15  # How many actions an episode has, or may have with ``stop``.
    # Whether there is one action more, the last, that ends the episode.
    stop: bool = False
    final: str = "last"  # Which state an episode is judged by, ``last`` or ``best``.
    # What the sum of an episode's rewards is relative to: ``start``, the state that it
    # begins with, or ``oz``, what stock -Oz makes. The first step's reward then has a
    # part more: what the state before it is worth beside -Oz. If the compiler fails in
    # it, there is none.
    baseline: str = "start"
    flat: bool = False  # Whether several features are put in one row, a Box.
    # What ``embedding`` is made with, in LLVM's form (JSON).
    vocabulary: str | PathLike[str] | None = None
    # MLBridgeLLVM.so, if it is not where `mlbridge doctor` finds it.
    plugin: str | PathLike[str] | None = None
    spec: str = "shm"  # How to reach the compiler: or ``pipe``, ``grpc``, with options.
    timeout: float | None = 60.0  # Seconds for a step; a pass that takes longer hangs.
    failure_reward: float = 0.0  # Of a step in which the compiler crashes or hangs.
    # Of how many modules the compiler remembers what it has made of them, the last ones
    # that it was asked for; None is 16 of them. It is by far the quicker the more of
    # the modules it knows.
    kept_programs: int | None = None
    # Whether ``info`` has ``step_ms`` and ``emit_ms``, too. Without these the same seed
    # and actions give the same info, as Gymnasium's checker wants it.
    times: bool = False
    # ``ansi`` or ``human``, which show the times in any case.
    render_mode: str | None = None
    worker: int = 0  # Its number, where there are several.
    check: bool = False  # As for `CompilerEnv`.

    def __post_init__(self) -> None:
        if self.final not in ("last", "best"):
            raise InvalidArgument(f"final: expected last or best, found '{self.final}'")
        if self.baseline not in ("start", "oz"):
            raise InvalidArgument(
                f"baseline: expected start or oz, found '{self.baseline}'"
            )
        if self.baseline == "oz" and self.reward == "none":
            raise InvalidArgument("baseline: without a reward nothing beats -Oz")

    def programs(self) -> list[list[Path]]:
        """The modules to choose from, by program."""
        if (self.corpus is None) == (self.modules is None):
            raise InvalidArgument(
                "say corpus=FOLDER (`mlbridge corpus fetch` makes one) or"
                " modules=[FILE, ...], what episodes are to be about"
            )
        if self.corpus is None:
            files = [Path(module).resolve() for module in self.modules or ()]
            for file in files:
                if not file.is_file():
                    raise InvalidArgument(f"there is no module {file}")
            if not files:
                raise InvalidArgument("modules: expected one at least")
            return [files]
        by_program: dict[str, list[Path]] = {}
        for path in manifest.load(Path(self.corpus).resolve()).modules(
            self.split, most=self.max_instructions, without=self.leave_out
        ):
            by_program.setdefault(manifest.program_of(path), []).append(path)
        if not by_program:
            raise InvalidArgument(
                f"{self.corpus} has no module of {self.max_instructions} instructions"
                " or less"
            )
        return list(by_program.values())

    def options(self, kept_programs: int | None) -> EpisodeOptions:
        """Of the compiler, which remembers so many modules."""
        names = self.observation
        is_file = Path(self.action).is_file()
        return EpisodeOptions(
            str(Path(self.action).resolve()) if is_file else self.action,
            tuple(names.split(",") if isinstance(names, str) else names),
            self.reward,
            self.steps,
            self.stop,
            Path(self.vocabulary).resolve() if self.vocabulary else None,
            Path(self.plugin).resolve() if self.plugin else None,
            kept_programs,
        )


def _space_of(
    widths: Mapping[str, int], *, flat: bool
) -> tuple[spaces.Space[Any], spaces.Dict]:
    """What is observed, and the same by name: they differ where it is one Box."""
    lows = {
        name: np.full(width, -np.inf if name == "embedding" else 0, np.float32)
        for name, width in widths.items()
    }
    by_name = spaces.Dict(
        {n: spaces.Box(low, np.inf, low.shape, np.float32) for n, low in lows.items()}
    )
    if len(lows) > 1 and not flat:
        return by_name, by_name
    low = np.concatenate(list(lows.values()))
    return spaces.Box(low, np.inf, low.shape, np.float32), by_name


class PhaseOrderingEnv(CompilerEnv):
    """An episode is a module of a corpus, a step runs a few passes on it.

    The reward is how much smaller the machine code became, as a share of what stock -Oz
    makes of the module, times 10. docs/environments.md has the tables.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        "render_fps": 4,
    }

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Describes the environment; the compiler is started at the first reset.

        The arguments are the fields of `EnvSettings`, by position or by name.

        Raises:
            InvalidArgument: there is no such corpus, module, feature or action space.
            OSFailure: there is no plug-in.
        """
        settings = EnvSettings(*arguments, **named)
        self.programs = settings.programs()
        kept = settings.kept_programs
        self.options = settings.options(
            self._kept_by_default() if kept is None else kept
        )
        self.final = settings.final
        # Of whom an episode has to be better; None: of its own start.
        is_beside_oz = settings.baseline == "oz"
        self._rival = Reward.parse(settings.reward) if is_beside_oz else None
        # By how much it is when it begins, until that is told.
        self._lead = 0.0
        self.render_mode = settings.render_mode
        space, by_name = _space_of(self.options.widths, flat=settings.flat)
        super().__init__(
            self.options.command(),
            settings.spec,
            observation_space=space,
            action_space=spaces.Discrete(self.options.choices),
            timeout=settings.timeout,
            failure_reward=settings.failure_reward,
            worker=settings.worker,
            check=settings.check,
        )
        if settings.flat and len(by_name) > 1:
            # A Dict has its own order.
            read, names = ObservationReader(by_name), list(self.options.widths)

            def row(features: Features) -> tuple[NDArray[np.float32], dict[str, Any]]:
                found, rest = read(features)
                return np.concatenate([found[name] for name in names]), rest

            self._read = row  # type: ignore[assignment]
        self._draw = np.random.default_rng()
        self._times = settings.times
        self._has_answered = False
        self._module = ""
        self._taken: list[int] = []
        # Of each state: after how many actions it came, after which, and its info.
        self._rows: list[tuple[int, int | None, Mapping[str, Any]]] = []

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode: on a module of a program, each as likely as any other.

        Args:
            seed: of the modules that are drawn.
            options: ``module`` names one instead; ``sequence`` are actions that are
                taken before the first step; ``final``, ``steps`` and ``output``, which
                is where the resulting bitcode goes, as in docs/phase-ordering.md.

        Raises:
            Error: as `CompilerEnv.reset`; for a module that was drawn, only after no
                compiler survived several of them.
        """
        if seed is not None:
            self._draw = np.random.default_rng(seed)
        asked = {"final": self.final, **(options or {})}
        failures = 0
        while True:
            module = str(asked.get("module") or self._drawn())
            self._module, self._rows = module, []
            self._taken = [int(taken) for taken in asked.get("sequence", ())]
            try:
                observation, info = super().reset(
                    seed=seed, options={**asked, "module": module}
                )
            except (PeerClosed, Timeout) as error:
                self._log(error)
                failures += 1
                # Before a compiler has ever answered, it is no module's fault.
                never = not self._has_answered
                if never or "module" in asked or failures == _FAILURES:
                    raise
            else:
                self._has_answered = True
                # What has failed before was another episode; it may fare better.
                self._session.failures = 0
                self._lead = self._lead_of(info, asked["final"])
                return observation, self._noted(None, info)

    def send(self, action: Any) -> None:
        """The first half of a step. See `CompilerEnv`."""
        super().send(action)
        self._taken.append(int(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The second half of a step. See `CompilerEnv`.

        Where the compiler crashed or hung, ``info["reproducer"]`` is a command line
        that runs the same passes on the same module; it is logged, too.
        """
        observation, reward, terminated, truncated, info = super().receive()
        if "error" in info:
            info["module"], info["sequence"] = self._module, list(self._taken)
            info["reproducer"] = self._log(info["error"])
        else:
            info = self._noted(self._taken[-1], info)
            reward, self._lead = reward + self._lead, 0.0
        if self.render_mode == "human":
            print(self._rendered())
        return observation, reward, terminated, truncated, info

    def render(self) -> str | None:  # type: ignore[override]
        """The episode so far as a table: sizes and times, action by action."""
        return self._rendered() if self.render_mode == "ansi" else None

    def _kept_by_default(self) -> int | None:
        """Of how many modules the compiler remembers what was made; None: its own."""
        return None

    def _drawn(self) -> Path:
        modules = self.programs[int(self._draw.integers(len(self.programs)))]
        return modules[int(self._draw.integers(len(modules)))]

    def _lead_of(self, info: Mapping[str, Any], final: object) -> float:
        """What an episode that begins is worth beside -Oz, if that is asked for."""
        if self._rival is None:
            return 0.0
        # With a `sequence` at reset, the best state may be an earlier one.
        is_best = final == "best"
        value = info["best_value"] if is_best else self._rival.value(info)
        return float(value) - self._rival.value(info, "oz_")

    def _noted(self, action: int | None, info: dict[str, Any]) -> dict[str, Any]:
        """Keeps a state's info for the table; returns what the user sees of it."""
        self._rows.append((len(self._taken), action, info))
        if self._times:
            return info
        return {key: value for key, value in info.items() if key not in _TIMES}

    def _log(self, error: object) -> str:
        command = self.options.reproducer(self._module, self._taken)
        said = "the compiler failed on %s after the actions %s: %s\nto see it alone: %s"
        logger.warning(said, self._module, self._taken, error, command)
        return command

    def _rendered(self) -> str:
        title = f"{self._module} ({self.options.space.name})"
        table = Table("step", "action", title=title, title_justify="left")
        for column in ("instructions", "text size", "/ -Oz", "passes ms", "emit ms"):
            table.add_column(column, justify="right")
        actions = self.options.space.actions
        for number, taken, info in self._rows:
            label = "" if taken is None else "stop"
            if taken is not None and taken < len(actions):
                label = actions[taken].name
            size, stock = info.get("text_size"), info.get("oz_text_size")
            table.add_row(
                str(number),
                label,
                f"{info['instructions']:,}",
                "" if size is None else f"{size:,}",
                f"{size / stock:.4f}" if size is not None and stock else "",
                f"{info['step_ms']:.1f}",
                f"{info['emit_ms']:.1f}",
            )
        out = io.StringIO()
        Console(file=out, width=100).print(table)
        return out.getvalue()


def make_vec(num_envs: int, **settings: Any) -> CompilerVectorEnv:
    """So many `PhaseOrderingEnv` at once; ``gymnasium.make_vec`` finds it."""
    settings.pop("max_episode_steps", None)
    return CompilerVectorEnv(
        [PhaseOrderingEnv(worker=number, **settings) for number in range(num_envs)]
    )


KEPT_BITCODE = 20_000_000
"""Bytes of bitcode of the modules that a compiler remembers in a training.

It takes some 80 times as much memory. The training programs of `mlbridge corpus` have
7 MB.
"""


class TrainingEnv(PhaseOrderingEnv):
    """A `PhaseOrderingEnv` whose compiler remembers all modules.

    Of many as many as make `KEPT_BITCODE`: a training comes back to each of them again
    and again.
    """

    def _kept_by_default(self) -> int:
        files = [file for program in self.programs for file in program]
        size = sum(file.stat().st_size for file in files)
        return max(1, len(files) * KEPT_BITCODE // max(size, KEPT_BITCODE))
