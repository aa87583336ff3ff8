# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares threads, which share one model, with processes, which do not."""
