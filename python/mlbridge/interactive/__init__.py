# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock LLVM as a peer: opt, clang and llc as they are installed, with no plug-in.

LLVM can ask a process outside about inlining and about two choices of its register
allocator, through a pair of FIFOs. `InteractiveCompilerInterface` runs such a compile
and is the process outside; `compile_with_policy` does the same with functions::

    from mlbridge.interactive import compile_with_policy

    result = compile_with_policy(
        ["clang-22", "-Oz", "-c", "x.c", "-o", "x.o"],
        inliner=lambda features: features["callee_basic_block_count"] < 4,
    )
    print(result.decisions)

What LLVM's own code does not check is checked here: it would wait for a host that has
gone for ever, and read behind the end of an array when told to evict what it must not.
"""

from mlbridge.interactive.advisors import AdvisorName
from mlbridge.interactive.compile import compile_with_policy
from mlbridge.interactive.interface import (
    CompileResult,
    Conversation,
    InteractiveCompilerInterface,
)

__all__ = [
    "AdvisorName",
    "CompileResult",
    "Conversation",
    "InteractiveCompilerInterface",
    "compile_with_policy",
]
