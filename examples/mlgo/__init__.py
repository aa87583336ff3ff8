# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile C files with stock LLVM, and a policy for the decisions that it asks for.

    __main__.py   the command line, and all of it in order
    policies.py   the policies: start from one of these

Run `.venv/bin/python -m examples.mlgo --help` in the project's folder.
"""
