# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering: the order in which LLVM's passes run on a module.

``environment`` contains actions and the compiler, ``search`` finds sequences,
``evaluation`` compares models. ``action_spaces`` is data that the plug-in contains,
too; ``derive.py`` makes it from the pipeline of an LLVM.
"""
