# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering: learns in which order LLVM's passes should run on a module.

``environment`` has the Gymnasium environment, ``search`` finds good sequences of
passes, and ``evaluation`` compares models. ``action_spaces/derive.py`` makes the
files in ``action_spaces`` from clang's pipeline. The plug-in contains these files, too.
"""
