# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files for the runtimes that are extensions: `aotinductor` and `tvm`.

Each writes its kind of file with the signature that the runner in the compiler needs.
"""
