# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge search``: what is found by trying, and not learned."""

from mlbridge_optimizations.commands.groups import group_of

app = group_of(
    "search",
    lambda described: None,
    "Find by trying what a model can then choose from: docs/training.md.",
)
