# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Connects to stock LLVM tools (opt, clang, llc) without a plug-in.

Through a pair of FIFOs LLVM can ask another process for inlining decisions and for two
decisions of its register allocator. `InteractiveCompilerInterface` runs such a compile
and replies to its requests; `compile_with_policy` does so with functions::

    from mlbridge.interactive import compile_with_policy

    result = compile_with_policy(
        ["clang-22", "-Oz", "-c", "x.c", "-o", "x.o"],
        inliner=lambda features: features["callee_basic_block_count"] < 4,
    )
    print(result.decisions)

This package checks what LLVM does not: LLVM would wait forever for a host that has
exited, and reads past the end of an array for an illegal index.
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
