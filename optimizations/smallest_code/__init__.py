# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code size of whole programs: searches for decisions that stock clang can replay."""


def register() -> None:
    """Registers the environment with Gymnasium. `mlbridge.envs` calls this function.

    The environment's module is imported later, when an environment is created.
    """
    from gymnasium.envs import registration

    name, module = "mlbridge/SmallestCode-v0", f"{__name__}.environment"
    if name not in registration.registry:
        registration.register(
            name,
            entry_point=f"{module}:SmallestCodeEnv",
            vector_entry_point=f"{module}:make_vec",
        )
