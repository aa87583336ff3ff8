# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PhaseOrderingEnv: the order in which LLVM's passes run on a module."""

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

# Modules in a row for which a reset may fail before the error is raised.
_FAILURES = 5

# Measures, and their keys in the compiler's info; those of stock -Oz begin with oz_.
_MEASURES = {
    "text-size": "text_size",
    "instructions": "instructions",
    "mca-cycles": "mca_cycles",
}


@dataclass(frozen=True)
class Reward:
    """A weighted sum of sizes, each relative to stock -Oz; see Reward.cpp."""

    weights: Mapping[str, float]  # By measure.

    @classmethod
    def parse(cls, text: str) -> "Reward":
        """Reads ``text-size:10,mca-cycles:5``; else raises InvalidArgument."""
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
        """Returns the value of an info's state, or with ``oz_`` of stock -Oz's."""
        total = 0.0
        for name, weight in self.weights.items():
            stock = max(float(info["oz_" + _MEASURES[name]]), 1.0)
            total -= weight * float(info[which + _MEASURES[name]]) / stock
        return total


@dataclass(frozen=True)
class EnvSettings:
    """The arguments of a `PhaseOrderingEnv`."""

    corpus: str | PathLike[str] | None = None  # Made by `mlbridge corpus fetch`.
    # A list, or text with commas, of ``histogram``, ``embedding``, ``counts``, ``step``
    # and ``actions``. A single one is a Box, several are a Dict by name.
    observation: str | Sequence[str] = ("histogram", "counts", "step")
    action: str = "oz"  # The action space: ``oz``, ``odg``, ``passes``, or a file.
    # Of text-size, instructions and mca-cycles: ``text-size:10,mca-cycles:5``.
    reward: str = "text-size:10"
    modules: Sequence[str | PathLike[str]] | None = None  # Bitcode, not a corpus.
    # ``training``, ``held-out``, ``generated``; None: all but the generated.
    split: str | None = "training"
    leave_out: Sequence[str] = ()  # Programs of the split without episodes.
    max_instructions: int | None = None  # Larger modules are left out.
    steps: int = 15  # Actions in an episode; with ``stop``, at most.
    stop: bool = False  # Adds a last action that ends the episode.
    final: str = "last"  # The state that judges an episode: ``last`` or ``best``.
    # The return is relative to ``start``, the first state, or to ``oz``, stock -Oz. For
    # ``oz`` the first step's reward includes the value of the state before it relative
    # to -Oz, unless the compiler fails in this step.
    baseline: str = "start"
    flat: bool = False  # Puts several features in one row, a Box.
    vocabulary: str | PathLike[str] | None = None  # Of ``embedding``: LLVM's JSON.
    plugin: str | PathLike[str] | None = None  # Default: as for `mlbridge doctor`.
    spec: str = "shm"  # Transport to the compiler: or ``pipe``, ``grpc``, with options.
    timeout: float | None = 60.0  # Seconds for a step; a pass that takes longer hangs.
    failure_reward: float = 0.0  # Of a step in which the compiler crashes or hangs.
    # The number of modules, the latest ones, whose results the compiler keeps; None is
    # 16. Episodes on kept modules are much faster.
    kept_programs: int | None = None
    # Adds ``step_ms`` and ``emit_ms`` to ``info``. Without them the same seed and
    # actions give the same info, which Gymnasium's checker requires.
    times: bool = False
    render_mode: str | None = None  # ``ansi`` or ``human``: both show the times.
    worker: int = 0
    check: bool = False  # As for `CompilerEnv`.

    def __post_init__(self) -> None:
        for name, *known in (("final", "last", "best"), ("baseline", "start", "oz")):
            if (given := getattr(self, name)) not in known:
                expected = " or ".join(known)
                raise InvalidArgument(f"{name}: expected {expected}, found '{given}'")
        if self.baseline == "oz" and self.reward == "none":
            raise InvalidArgument("baseline: without a reward nothing beats -Oz")

    def programs(self) -> list[list[Path]]:
        """Returns the modules of the episodes, by program."""
        if (self.corpus is None) == (self.modules is None):
            raise InvalidArgument(
                "give the modules of the episodes: either corpus=FOLDER (made by"
                " `mlbridge corpus fetch`) or modules=[FILE, ...]"
            )
        if self.corpus is None:
            files = [Path(module).resolve() for module in self.modules or ()]
            if not files:
                raise InvalidArgument("modules: expected at least one")
            if missing := [file for file in files if not file.is_file()]:
                raise InvalidArgument(f"there is no module {missing[0]}")
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
        """Returns the compiler's options, to keep the results of that many modules."""
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
    """Returns the observation space, and the same by name if it is a single Box."""
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
    """An episode is a module of a corpus; a step runs a few passes on it.

    The reward is the decrease of the machine code, relative to that of stock -Oz, times
    10. docs/reference/environments.md has the tables.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        "render_fps": 4,
    }

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Takes the fields of `EnvSettings`; the compiler starts at the first reset.

        Raises InvalidArgument for an unknown corpus, module, feature or action space,
        and OSFailure if there is no plug-in.
        """
        settings = EnvSettings(*arguments, **named)
        self.programs = settings.programs()
        kept = settings.kept_programs
        kept = self._kept_by_default() if kept is None else kept
        self.options = settings.options(kept)
        self.final = settings.final
        # For returns relative to -Oz.
        is_beside_oz = settings.baseline == "oz"
        self._rival = Reward.parse(settings.reward) if is_beside_oz else None
        # The first state's value relative to -Oz, until a reward includes it.
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
            # The order of a Dict differs.
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
        # Of each state: the number of actions before it, the last action, its info.
        self._rows: list[tuple[int, int | None, Mapping[str, Any]]] = []

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on a random program and a random module of it.

        Of the options, ``module`` names a module instead, ``sequence`` are actions
        before the first step, ``output`` is a file for the resulting bitcode; see
        docs/guides/phase-ordering.md. Errors are those of `CompilerEnv.reset`, but for
        random modules only after several failures.
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
                # Before any answer, the module is not the cause.
                never = not self._has_answered
                if never or "module" in asked or failures == _FAILURES:
                    raise
            else:
                self._has_answered = True
                # Count failures anew for this episode.
                self._session.failures = 0
                self._lead = self._lead_of(info, asked["final"])
                return observation, self._noted(None, info)

    def send(self, action: Any) -> None:
        """Sends an action, as `CompilerEnv.send`."""
        super().send(action)
        self._taken.append(int(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Receives the result of a step, as `CompilerEnv.receive`.

        If the compiler crashed or hung, ``info["reproducer"]`` is a command line that
        runs the same passes on the same module; it is logged, too.
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
        """Returns the episode as a table: sizes and times of each action."""
        return self._rendered() if self.render_mode == "ansi" else None

    def _kept_by_default(self) -> int | None:
        return None

    def _drawn(self) -> Path:
        modules = self.programs[int(self._draw.integers(len(self.programs)))]
        return modules[int(self._draw.integers(len(modules)))]

    def _lead_of(self, info: Mapping[str, Any], final: object) -> float:
        """Returns the value of the first state relative to -Oz, for that baseline."""
        if self._rival is None:
            return 0.0
        # After a `sequence` at reset, the best state may be an earlier one.
        is_best = final == "best"
        value = info["best_value"] if is_best else self._rival.value(info)
        return float(value) - self._rival.value(info, "oz_")

    def _noted(self, action: int | None, info: dict[str, Any]) -> dict[str, Any]:
        """Keeps a state's info for the table; returns the user's part of it."""
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
        names = [*(action.name for action in self.options.space.actions), "stop"]
        for number, taken, info in self._rows:
            size, stock = info.get("text_size"), info.get("oz_text_size")
            table.add_row(
                str(number),
                "" if taken is None else names[taken],
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
    """Makes several `PhaseOrderingEnv`; ``gymnasium.make_vec`` calls this."""
    settings.pop("max_episode_steps", None)
    return CompilerVectorEnv(
        [PhaseOrderingEnv(worker=number, **settings) for number in range(num_envs)]
    )


KEPT_BITCODE = 20_000_000
"""Bytes of the modules whose results a compiler keeps in a training.

This takes some 80 times as much memory. `mlbridge corpus` has 7 MB for training.
"""


class TrainingEnv(PhaseOrderingEnv):
    """A `PhaseOrderingEnv` that keeps the results of `KEPT_BITCODE` bytes of modules.

    A training returns to each module many times.
    """

    def _kept_by_default(self) -> int:
        files = [file for program in self.programs for file in program]
        size = sum(file.stat().st_size for file in files)
        return max(1, len(files) * KEPT_BITCODE // max(size, KEPT_BITCODE))
