# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluation: code sizes beside baselines, run times, outputs of programs."""
