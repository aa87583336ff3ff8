# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that only phase ordering has. What they need is loaded as one runs."""

from . import evaluate, search

COMMANDS = {**evaluate.COMMANDS, **search.COMMANDS}
"""By what is said behind ``mlbridge``."""
