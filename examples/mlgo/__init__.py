# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles C files with stock LLVM and a policy from policies.py, which you can edit.

Run `.venv/bin/python -m examples.mlgo --help` in the project's folder.
"""
