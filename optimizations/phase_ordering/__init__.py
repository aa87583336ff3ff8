# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering: in which order LLVM's passes run on a module.

``optimization.py`` describes it; ``environment`` has what may be done and the compiler
that does it, one process for many modules; ``model`` what decides, ``search`` what
is found by trying, ``evaluation`` what that is worth, ``commands`` the commands that
only this one has. ``action_spaces`` is data that the plug-in has in itself;
``derive.py`` makes it of an LLVM's own pipeline.
"""
