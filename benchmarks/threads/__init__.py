# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares threads that share a model with processes."""
