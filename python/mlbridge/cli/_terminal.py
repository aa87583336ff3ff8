# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where commands write."""

from mlbridge.terminal import TableConsole

# Names from logs and specs are shown as they are, whatever they look like.
console = TableConsole(markup=False, highlight=False)
errors = TableConsole(stderr=True, markup=False, highlight=False)
