# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environment: actions, observations and rewards, and the compiler."""


def register() -> None:
    """Registers the id for ``gymnasium.make``; `mlbridge.envs` calls this.

    The environment's module is imported when an environment is made.
    """
    from gymnasium.envs import registration

    name, module = "mlbridge/PhaseOrdering-v0", f"{__name__}.environment"
    if name not in registration.registry:
        registration.register(
            name,
            entry_point=f"{module}:PhaseOrderingEnv",
            vector_entry_point=f"{module}:make_vec",
        )
