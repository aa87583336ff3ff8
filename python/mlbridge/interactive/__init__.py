# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Connects models to stock LLVM tools (opt, clang, llc), without a plug-in.

The advisors of LLVM's inliner and register allocator can request decisions from another
process through FIFOs. `compile_with_policy` runs a tool and makes the decisions with
functions. `InteractiveCompilerInterface` runs a tool and yields its requests to a loop.
Both reject illegal decisions, because LLVM does not check decisions.
"""

from mlbridge.interactive.advisors import AdvisorName
from mlbridge.interactive.interface import (
    CompileResult,
    Conversation,
    InteractiveCompilerInterface,
    compile_with_policy,
)

__all__ = [
    "AdvisorName",
    "CompileResult",
    "Conversation",
    "InteractiveCompilerInterface",
    "compile_with_policy",
]
