# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilers as environments for reinforcement learning.

- `CompilerEnv`: a compiler that serves an Environment (docs/guides/training.md).
- `make_vec`: a Gymnasium vector environment of several compilers.
- `CompilerVecEnv`: a vector environment for Stable-Baselines3.
- `MultiAgentCompilerEnv`: a compiler with several agents, for RLlib.
- `Padded`: pads graphs and sequences to tensors of fixed size.
- `MLGOInliner`, `MLGOEviction`, `MLGOPriority`: the advisors of stock LLVM.

The import of this module registers the environments with Gymnasium. Gymnasium imports
the module itself if the ID starts with the module's name::

    gymnasium.make("mlbridge.envs:mlbridge/MLGOInliner-v0", modules=["a.c"])

To register environments of another distribution, declare a function as an entry point
in the group ``mlbridge.environments``. All environments need the extra ``envs``.
"""

import logging
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mlbridge.extras import how_to_install, need

if TYPE_CHECKING:
    from mlbridge.envs.channel import EnvironmentChannel
    from mlbridge.envs.compiler import CompilerEnv
    from mlbridge.envs.mlgo import MLGOEviction, MLGOInliner, MLGOPriority
    from mlbridge.envs.multi_agent import MultiAgentCompilerEnv
    from mlbridge.envs.sb3 import CompilerVecEnv
    from mlbridge.envs.spaces import Padded
    from mlbridge.envs.vector import CompilerVectorEnv, make_vec

# Maps each name to its module, which is imported when the name is first used.
_HOMES = {
    "CompilerEnv": "mlbridge.envs.compiler",
    "CompilerVecEnv": "mlbridge.envs.sb3",
    "CompilerVectorEnv": "mlbridge.envs.vector",
    "EnvironmentChannel": "mlbridge.envs.channel",
    "MLGOEviction": "mlbridge.envs.mlgo",
    "MLGOInliner": "mlbridge.envs.mlgo",
    "MLGOPriority": "mlbridge.envs.mlgo",
    "MultiAgentCompilerEnv": "mlbridge.envs.multi_agent",
    "Padded": "mlbridge.envs.spaces",
    "make_vec": "mlbridge.envs.vector",
}

# Maps each environment to the library for which it is made.
_LIBRARIES = {
    "CompilerVecEnv": ("stable_baselines3",),
    "MultiAgentCompilerEnv": ("ray",),
}

__all__ = [
    "CompilerEnv",
    "CompilerVecEnv",
    "CompilerVectorEnv",
    "EnvironmentChannel",
    "MLGOEviction",
    "MLGOInliner",
    "MLGOPriority",
    "MultiAgentCompilerEnv",
    "Padded",
    "make_vec",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        library = _LIBRARIES.get(name, ())
        packages = () if name == "EnvironmentChannel" else ("gymnasium", *library)
        where = ("train", "./optimizations") if library else ("envs",)
        need(f"mlbridge.envs.{name}", packages, how_to_install(*where))
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


# Allow the import without Gymnasium, because `EnvironmentChannel` does not need it.
if find_spec("gymnasium") is not None:
    from gymnasium.envs.registration import register, registry

    for _name in ("MLGOEviction", "MLGOInliner", "MLGOPriority"):
        if f"mlbridge/{_name}-v0" not in registry:
            register(f"mlbridge/{_name}-v0", entry_point=f"{_HOMES[_name]}:{_name}")

    for _point in entry_points(group="mlbridge.environments"):
        # Skip a broken entry point, so that all other environments still work.
        try:
            _point.load()()
        except (Exception, SystemExit) as _error:
            logging.getLogger("mlbridge.envs").warning(
                "%s (%s) is left out: %s: %s",
                *(_point.name, _point.value, type(_error).__name__, _error),
            )
