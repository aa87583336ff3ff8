# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge search``: what is found by trying instead of learning."""

from mlbridge_optimizations.commands.groups import group_of

app = group_of(
    "search",
    lambda described: None,
    "Search for sequences from which a model can choose: docs/guides/training.md.",
)
