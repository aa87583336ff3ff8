# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environment of phase ordering, and functions to run its compiler."""


def register() -> None:
    """Registers the environment with Gymnasium. `mlbridge.envs` calls this function.

    The environment's module is imported later, when an environment is created.
    """
    from gymnasium.envs import registration

    name, module = "mlbridge/PhaseOrdering-v0", f"{__name__}.environment"
    if name not in registration.registry:
        registration.register(
            name,
            entry_point=f"{module}:PhaseOrderingEnv",
            vector_entry_point=f"{module}:make_vec",
        )
