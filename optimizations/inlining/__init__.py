# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stock clang that inlines by a model trained just before: `make demo`.

The demo records LLVM's decisions while clang compiles zlib and Lua, and trains a small
network to decide likewise. Then clang asks the network while it compiles bzip2, which
the network has never seen: in Python over a pipe, in the compiler by ONNX Runtime, and
in the compiler as machine code. The object files are the same. The files, in the order
of the data flow:

    corpus.py     the programs and their sources
    toolchain.py  clang, llvm-size and the plug-in as functions
    record.py     from a compile to a table of features and decisions
    network.py    the network, from LLVM's features to a decision (PyTorch)
    train.py      from the table to a trained network
    policy.py     the network for one decision at a time (NumPy)
    export.py     the network as an .onnx file, which runs inside the compiler
    evaluate.py   bzip2 compiled by the model against bzip2 compiled by clang alone
    report.py     tables of results, and the conditions that they must meet
    __main__.py   the command line, and the demo from start to end

Several of these use agreement.py. The command line prints failures: CompilerFailed,
errors of the model's file, and UnexpectedStatistics if the plug-in's figures are
missing or a decision was not the model's.
"""
