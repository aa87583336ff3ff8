# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains models for the compiler.

In an environment, ``sb3.py`` and ``rllib.py`` learn a policy, and ``tune.py`` searches
for better settings (docs/guides/training.md). Without an environment, ``costs.py``
learns from measured times, and ``cma_es.py`` evolves weights. ``settings.py`` has the
options. All other modules need the extra ``train``.
"""
