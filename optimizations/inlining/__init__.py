# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo of `make demo`: stock clang inlines with a model that it has just trained.

The demo records LLVM's decisions while clang compiles zlib and Lua, and trains a small
network to make the same decisions. Then clang compiles bzip2, which was not used for
training, with this network. The network runs in Python behind a pipe, in the compiler
with ONNX Runtime, and in the compiler as machine code. All ways give the same objects.
__main__.py runs the demo. The data flows through corpus.py, toolchain.py, record.py,
network.py, train.py, policy.py, export.py, evaluate.py and report.py. The optimisation
smallest_code also uses network.py and export.py.
"""
