# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles C files with stock LLVM and a policy; start from one in policies.py.

Run `.venv/bin/python -m examples.mlgo --help` in the project's folder.
"""
