# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock LLVM's advisors as environments: an episode compiles a module, a step decides.

The reward is what it is all for: how much smaller the machine code has become than that
of LLVM's own heuristic. docs/environments.md has the tables.
"""

import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from os import PathLike, fspath
from typing import Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge.envs.machine_code import text_size
from mlbridge.errors import (
    CompilerFailed,
    InvalidArgument,
    OSFailure,
    SchemaMismatch,
    Timeout,
)
from mlbridge.interactive import AdvisorName, InteractiveCompilerInterface
from mlbridge.interactive.advisors import Priority
from mlbridge.interactive.channel import Header
from mlbridge.log import TensorSpec
from mlbridge.printable import names
from mlbridge.types import Features

Observation: TypeAlias = dict[str, NDArray[Any]]
Step: TypeAlias = tuple[Observation, float, bool, bool, dict[str, Any]]

# What a compiler says of its features when it sees this is what it always says.
_PROBE = """\
define internal i32 @callee(i32 %x) { ret i32 %x }
define i32 @caller(i32 %x) {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}
"""
_PLACE = "{module}"


class MLGOEnvironment(gymnasium.Env[Observation, Any]):
    """What the three have in common.

    An episode is one compile of one module, a step is one decision. The reward is 0 but
    for the last step, where it is the machine code that was saved, relative to what
    LLVM's own heuristic makes of the module: 0.02 is 2 % smaller, -0.1 is 10 % larger.

    An action that LLVM must not get (see the table of each) ends the episode: it is
    terminated with the reward ``-illegal_action_penalty``, and
    ``info["illegal_action"]`` says what was wrong. A compile that takes too long is
    truncated, with ``info["timeout"]``. A compiler that fails is an exception.

    The observation is what LLVM says, but for what no network can take: NaN is 0, and
    an infinity the largest float. The last one of an episode is all zeros, since there
    is no request left.

    Attributes:
        modules: the modules, as they were given.
    """

    advisor: ClassVar[AdvisorName]
    default_command: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        modules: Sequence[str | PathLike[str]],
        *,
        command: Sequence[str] | None = None,
        illegal_action_penalty: float = 1.0,
        timeout: float = 3600.0,
        decision_timeout: float = 60.0,
        include_default: bool = False,
    ) -> None:
        """Asks the compiler for its features, and compiles nothing yet.

        Args:
            modules: the files to compile, whatever the command takes (.c, .ll, .bc).
            command: clang, opt or llc with its arguments; ``{module}`` is where the
                module goes, and the object goes to stdout (``-o -``).
            illegal_action_penalty: what such an action costs; 1 is as much as code
                twice the size.
            timeout: seconds that a compile may take, with all deciding and learning
                in between.
            decision_timeout: seconds that the compiler may take to ask again.
            include_default: whether the inliner's observations have LLVM's own
                decision, ``inlining_default``.

        Raises:
            InvalidArgument: there is no module, or the command asks for no decision.
            CompilerFailed, OSFailure, Timeout: the command does not work.
        """
        self.modules = [fspath(module) for module in modules]
        if not self.modules:
            raise InvalidArgument("expected modules to compile, found none")
        self._command = tuple(command or self.default_command)
        if not any(_PLACE in word for word in self._command):
            raise InvalidArgument(
                f"expected {_PLACE} in the command, found {' '.join(self._command)}"
            )
        self._penalty = float(illegal_action_penalty)
        self._timeout = timeout
        self._decision_timeout = decision_timeout
        self._include_default = include_default
        self._compiler: InteractiveCompilerInterface | None = None
        self._module = self.modules[0]
        self._decisions = 0
        self._stock: dict[str, int] = {}
        header = _probe(self._command, self.advisor, include_default, decision_timeout)
        self._specs = {spec.name: spec for spec in header.features}
        space: spaces.Space[Any] = spaces.Dict(
            {name: _space(spec) for name, spec in self._specs.items()}
        )
        self.observation_space = space
        self.action_space = self._action_space()

    @abstractmethod
    def _action_space(self) -> spaces.Space[Any]:
        """Of what the actions are; the features are known."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Ends the episode at hand, and starts the compile of a module.

        Args:
            seed: for the choice among the modules.
            options: ``{"module": path}`` compiles that one of the modules; otherwise
                it is one at random that has a decision to make.

        Returns:
            The first request, and info: ``module``, ``context``, ``decisions`` so far.

        Raises:
            InvalidArgument: the module is none of them, or asks for no decision.
            CompilerFailed, OSFailure, Timeout: it cannot be compiled.
        """
        super().reset(seed=seed)
        self._stop()
        wanted = (options or {}).get("module")
        if wanted is not None:
            candidates = [fspath(wanted)]
            if candidates[0] not in self.modules:
                raise InvalidArgument(f"{candidates[0]} is none of the modules")
        else:
            order = self.np_random.permutation(len(self.modules))
            candidates = [self.modules[index] for index in order]
        for module in candidates:
            features = self._begin(module)
            if features is not None:
                return self._observe(features), self._info(features)
        raise InvalidArgument(
            f"{', '.join(candidates):.200}: the {self.advisor} has nothing to decide"
        )

    def step(self, action: Any) -> Step:
        """Answers the request at hand.

        Returns:
            The next request, the reward, whether the compile has ended, whether it
            took too long, and info: as of `reset`, and at the end of a compile
            ``text_size`` and ``stock_text_size``, bytes of machine code.

        Raises:
            gymnasium.error.ResetNeeded: there is no request at hand.
            CompilerFailed: the compiler has failed.
        """
        compiler = self._compiler
        if compiler is None:
            raise gymnasium.error.ResetNeeded("no request is at hand; call reset()")
        try:
            compiler.populate_buffer(self._advice(action))
        except SchemaMismatch as illegal:
            return self._end(-self._penalty, illegal_action=str(illegal))
        try:
            features = next(iter(compiler), None)
        except Timeout as timeout:
            return self._end(0.0, truncated=True, timeout=str(timeout))
        except BaseException:
            self._stop()
            raise
        self._decisions += 1
        if features is not None:
            return self._observe(features), 0.0, False, False, self._info(features)
        size = text_size(compiler.result.stdout, self._module)
        stock = self._stock_text_size()
        reward = (stock - size) / stock if stock else 0.0
        return self._end(reward, text_size=size, stock_text_size=stock)

    def close(self) -> None:
        """Ends the compile at hand, if any."""
        self._stop()

    def _advice(self, action: Any) -> Any:
        """What LLVM is told of an action."""
        return action

    def _begin(self, module: str) -> Features | None:
        """Starts a compile, and returns its first request, if it has one."""
        self._module, self._decisions = module, 0
        self._compiler = InteractiveCompilerInterface(
            _fill(self._command, module),
            self.advisor,
            timeout=self._timeout,
            decision_timeout=self._decision_timeout,
            include_default=self._include_default,
        )
        features = next(iter(self._compiler), None)
        if features is None:
            self._stop()
        elif {*features} != {*self._specs}:
            self._stop()
            raise SchemaMismatch(
                f"{module}: expected the features {', '.join(self._specs)}; found"
                f" {names(features)}"
            )
        return features

    def _stop(self) -> None:
        if self._compiler is not None:
            self._compiler.close()
            self._compiler = None

    def _end(self, reward: float, *, truncated: bool = False, **more: Any) -> Step:
        """The last step of an episode."""
        self._stop()
        nothing = {
            name: np.zeros(spec.shape, spec.dtype) for name, spec in self._specs.items()
        }
        info = self._info(nothing) | more
        return nothing, reward, not truncated, truncated, info

    def _observe(self, features: Features) -> Observation:
        observation = {name: value.copy() for name, value in features.items()}
        for value in observation.values():
            # LLVM has shares of nothing (0 / 0) and weights without a limit.
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                np.nan_to_num(value, copy=False)
        return observation

    def _info(self, features: Features) -> dict[str, Any]:
        context = self._compiler.context if self._compiler else ""
        return {
            "module": self._module,
            "context": context,
            "decisions": self._decisions,
        }

    def _stock_text_size(self) -> int:
        """Bytes of machine code that the module has by LLVM's own decisions."""
        if self._module not in self._stock:
            command = _fill(self._command, self._module)
            code = _run(command, self._timeout)
            self._stock[self._module] = text_size(code, self._module)
        return self._stock[self._module]


