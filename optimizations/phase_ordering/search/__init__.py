# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for core sets, which have a few good sequences or pipelines.

``search.py`` finds sequences of actions, and ``evolve.py`` finds variants of -Oz.
``coreset.py`` chooses a core set, and trains a model to pick one item per module.
"""
