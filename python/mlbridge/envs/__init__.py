# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilers as environments for any reinforcement-learning library.

`CompilerEnv` is a compiler that serves its Environment (docs/guides/training.md).
`make_vec` makes a vector environment of several; `CompilerVecEnv` is one for
Stable-Baselines3. `MultiAgentCompilerEnv` has several agents, for RLlib. `Padded` makes
tensors of fixed size from graphs and sequences. `MLGOInliner`, `MLGOEviction` and
`MLGOPriority` are stock LLVM's advisors.

Importing this module registers the environments with Gymnasium::

    gymnasium.make("mlbridge.envs:mlbridge/MLGOInliner-v0", modules=["a.c"])

imports it; so does ``import mlbridge.envs`` before the plain id
``mlbridge/MLGOInliner-v0``. Other distributions register theirs by an entry point of
the group ``mlbridge.environments``, a function that is called at the import.

The environments need the package's extra ``envs``. Each is imported when first used.
"""

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlbridge.envs.channel import EnvironmentChannel
    from mlbridge.envs.compiler import CompilerEnv
    from mlbridge.envs.mlgo import MLGOEviction, MLGOInliner, MLGOPriority
    from mlbridge.envs.multi_agent import MultiAgentCompilerEnv
    from mlbridge.envs.sb3 import CompilerVecEnv
    from mlbridge.envs.spaces import Padded
    from mlbridge.envs.vector import CompilerVectorEnv, make_vec

# The module of each name, which is imported when the name is first used.
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
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


# `EnvironmentChannel` does not need Gymnasium.
if find_spec("gymnasium") is not None:
    from gymnasium.envs.registration import register, registry

    for _name in ("MLGOEviction", "MLGOInliner", "MLGOPriority"):
        if f"mlbridge/{_name}-v0" not in registry:
            register(f"mlbridge/{_name}-v0", entry_point=f"{_HOMES[_name]}:{_name}")

    for _point in entry_points(group="mlbridge.environments"):
        _point.load()()
