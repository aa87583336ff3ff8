# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of a command that are the fields of dataclasses."""

from mlbridge.options import is_said, with_options

__all__ = ["is_said", "with_options"]
