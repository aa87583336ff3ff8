# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering: in which order LLVM's passes run, decided for each module.

``actions.py`` has what may be done, ``compiler.py`` the compiler that does it, as one
process for many modules. ``environment.py`` is the environment to train on, in
``search`` are the searches, and ``evaluate.py`` says what came of it.
"""

from mlbridge_optimizations.phase_ordering.actions import Action, ActionSpace
from mlbridge_optimizations.phase_ordering.compiler import (
    FEATURES,
    CompilerOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
    Sizes,
)

__all__ = [
    "FEATURES",
    "Action",
    "ActionSpace",
    "CompilerOptions",
    "ModuleFailed",
    "SequenceFailed",
    "SequenceRunner",
    "Sizes",
]
