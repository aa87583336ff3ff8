# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learned compiler optimisations: one folder each, over shared parts.

``corpus`` contains real programs as bitcode, ``training`` the engines, ``commands``
``mlbridge corpus``, ``mlbridge search``, ``mlbridge train`` and ``mlbridge evaluate``.
"""

from mlbridge_optimizations.optimization import Metric, ModelFile, Optimization

__all__ = ["Metric", "ModelFile", "Optimization"]
