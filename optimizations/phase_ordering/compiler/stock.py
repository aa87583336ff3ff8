# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all is compared with: the size of what a stock clang makes of a module."""

import tempfile
from pathlib import Path

from mlbridge.envs.machine_code import text_size
from mlbridge_optimizations.corpus import toolchain


def oz_size(module: Path, *, own_session: bool = False) -> int:
    """Bytes of machine code that ``clang -Oz`` makes of bitcode not optimised yet.

    That is, to the byte, what it makes of the source: docs/corpus.md.

    Raises:
        CompilerFailed: it is no such bitcode.
        Timeout: clang did not end.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:
        target = Path(folder, "module.o")
        toolchain.compile_bitcode(module, target, "-Oz", own_session=own_session)
        return text_size(target.read_bytes(), module.name)
