# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiler optimisations that are learned: a folder each, over one shared floor.

``corpus`` has real programs as bitcode, ``training`` the engines, ``commands`` what
joins ``mlbridge``: ``mlbridge corpus``, ``mlbridge train``, ``mlbridge evaluate``.
"""

from mlbridge_optimizations.optimization import Metric, ModelFile, Optimization

__all__ = ["Metric", "ModelFile", "Optimization"]
