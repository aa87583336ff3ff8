# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inlining for the smallest program as a Gymnasium environment.

An episode optimises one program with the plug-in in a stock `opt`
(compilers/llvm/Size/SizeEnvironment.h). docs/reference/environments/smallest-code.md
describes the environment for trainers.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, Unpack

import numpy as np
from gymnasium import spaces

from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.session import CompilerOptions, CompilerSession, CompilerSettings
from mlbridge.envs.spaces import finite
from mlbridge.envs.vector import CompilerVectorEnv
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.corpus.toolchain import CLANG, OPT, run
from mlbridge_optimizations.corpus.wrapper import BITCODE, COMPILE

from .flags import FEATURES
from .searched import SearchedProgram

PASSES = "mlbridge-size-environment"


@dataclass(frozen=True)
class TrainingProgram:
    """A program of the environment."""

    module: Path  # All files, linked into one module of bitcode.
    callee_files: Path | None  # Has the number of objects that define each function.

    @classmethod
    def of(cls, path: Path) -> Self:
        """Returns the program of a module, or of a folder that a search has written.

        Raises InvalidArgument if the path is neither.
        """
        if path.is_dir():
            searched = SearchedProgram.open(path)
            counts = searched.callee_files
            return cls(searched.module, counts if counts.is_file() else None)
        if not path.is_file():
            raise InvalidArgument(
                f"{path}: expected a module of bitcode, or a folder that `mlbridge"
                " search smallest-code` has written; found neither"
            )
        return cls(path.resolve(), None)

    def options(self) -> dict[str, str]:
        """Returns the compiler's options for an episode."""
        found = {"module": str(self.module)}
        if self.callee_files is not None:
            found["callee_files"] = str(self.callee_files)
        return found


def command(plugin: Path, kept_programs: int | None = None) -> list[str]:
    """Returns the command of a compiler that serves the environment."""
    flags = [f"-mlbridge-{flag}" for flag in FEATURES]
    if kept_programs is not None:
        flags.append(f"-mlbridge-size-programs={kept_programs}")
    plug_in = f"-load-pass-plugin={plugin}"
    # opt requires a module.
    return [OPT, plug_in, f"-passes={PASSES}", *flags, "-disable-output", os.devnull]


@lru_cache(maxsize=8)
def observation_space(plugin: Path) -> spaces.Dict:
    """Returns the space of the features that the plug-in sends.

    The plug-in compiles a program without calls, and sends the last observation of the
    episode. Raises PeerClosed if the compiler fails.
    """
    with TemporaryDirectory(prefix="mlbridge-features-") as folder:
        module = Path(folder, "main.bc")
        options = [*COMPILE, *BITCODE, "-x", "c", "-c", "-", "-o", str(module)]
        run([CLANG, *options], text="int main(void) { return 0; }\n")
        session = CompilerSession(CompilerSettings(command(plugin), "shm"))
        with closing(session):
            found = session.reset(None, {"module": str(module)}).features
            return spaces.Dict(
                {
                    name: finite(value.dtype, value.shape)
                    for name, value in found.items()
                    if isinstance(value, np.ndarray)
                }
            )


class SmallestCodeEnv(CompilerEnv):
    """An environment in which a step decides whether a call is inlined.

    The reward of the last step is the decrease of the linked code, relative to clang
    -Oz. For example, 0.02 means 2 % smaller code. All earlier rewards are 0.
    ``info["credits"]`` of the last step has the part of the reward that each decision
    has earned.
    """

    def __init__(
        self,
        programs: Sequence[str | PathLike[str]],
        *,
        plugin: str | PathLike[str] | None = None,
        kept_programs: int | None = None,
        spec: str = "shm",
        failure_reward: float = -1.0,
        check: bool = False,
        render_mode: None = None,
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Finds out the features. The first reset starts the compiler of the episodes.

        Args:
            programs: folders that `mlbridge search smallest-code` has written, or
                modules of bitcode (docs/reference/environments/smallest-code.md).
            plugin: MLBridgeLLVM.so. The default is the file that `mlbridge doctor`
                finds.
            kept_programs: the number of programs that the compiler keeps in memory. The
                default is all programs.
            spec: the transport. See `CompilerEnv`.
            failure_reward: the reward of a step in which the compiler failed.
            check: see `CompilerEnv`.
            render_mode: only None.
            **options: timeouts, restarts and more. See `CompilerOptions`.

        Raises:
            InvalidArgument: there is no program or no plug-in, or a path is wrong.
            PeerClosed: the compiler failed.
        """
        self.programs = {str(path): TrainingProgram.of(Path(path)) for path in programs}
        if not self.programs:
            raise InvalidArgument("expected programs, found none")
        found = plugin_of(Path(plugin) if plugin is not None else None)
        super().__init__(
            command(found, kept_programs or len(self.programs)),
            spec,
            observation_space=observation_space(found),
            action_space=spaces.Discrete(2),
            failure_reward=failure_reward,
            check=check,
            **options,
        )
        self.render_mode = render_mode
        self._draw = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode. See `CompilerEnv.reset`.

        The option ``program`` is one of the constructor's ``programs``, in the same
        form. By default, a random program is chosen. Raises InvalidArgument for another
        program or option.
        """
        if seed is not None:
            self._draw = np.random.default_rng(seed)
        asked = dict(options or {})
        names = list(self.programs)
        name = str(asked.pop("program", names[int(self._draw.integers(len(names)))]))
        if asked or name not in self.programs:
            found = ", ".join(asked) or f"the program {name}"
            raise InvalidArgument(
                "the options of reset: expected the option 'program' with one of"
                f" {', '.join(names)}; found {found}"
            )
        return super().reset(seed=seed, options=self.programs[name].options())


def make_vec(num_envs: int, **settings: Any) -> CompilerVectorEnv:
    """Makes a vector of `SmallestCodeEnv`. ``gymnasium.make_vec`` calls this."""
    settings.pop("max_episode_steps", None)
    return CompilerVectorEnv(
        [SmallestCodeEnv(worker=number, **settings) for number in range(num_envs)]
    )
