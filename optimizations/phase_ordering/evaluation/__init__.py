# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates models: code sizes compared with baselines, run times, and outputs."""
