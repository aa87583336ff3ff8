# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training: from an environment to a file that decides in the compiler.

The engines ``sb3.py`` and ``rllib.py`` need the extra ``train``. docs/training.md.
"""
