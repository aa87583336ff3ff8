# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler that is trained on: it lets a model choose what to spill.

    spills.cpp      the compiler: an Environment of 100 lines
    spills.py       its spaces, its command, and three heuristics to compare with
    curve.py        how the return grew, as CSV and PNG
    train_sb3.py    training by Stable-Baselines3
    train_rllib.py  training by RLlib, also with two agents who take turns

The trainings run with ``.venv/bin/python -m examples.environment.train_sb3``.
"""
