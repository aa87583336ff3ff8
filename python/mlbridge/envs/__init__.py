# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilers as environments, for any library of reinforcement learning.

`CompilerEnv` is a compiler that serves its Environment (docs/training.md), `make_vec`
several of them at once, `CompilerVecEnv` the same for Stable-Baselines3,
`MultiAgentCompilerEnv` one of several agents for RLlib; `Padded` makes tensors of fixed
size of graphs and sequences. `MLGOInliner`, `MLGOEviction`
and `MLGOPriority` are stock LLVM's advisors; ``gymnasium.make`` knows these by their
ids, such as ``mlbridge/MLGOInliner-v0``, once ``mlbridge.envs`` is imported. Other
distributions add theirs by entry points of the group ``mlbridge.environments``.

They need the package's extra ``envs``; each is loaded when it is asked for.
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

# Where each one is; a module is not loaded before it is wanted.
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

# The ones that need no arguments, or strings only.
_REGISTERED = ("MLGOEviction", "MLGOInliner", "MLGOPriority")

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


# A server of environments of another library needs the channel, and no Gymnasium.
if find_spec("gymnasium") is not None:
    from gymnasium.envs.registration import register, registry

    for _name in _REGISTERED:
        if f"mlbridge/{_name}-v0" not in registry:
            register(f"mlbridge/{_name}-v0", entry_point=f"{_HOMES[_name]}:{_name}")

    for _point in entry_points(group="mlbridge.environments"):
        _point.load()()
