# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How whoever waits for long work is told of it."""

from collections.abc import Callable

Show = Callable[[int, int], None]  # Is told how many pieces are done, and of how many.
ShowStage = Callable[[str, int, int], None]  # The same of a stage, by its name.