class MLGOInliner(MLGOEnvironment):
    """Which calls are inlined: 1 inlines, 0 does not."""

    advisor = "inliner"
    default_command = ("clang-22", "-Oz", "-w", "-c", _PLACE, "-o", "-")

    def _action_space(self) -> spaces.Space[Any]:
        return spaces.Discrete(2)


class MLGOEviction(MLGOEnvironment):
    """Whose register is taken, when none is free: the place of one in `mask`.

    Legal are the places where ``mask`` is 1, which ``info["action_mask"]`` and
    `action_masks` repeat.
    """

    advisor = "eviction"
    default_command = ("clang-22", "-O2", "-w", "-c", _PLACE, "-o", "-")

    def _action_space(self) -> spaces.Space[Any]:
        places = self._specs["mask"].shape[-1]
        self._mask = np.zeros(places, np.int8)
        return spaces.Discrete(places)

    def _info(self, features: Features) -> dict[str, Any]:
        self._mask = features["mask"][0].astype(np.int8)
        return super()._info(features) | {"action_mask": self._mask}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, as sb3-contrib's MaskablePPO asks for them."""
        return self._mask.astype(np.bool_)


class MLGOPriority(MLGOEnvironment):
    """Which live range is given a register next: that of the highest action, of 0 to 1.

    LLVM compares whole numbers, and gets an action's share of 4294967040.
    """

    advisor = "priority"
    default_command = MLGOEviction.default_command

    def _action_space(self) -> spaces.Space[Any]:
        return spaces.Box(0.0, 1.0, (1,), np.float32)

    def _advice(self, action: Any) -> Any:
        return np.asarray(action, np.float64) * Priority.LARGEST


