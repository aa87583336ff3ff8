# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches: core sets of sequences, and pipelines made from clang's own.

``search.py`` and ``evolve.py`` find sequences and pipelines. ``coreset.py`` picks a few
that suit many modules, and trains a model that takes one of them for each module.
"""
