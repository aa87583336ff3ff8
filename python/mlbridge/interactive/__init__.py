# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Connects to stock LLVM tools (opt, clang, llc) without a plug-in.

Through a pair of FIFOs LLVM can ask another process for inlining decisions and for two
decisions of its register allocator. `compile_with_policy` runs such a compile and
replies by functions, `InteractiveCompilerInterface` by the paper's loop. This package
checks what LLVM does not: LLVM would wait forever for a host that has exited, and reads
past the end of an array for an illegal index.
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