def _space(spec: TensorSpec) -> spaces.Box:
    """All finite values of a tensor's type."""
    is_float = spec.dtype.kind == "f"
    limits = np.finfo(spec.dtype) if is_float else np.iinfo(spec.dtype)
    return spaces.Box(limits.min, limits.max, spec.shape, spec.dtype.type)


def _fill(command: Sequence[str], module: str) -> list[str]:
    return [word.replace(_PLACE, module) for word in command]


@lru_cache(maxsize=64)
def _probe(
    command: tuple[str, ...], advisor: AdvisorName, include_default: bool, limit: float
) -> Header:
    """What the advisor of a command says of its requests."""
    with tempfile.NamedTemporaryFile("w", prefix="mlbridge-", suffix=".ll") as probe:
        probe.write(_PROBE)
        probe.flush()
        with InteractiveCompilerInterface(
            _fill(command, probe.name),
            advisor,
            timeout=limit,
            include_default=include_default,
        ) as compiler:
            next(iter(compiler), None)
            headers = compiler.headers
    if advisor not in headers:
        raise InvalidArgument(
            f"{' '.join(command)}: the {advisor} is not asked; it takes -O1 or more"
        )
    return headers[advisor]


def _run(command: Sequence[str], limit: float) -> bytes:
    """The stdout of a compile that needs no help."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        raise Timeout(f"{command[0]} has not ended within {limit} s") from None
    except OSError as error:
        raise OSFailure(f"cannot run {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        stderr = done.stderr.decode(errors="replace")
        failure = CompilerFailed(
            f"{' '.join(command)} ended with status {done.returncode}: {stderr.strip()}"
        )
        failure.returncode, failure.stderr = done.returncode, stderr
        raise failure
    return done.stdout
