# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stock clang that inlines by a model trained just before: `make demo`.

The demo records LLVM's decisions while clang compiles zlib and Lua, and trains a small
network to decide likewise. Then clang asks the network while it compiles bzip2, which
the network has never seen: in Python over a pipe, in the compiler by ONNX Runtime, and
in the compiler as machine code. The object files are the same. __main__.py runs the
demo; the data flows through corpus.py, toolchain.py, record.py, network.py, train.py,
policy.py, export.py, evaluate.py and report.py.
"""
