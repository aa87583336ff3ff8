# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environments by their ids, for ``gymnasium.make``.

Gymnasium calls `register` when it is imported. Nothing of an optimisation is loaded
before its environment is made.
"""

from gymnasium.envs.registration import register as _register

_PHASE_ORDERING = "mlbridge_optimizations.phase_ordering.environment"


def register() -> None:
    """Registers them, in the namespace of the entry point: ``mlbridge/``."""
    _register(
        "PhaseOrdering-v0",
        entry_point=f"{_PHASE_ORDERING}:PhaseOrderingEnv",
        vector_entry_point=f"{_PHASE_ORDERING}:make_vec",
    )
