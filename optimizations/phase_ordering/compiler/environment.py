# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PhaseOrderingEnv: in which order LLVM's passes run on a module, as an environment."""

import io
import logging
from collections.abc import Callable, Mapping, Sequence
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
from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions
from mlbridge_optimizations.phase_ordering.compiler.reward import Reward

logger = logging.getLogger("mlbridge.envs")

_TIMES = ("step_ms", "emit_ms")

_FAILURES = 5
"""Modules in a row on which no compiler may survive a reset, before that is raised."""


class PhaseOrderingEnv(CompilerEnv):
    """An episode is a module of a corpus, a step runs a few passes on it.

    The reward is how much smaller the machine code became, as a share of what stock -Oz
    makes of the module, times 10. docs/environments.md has the tables.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        "render_fps": 4,
    }

    def __init__(
        self,
        corpus: str | PathLike[str] | None = None,
        observation: str | Sequence[str] = ("histogram", "counts", "step"),
        action: str = "oz",
        reward: str = "text-size:10",
        *,
        modules: Sequence[str | PathLike[str]] | None = None,
        split: str | None = "training",
        leave_out: Sequence[str] = (),
        max_instructions: int | None = None,
        steps: int = 15,
        stop: bool = False,
        final: str = "last",
        baseline: str = "start",
        flat: bool = False,
        vocabulary: str | PathLike[str] | None = None,
        plugin: str | PathLike[str] | None = None,
        spec: str = "shm",
        timeout: float | None = 60.0,
        failure_reward: float = 0.0,
        kept_programs: int | None = None,
        times: bool = False,
        render_mode: str | None = None,
        worker: int = 0,
        check: bool = False,
    ) -> None:
        """Describes the environment; the compiler is started at the first reset.

        Args:
            corpus: its folder; `mlbridge corpus fetch` makes one.
            observation: a list of ``histogram``, ``embedding``, ``counts``, ``step``
                and ``actions``, also with commas between. One alone is a Box, several
                are a Dict of them by name.
            action: the space of actions: ``oz``, ``odg``, ``passes``, or a file.
            reward: ``text-size``, ``instructions`` and ``mca-cycles``, each with its
                weight, such as ``text-size:10,mca-cycles:5``.
            modules: bitcode files, instead of a corpus.
            split: of the corpus: ``training``, ``held-out``, ``generated``; None for
                all but the generated.
            leave_out: programs of the split that no episode is about.
            max_instructions: larger modules are left out.
            steps: how many actions an episode has, or may have with ``stop``.
            stop: whether there is one action more, the last, that ends the episode.
            final: which state an episode is judged by, ``last`` or ``best``.
            baseline: what the sum of an episode's rewards is relative to: ``start``,
                the state that it begins with, or ``oz``, what stock -Oz makes. The
                first step's reward then has a part more: what the state before it is
                worth beside -Oz. If the compiler fails in it, there is none.
            flat: whether several features are put in one row, a Box.
            vocabulary: what ``embedding`` is made with, in LLVM's form (JSON).
            plugin: MLBridgeLLVM.so, if it is not where `mlbridge doctor` finds it.
            spec: how to reach the compiler: ``shm``, ``pipe``, ``grpc``, with options.
            timeout: seconds for a step; a pass that takes longer hangs.
            failure_reward: of a step in which the compiler crashes or hangs.
            kept_programs: of how many modules the compiler remembers what it has made
                of them, the last ones that it was asked for; None is 16 of them. It is
                by far the quicker the more of the modules it knows.
            times: whether ``info`` has ``step_ms`` and ``emit_ms``, too. Without these
                the same seed and actions give the same info, as Gymnasium's checker
                wants it.
            render_mode: ``ansi`` or ``human``, which show the times in any case.
            worker: its number, where there are several.
            check: as for `CompilerEnv`.

        Raises:
            InvalidArgument: there is no such corpus, module, feature or action space.
            OSFailure: there is no plug-in.
        """
        self.programs = _programs(corpus, modules, split, leave_out, max_instructions)
        names = observation.split(",") if isinstance(observation, str) else observation
        where = Path(vocabulary).resolve() if vocabulary else None
        self.options = CompilerOptions(
            action if not Path(action).is_file() else str(Path(action).resolve()),
            tuple(names),
            reward,
            steps,
            stop,
            where,
            _dimension(where),
            Path(plugin).resolve() if plugin else None,
            self._kept_by_default() if kept_programs is None else kept_programs,
        )
        if final not in ("last", "best"):
            raise InvalidArgument(f"final: expected last or best, found '{final}'")
        if baseline not in ("start", "oz"):
            raise InvalidArgument(f"baseline: expected start or oz, found '{baseline}'")
        if baseline == "oz" and reward == "none":
            raise InvalidArgument("baseline: without a reward nothing beats -Oz")
        self.final = final
        # Of whom an episode has to be better; None: of its own start.
        self._rival = Reward.parse(reward) if baseline == "oz" else None
        # By how much it is when it begins, until that is told.
        self._lead = 0.0
        self.render_mode = render_mode
        lows = {
            name: np.full(width, -np.inf if name == "embedding" else 0, np.float32)
            for name, width in self.options.widths.items()
        }
        boxes: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(low, np.inf, low.shape, np.float32)
            for name, low in lows.items()
        }
        by_name, is_row = spaces.Dict(boxes), flat and len(boxes) > 1
        space: spaces.Space[Any] = by_name
        if len(boxes) == 1 or flat:
            low = np.concatenate(list(lows.values()))
            space = spaces.Box(low, np.inf, low.shape, np.float32)
        super().__init__(
            self.options.command(),
            spec,
            observation_space=space,
            action_space=spaces.Discrete(self.options.choices),
            timeout=timeout,
            failure_reward=failure_reward,
            worker=worker,
            check=check,
        )
        if is_row:
            self._read = _row(ObservationReader(by_name), list(boxes))  # type: ignore[assignment]
        self._draw = np.random.default_rng()
        self._times = times
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
        return float(value) - self._rival.oz(info)

    def _noted(self, action: int | None, info: dict[str, Any]) -> dict[str, Any]:
        """Keeps a state's info for the table; returns what the user sees of it."""
        self._rows.append((len(self._taken), action, info))
        if self._times:
            return info
        return {key: value for key, value in info.items() if key not in _TIMES}

    def _log(self, error: object) -> str:
        command = self.options.reproducer(self._module, self._taken)
        logger.warning(
            "the compiler failed on %s after the actions %s: %s\nto see it alone: %s",
            self._module,
            self._taken,
            error,
            command,
        )
        return command

    def _rendered(self) -> str:
        """The table of the episode."""
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


