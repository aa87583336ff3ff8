# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environment: actions, observations and rewards, and the compiler behind them."""


def register() -> None:
    """Has ``gymnasium.make`` know its id, if it does not yet: for `mlbridge.envs`.

    Nothing of it is loaded before it is made.
    """
    from gymnasium.envs import registration

    name, module = "mlbridge/PhaseOrdering-v0", f"{__name__}.environment"
    if name not in registration.registry:
        registration.register(
            name,
            entry_point=f"{module}:PhaseOrderingEnv",
            vector_entry_point=f"{module}:make_vec",
        )
