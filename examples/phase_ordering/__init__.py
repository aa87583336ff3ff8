# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stock clang in which a model decides which passes run: part of `make demo`.

A small policy learns for a minute on zlib and Lua, which shows how training goes. Then
clang compiles zstd, which neither that policy nor the one in the plug-in has seen: by
the latter if there is one, else by the former.
"""