def _row(
    read: ObservationReader, names: Sequence[str]
) -> Callable[[Features], tuple[NDArray[np.float32], dict[str, Any]]]:
    """Reads features by name, and puts them in a row."""

    def found(features: Features) -> tuple[NDArray[np.float32], dict[str, Any]]:
        by_name, rest = read(features)
        return np.concatenate([by_name[name] for name in names]), rest

    return found


def _dimension(vocabulary: Path | None) -> int:
    if vocabulary is None:
        return 300
    from mlbridge import ir2vec

    return ir2vec.load(vocabulary).dimension


def _programs(
    corpus: str | PathLike[str] | None,
    modules: Sequence[str | PathLike[str]] | None,
    split: str | None,
    leave_out: Sequence[str],
    most: int | None,
) -> list[list[Path]]:
    """The modules to choose from, by program."""
    if (corpus is None) == (modules is None):
        raise InvalidArgument(
            "say corpus=FOLDER (`mlbridge corpus fetch` makes one) or modules=[FILE, "
            "...], what episodes are to be about"
        )
    if modules is not None:
        files = [Path(module).resolve() for module in modules]
        for file in files:
            if not file.is_file():
                raise InvalidArgument(f"there is no module {file}")
        if not files:
            raise InvalidArgument("modules: expected one at least")
        return [files]
    assert corpus is not None
    found = manifest.load(Path(corpus).resolve())
    by_program: dict[str, list[Path]] = {}
    for path in found.modules(split, most=most, without=leave_out):
        by_program.setdefault(manifest.program_of(path), []).append(path)
    if not by_program:
        raise InvalidArgument(f"{corpus} has no module of {most} instructions or less")
    return list(by_program.values())


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
