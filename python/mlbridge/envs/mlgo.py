# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The advisors of stock LLVM as environments. See docs/reference/environments.md.

An episode is one compile of a module, and a step is one decision. The reward is the
decrease in code size, relative to the code size with LLVM's heuristic.
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
from mlbridge.envs.spaces import finite
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
from mlbridge.printable import names
from mlbridge.types import Features

Observation: TypeAlias = dict[str, NDArray[Any]]
Step: TypeAlias = tuple[Observation, float, bool, bool, dict[str, Any]]

# A small module for which an advisor sends its header. The header is the same for all
# modules.
_PROBE = """\
define internal i32 @callee(i32 %x) { ret i32 %x }
define i32 @caller(i32 %x) {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}
"""
_MODULE = "{module}"


class MLGOEnvironment(gymnasium.Env[Observation, Any]):
    """The base class of the three environments.

    An episode is one compile of one module, and a step is one decision. The last reward
    is the decrease in code size, relative to the code size with LLVM's heuristic. For
    example, 0.02 means 2 % smaller code, and -0.1 means 10 % larger code. All earlier
    rewards are 0.

    An illegal action terminates the episode. Its reward is ``-illegal_action_penalty``,
    and ``info["illegal_action"]`` has the reason. If a compile exceeds its timeout, the
    episode is truncated, with ``info["timeout"]``. If the compiler fails, an exception
    is raised.

    Observations come from LLVM, but NaN is replaced by 0 and infinity by the largest
    float. The last observation of an episode is all zeros.

    Attributes:
        modules: the paths of the modules.
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
        """Compiles a tiny module to find out the features.

        Args:
            modules: the files to compile, in any format that the command accepts.
            command: clang, opt or llc with its arguments. ``{module}`` is replaced by
                the module. The object must go to stdout (``-o -``).
            illegal_action_penalty: the cost of an illegal action. For comparison, an
                episode that doubles the code size has the reward -1.
            timeout: seconds that a compile may take, including decisions and learning.
            decision_timeout: seconds to wait for each request of the compiler.
            include_default: whether the inliner's observations have the additional
                feature ``inlining_default``, LLVM's own decision.

        Raises:
            InvalidArgument: `modules` is empty, or the command lacks the advisor.
            CompilerFailed, OSFailure, Timeout: the command fails.
        """
        self.modules = [fspath(module) for module in modules]
        if not self.modules:
            raise InvalidArgument("expected modules to compile, found none")
        self._command = tuple(command or self.default_command)
        if not any(_MODULE in word for word in self._command):
            raise InvalidArgument(
                f"expected {_MODULE} in the command, found {' '.join(self._command)}"
            )
        self._penalty = float(illegal_action_penalty)
        self._timeout = timeout
        self._decision_timeout = decision_timeout
        self._include_default = include_default
        self._compiler: InteractiveCompilerInterface | None = None
        self._module = self.modules[0]
        self._decisions = 0
        self._stock: dict[str, int] = {}
        """Maps each module to its code size in bytes with LLVM's heuristic."""
        header = _probe(self._command, self.advisor, include_default, decision_timeout)
        self._specs = {spec.name: spec for spec in header.features}
        space: spaces.Space[Any] = spaces.Dict(
            {name: finite(spec.dtype, spec.shape) for name, spec in self._specs.items()}
        )
        self.observation_space = space
        self.action_space = self._action_space()

    @abstractmethod
    def _action_space(self) -> spaces.Space[Any]:
        """Returns the space of the actions. Called after the features are known."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Ends the current episode, and starts the compile of a module.

        Args:
            seed: the random seed for the choice of modules.
            options: ``{"module": path}`` chooses the module. By default, a random
                module with at least one decision is chosen.

        Returns:
            The first request, and an info with ``module``, ``context``, ``decisions``.

        Raises:
            InvalidArgument: the module is unknown, or requests no decision.
            CompilerFailed, OSFailure, Timeout: the compile fails.
        """
        super().reset(seed=seed)
        self.close()
        wanted = (options or {}).get("module")
        if wanted is not None:
            candidates = [fspath(wanted)]
            if candidates[0] not in self.modules:
                raise InvalidArgument(f"{candidates[0]} is not one of the modules")
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
        """Replies to the current request.

        Returns:
            The next request, the reward, terminated (the compile has ended, or the
            action was illegal), truncated (a timeout was exceeded), and an info as from
            `reset`. The last info also has ``text_size`` and ``stock_text_size``, in
            bytes of machine code, or else ``illegal_action`` or ``timeout``.

        Raises:
            gymnasium.error.ResetNeeded: no request waits for a reply.
            CompilerFailed: the compiler failed.
        """
        compiler = self._compiler
        if compiler is None:
            raise gymnasium.error.ResetNeeded(
                "no request waits for a reply; call reset()"
            )
        try:
            compiler.populate_buffer(self._advice(action))
        except SchemaMismatch as illegal:
            return self._end(-self._penalty, illegal_action=str(illegal))
        try:
            features = next(iter(compiler), None)
        except Timeout as timeout:
            return self._end(0.0, truncated=True, timeout=str(timeout))
        except BaseException:
            self.close()
            raise
        self._decisions += 1
        if features is not None:
            return self._observe(features), 0.0, False, False, self._info(features)
        size = text_size(compiler.result.stdout, self._module)
        if self._module not in self._stock:
            code = _run(_fill(self._command, self._module), self._timeout)
            self._stock[self._module] = text_size(code, self._module)
        stock = self._stock[self._module]
        reward = (stock - size) / stock if stock else 0.0
        return self._end(reward, text_size=size, stock_text_size=stock)

    def close(self) -> None:
        """Ends the current compile, if one runs."""
        if self._compiler is not None:
            self._compiler.close()
            self._compiler = None

    def _advice(self, action: Any) -> Any:
        """Converts an action to LLVM's advice."""
        return action

    def _begin(self, module: str) -> Features | None:
        """Starts a compile. Returns its first request, or None if it has no request."""
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
            self.close()
        elif {*features} != {*self._specs}:
            self.close()
            raise SchemaMismatch(
                f"{module}: expected the features {', '.join(self._specs)}; found"
                f" {names(features)}"
            )
        return features

    def _end(self, reward: float, *, truncated: bool = False, **more: Any) -> Step:
        """Returns the last step of an episode."""
        self.close()
        zeros = {
            name: np.zeros(spec.shape, spec.dtype) for name, spec in self._specs.items()
        }
        return zeros, reward, not truncated, truncated, self._info(zeros) | more

    def _observe(self, features: Features) -> Observation:
        observation = {name: value.copy() for name, value in features.items()}
        for value in observation.values():
            # Replace NaN and infinity, which LLVM sends for 0 / 0 and some weights.
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                np.nan_to_num(value, copy=False)
        return observation

    def _info(self, features: Features) -> dict[str, Any]:
        return {
            "module": self._module,
            "context": self._compiler.context if self._compiler else "",
            "decisions": self._decisions,
        }


