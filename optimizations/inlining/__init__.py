# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stock clang that inlines by a model trained a moment ago: `make demo`.

What LLVM's heuristic decides while it compiles zlib and Lua is recorded; a small
network learns to decide likewise; then clang asks that network while it compiles
bzip2, which the network has never seen: over a pipe, where the network is in Python;
inside the compiler, where ONNX Runtime runs it; and there again as machine code. The
object files are the same. The files, in the order in which data flows through them:

    corpus.py     the programs: where their sources come from, how they are compiled
    toolchain.py  clang, llvm-size and the plug-in as functions
    record.py     from a compile to a table of features and decisions
    network.py    the network, from LLVM's features to a decision (PyTorch)
    train.py      from the table to a trained network
    policy.py     the network as it is asked: one decision at a time (NumPy)
    export.py     the same as an .onnx file, which runs inside the compiler
    evaluate.py   bzip2 compiled by the model against bzip2 compiled by clang alone
    report.py     the tables of results, and whether they are good enough
    __main__.py   the command line, and all of it in order

agreement.py serves several of these. What fails is a CompilerFailed, an error of the
model's file, or an UnexpectedStatistics where the plug-in's figures are missing or a
decision was not the model's; the command line prints it.
"""
