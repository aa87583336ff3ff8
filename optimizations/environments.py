# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environments by their ids, for ``gymnasium.make``: `mlbridge.envs` asks for them.

Nothing of an optimisation is loaded before its environment is made.
"""

from gymnasium.envs.registration import register, registry

_PHASE_ORDERING = "mlbridge_optimizations.phase_ordering.environment.environment"


def register_all() -> None:
    """Registers those that are not registered yet."""
    if "mlbridge/PhaseOrdering-v0" not in registry:
        register(
            "mlbridge/PhaseOrdering-v0",
            entry_point=f"{_PHASE_ORDERING}:PhaseOrderingEnv",
            vector_entry_point=f"{_PHASE_ORDERING}:make_vec",
        )
