# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering: the order in which LLVM's passes run on a module.

``optimization.py`` describes the optimisation. ``environment`` contains actions and the
compiler, ``model`` the model, ``search`` searches for sequences, ``evaluation``
compares models, and ``commands`` are further commands. ``action_spaces`` is data that
the plug-in contains, too; ``derive.py`` makes it from the pipeline of an LLVM.
"""
