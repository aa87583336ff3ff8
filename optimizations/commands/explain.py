# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge explain``, which shows the effects of decisions."""

from mlbridge_optimizations.commands.groups import group_of

app = group_of(
    "explain",
    lambda described: None,
    "Show what decisions change in a program: docs/guides/size.md#explain-a-program.",
)
