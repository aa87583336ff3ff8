# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that share a model, compared with processes."""
