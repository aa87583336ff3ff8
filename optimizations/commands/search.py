# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge search``, which tries sequences instead of learning."""

from mlbridge_optimizations.commands.groups import group_of

app = group_of(
    "search",
    lambda described: None,
    "Search for sequences from which a model can choose: docs/guides/training.md.",
)
