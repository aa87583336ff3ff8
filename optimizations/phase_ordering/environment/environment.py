# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Gymnasium environment `PhaseOrderingEnv`."""

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

# The number of consecutive resets that may fail before the error is raised.
_FAILURES = 5

# Maps measures to keys in the compiler's info. The keys for -Oz begin with oz_.
_MEASURES = {
    "text-size": "text_size",
    "instructions": "instructions",
    "mca-cycles": "mca_cycles",
    "weighted-cycles": "weighted_cycles",
}

# Maps the names of `PosetReward`s to their measures of cycles.
POSET_REWARDS = {"poset-rl": "mca-cycles", "poset-rl-weighted": "weighted-cycles"}


@dataclass(frozen=True)
class Reward:
    """A weighted sum of measures, each relative to stock -Oz. See Reward.cpp."""

    weights: Mapping[str, float]  # Maps measures to weights.

    @classmethod
    def parse(cls, text: str) -> "Reward":
        """Reads ``text-size:10,mca-cycles:5``, or raises InvalidArgument."""
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
        """Returns the value of a state, or the value after -Oz if `which` is "oz_"."""
        total = 0.0
        for name, weight in self.weights.items():
            stock = max(float(info["oz_" + _MEASURES[name]]), 1.0)
            total -= weight * float(info[which + _MEASURES[name]]) / stock
        return total


