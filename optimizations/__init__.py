# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learned compiler optimisations. Each one has a folder. The other folders are shared.

``corpus`` makes bitcode of real programs. ``training`` has the learning engines.
``commands`` has the commands of ``mlbridge``, such as ``mlbridge train``.
"""

from mlbridge_optimizations.optimization import Metric, ModelFile, Optimization

__all__ = ["Metric", "ModelFile", "Optimization"]
