# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training: from a corpus to a file that decides in the compiler. docs/training.md.

``settings.py`` is what is asked for; ``sb3.py`` and ``rllib.py`` learn a policy that
takes one action after another, ``coreset.py`` picks one sequence of a few, which
``search.py`` or ``evolve.py`` has found; ``tune.py`` looks for better settings. They
need the package's extra ``train``.
"""
