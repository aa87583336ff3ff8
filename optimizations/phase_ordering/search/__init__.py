# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches: core sets of sequences, and pipelines made of clang's own.

``search.py`` and ``evolve.py`` find sequences and pipelines, ``coreset.py`` picks a few
that serve many modules, and fits a model that takes one of these for each module.
"""
