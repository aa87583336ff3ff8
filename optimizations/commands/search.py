# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge search``, which finds good decisions by trying them."""

from mlbridge_optimizations.commands.groups import group_of

app = group_of(
    "search",
    lambda described: None,
    "Search for good decisions, and train models on them: docs/guides/training.md.",
)