class MLGOInliner(MLGOEnvironment):
    """The inliner: for each call, the action 1 inlines the callee and 0 does not."""

    advisor = "inliner"
    default_command = ("clang-22", "-Oz", "-w", "-c", _MODULE, "-o", "-")

    def _action_space(self) -> spaces.Space[Any]:
        return spaces.Discrete(2)


class MLGOEviction(MLGOEnvironment):
    """The eviction advisor: an action is a register whose live ranges are evicted.

    ``mask`` is 1 at each legal action. ``info["action_mask"]`` is a copy of ``mask``.
    """

    advisor = "eviction"
    default_command = ("clang-22", "-O2", "-w", "-c", _MODULE, "-o", "-")

    def _action_space(self) -> spaces.Space[Any]:
        size = self._specs["mask"].shape[-1]
        self._mask = np.zeros(size, np.int8)
        return spaces.Discrete(size)

    def _info(self, features: Features) -> dict[str, Any]:
        self._mask = features["mask"][0].astype(np.int8)
        return super()._info(features) | {"action_mask": self._mask}

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask of legal actions for MaskablePPO of sb3-contrib."""
        return self._mask.astype(np.bool_)


class MLGOPriority(MLGOEnvironment):
    """The priority advisor: an action is the priority, from 0 to 1, of a live range.

    The highest priority is allocated first. LLVM receives the action multiplied by
    4294967040.
    """

    advisor = "priority"
    default_command = MLGOEviction.default_command

    def _action_space(self) -> spaces.Space[Any]:
        return spaces.Box(0.0, 1.0, (1,), np.float32)

    def _advice(self, action: Any) -> Any:
        return np.asarray(action, np.float64) * Priority.LARGEST


def _fill(command: Sequence[str], module: str) -> list[str]:
    return [word.replace(_MODULE, module) for word in command]


@lru_cache(maxsize=64)
def _probe(
    command: tuple[str, ...], advisor: AdvisorName, include_default: bool, limit: float
) -> Header:
    """Returns the header that a command sends for an advisor."""
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
            f"{' '.join(command)}: the {advisor} sent no request: use -O1 or higher"
        )
    return headers[advisor]


def _run(command: Sequence[str], limit: float) -> bytes:
    """Runs a compile with LLVM's own decisions. Returns its stdout."""
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