@dataclass(frozen=True)
class PosetReward:
    """The reward of POSET-RL's first public training script.

    It is 10 times the decrease of the code size plus 5 times the decrease of the
    cycles. The unit of the size is the difference between the module at the start and
    the module after -Oz, and the unit of the cycles is their number after -Oz. Each
    decrease is clipped to 0.2 units. The cycles after the first action are compared
    with the cycles after -Oz.
    """

    cycles: str  # The measure of cycles.

    def of(
        self,
        start: Mapping[str, Any],
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> float:
        """Returns the reward of a step, from the infos of three states."""
        key = _MEASURES[self.cycles]
        stock = float(after[f"oz_{key}"])
        cycles = stock if before is start else float(before[key])
        saved = start["text_size"] - after["oz_text_size"]
        unit = saved if saved > 0 else start["text_size"]
        by_size = (before["text_size"] - after["text_size"]) / max(unit, 1)
        by_cycles = (cycles - after[key]) / max(stock, 1.0)
        weighted = 10 * np.clip(by_size, -0.2, 0.2) + 5 * np.clip(by_cycles, -0.2, 0.2)
        return float(weighted)


@dataclass(frozen=True)
class EnvSettings:
    """The arguments of a `PhaseOrderingEnv`."""

    corpus: str | PathLike[str] | None = None  # A folder from `mlbridge corpus fetch`.
    # A list or comma-separated text of ``histogram``, ``embedding``, ``counts``,
    # ``step`` and ``actions``. One feature is a Box, several features are a Dict.
    observation: str | Sequence[str] = ("histogram", "counts", "step")
    action: str = "oz"  # The action space: ``oz``, ``odg``, ``passes``, or a file.
    # Either weights of text-size, instructions, mca-cycles and weighted-cycles, for
    # example ``text-size:10,mca-cycles:5``, or the name of a `PosetReward`:
    # ``poset-rl``, or ``poset-rl-weighted``, which uses weighted-cycles.
    reward: str = "text-size:10"
    modules: Sequence[str | PathLike[str]] | None = None  # Bitcode files, if no corpus.
    # ``training``, ``held-out`` or ``generated``. None means training and held-out.
    split: str | None = "training"
    leave_out: Sequence[str] = ()  # Programs of the split to omit.
    max_instructions: int | None = None  # Larger modules are omitted.
    steps: int = 15  # The maximum number of actions in an episode.
    stop: bool = False  # Whether there is an extra action that ends the episode.
    final: str = "last"  # The state that decides the return: ``last`` or ``best``.
    # The return is the gain over ``start``, the first state, or over ``oz``, the state
    # after -Oz. For ``oz``, the difference between the two states is added to the
    # reward of the first step.
    baseline: str = "start"
    flat: bool = False  # Whether several features are concatenated to one Box.
    vocabulary: str | PathLike[str] | None = None  # LLVM's JSON file for ``embedding``.
    plugin: str | PathLike[str] | None = None  # The path of MLBridgeLLVM.so.
    spec: str = "shm"  # The transport: ``shm``, ``pipe`` or ``grpc``, with options.
    timeout: float | None = 60.0  # Seconds that a step may take.
    failure_reward: float = 0.0  # The reward if the compiler crashes or hangs.
    # The number of recent modules whose results the compiler caches. None means 16.
    # Episodes on these modules are much faster.
    kept_programs: int | None = None
    # Whether ``info`` has ``step_ms`` and ``emit_ms``. The default is False, because
    # Gymnasium's checker requires that the same seed and actions give the same info.
    times: bool = False
    render_mode: str | None = None  # ``ansi`` or ``human``.
    worker: int = 0
    check: bool = False  # See `CompilerEnv`.

    def __post_init__(self) -> None:
        for name, *known in (("final", "last", "best"), ("baseline", "start", "oz")):
            if (given := getattr(self, name)) not in known:
                expected = " or ".join(known)
                raise InvalidArgument(f"{name}: expected {expected}, found '{given}'")
        if self.baseline == "oz" and self.reward == "none":
            raise InvalidArgument("baseline: without a reward nothing beats -Oz")
        if self.reward in POSET_REWARDS and (self.final, self.baseline) != (
            "last",
            "start",
        ):
            raise InvalidArgument(
                f"reward '{self.reward}': expected the default final and baseline,"
                f" last and start, found {self.final} and {self.baseline}"
            )

    def programs(self) -> list[list[Path]]:
        """Returns the modules of the episodes, one list per program."""
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
        """Returns the compiler's options, with the given `kept_programs`."""
        names = self.observation
        is_file = Path(self.action).is_file()
        cycles = POSET_REWARDS.get(self.reward)
        return EpisodeOptions(
            str(Path(self.action).resolve()) if is_file else self.action,
            tuple(names.split(",") if isinstance(names, str) else names),
            f"text-size,{cycles}" if cycles else self.reward,
            self.steps,
            self.stop,
            Path(self.vocabulary).resolve() if self.vocabulary else None,
            Path(self.plugin).resolve() if self.plugin else None,
            kept_programs,
        )


def _space_of(
    widths: Mapping[str, int], *, flat: bool
) -> tuple[spaces.Space[Any], spaces.Dict]:
    """Returns the observation space, and the space as a Dict of features."""
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
    """An environment in which an episode is a module, and a step runs a few passes.

    By default, the reward is 10 times the decrease in code size, relative to the size
    after -Oz. docs/reference/environments.md describes actions and observations.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        "render_fps": 4,
    }

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Stores the arguments, which are the fields of `EnvSettings`.

        The first reset starts the compiler. Raises InvalidArgument for an unknown
        corpus, module, feature or action space, and OSFailure if there is no plug-in.
        """
        settings = EnvSettings(*arguments, **named)
        self.programs = settings.programs()
        kept = settings.kept_programs
        kept = self._kept_by_default() if kept is None else kept
        self.options = settings.options(kept)
        self.final = settings.final
        # The reward that computes the value after -Oz, if -Oz is the baseline.
        is_beside_oz = settings.baseline == "oz"
        self._rival = Reward.parse(settings.reward) if is_beside_oz else None
        cycles = POSET_REWARDS.get(settings.reward)
        self._poset_reward = PosetReward(cycles) if cycles else None
        # The first state's gain over -Oz, which is added to the first reward.
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
            # Concatenate in the order of `widths`, which differs from a Dict's order.
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
        # For each state: the number of earlier actions, the last action, and the info.
        self._rows: list[tuple[int, int | None, Mapping[str, Any]]] = []

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on a random module of a random program.

        The option ``module`` names the module, ``sequence`` has actions to run before
        the first step, and ``output`` is a file for the resulting bitcode. See
        docs/guides/phase-ordering.md. `CompilerEnv.reset` describes the errors. For
        random modules, the errors are raised only after several failures.
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
                # Raise if no module has ever worked: the cause is not this module.
                never = not self._has_answered
                if never or "module" in asked or failures == _FAILURES:
                    raise
            else:
                self._has_answered = True
                # Reset the count, so that failures are counted per episode.
                self._session.failures = 0
                self._lead = self._lead_of(info, asked["final"])
                return observation, self._noted(None, info)

    def send(self, action: Any) -> None:
        """Sends an action. See `CompilerEnv.send`."""
        super().send(action)
        self._taken.append(int(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Receives the result of a step. See `CompilerEnv.receive`.

        If the compiler crashed or hung, ``info["reproducer"]`` is a command line that
        runs the same passes on the same module. The command line is also logged.
        """
        observation, reward, terminated, truncated, info = super().receive()
        if "error" in info:
            info["module"], info["sequence"] = self._module, list(self._taken)
            info["reproducer"] = self._log(info["error"])
        else:
            info = self._noted(self._taken[-1], info)
            if self._poset_reward is not None:
                first, before, after = (self._rows[at][2] for at in (0, -2, -1))
                reward = self._poset_reward.of(first, before, after)
            reward, self._lead = reward + self._lead, 0.0
        if self.render_mode == "human":
            print(self._rendered())
        return observation, reward, terminated, truncated, info

    def render(self) -> str | None:  # type: ignore[override]
        """Returns a table with the sizes and times of each action in the episode."""
        return self._rendered() if self.render_mode == "ansi" else None

    def _kept_by_default(self) -> int | None:
        return None

    def _drawn(self) -> Path:
        modules = self.programs[int(self._draw.integers(len(self.programs)))]
        return modules[int(self._draw.integers(len(modules)))]

    def _lead_of(self, info: Mapping[str, Any], final: object) -> float:
        """Returns the first state's gain over -Oz, or 0 for the baseline ``start``."""
        if self._rival is None:
            return 0.0
        # For ``best``, use the best state so far, which may be before the last action.
        is_best = final == "best"
        value = info["best_value"] if is_best else self._rival.value(info)
        return float(value) - self._rival.value(info, "oz_")

    def _noted(self, action: int | None, info: dict[str, Any]) -> dict[str, Any]:
        """Stores a state's info for `render`, and returns the info for the user."""
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
    """Makes a vector of `PhaseOrderingEnv`. ``gymnasium.make_vec`` calls this."""
    settings.pop("max_episode_steps", None)
    return CompilerVectorEnv(
        [PhaseOrderingEnv(worker=number, **settings) for number in range(num_envs)]
    )


KEPT_BITCODE = 20_000_000
"""The total size in bytes of the modules whose results a compiler caches in training.

The cache needs about 80 times this size. The training corpus has 7 MB.
"""


class TrainingEnv(PhaseOrderingEnv):
    """A `PhaseOrderingEnv` that caches results for `KEPT_BITCODE` bytes of modules.

    A large cache saves time, because a training uses each module many times.
    """

    def _kept_by_default(self) -> int:
        files = [file for program in self.programs for file in program]
        size = sum(file.stat().st_size for file in files)
        return max(1, len(files) * KEPT_BITCODE // max(size, KEPT_BITCODE))
