# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where commands write."""

from rich.console import Console

# Names from logs and specs are shown as they are, whatever they look like.
console = Console(markup=False, highlight=False)
errors = Console(stderr=True, markup=False, highlight=False)
