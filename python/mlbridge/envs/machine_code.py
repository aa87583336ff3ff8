# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the size of machine code, which the environments reward."""

import io

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from mlbridge.errors import Malformed


def text_size(code: bytes, name: str) -> int:
    """Returns the bytes of machine code in an ELF file, or else raises Malformed.

    Counts all sections that are loaded and executed: ``.text``, ``.text.unlikely``, one
    for each function with ``-ffunction-sections``. ``name`` is for the error.
    """
    flags = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_EXECINSTR
    try:
        with ELFFile(io.BytesIO(code)) as file:
            return sum(
                int(section["sh_size"])
                for section in file.iter_sections()
                if section["sh_flags"] & flags == flags
            )
    except ELFError as error:
        raise Malformed(
            f"{name}: expected an ELF object on the compiler's stdout (-o -), found"
            f" {len(code)} other bytes: {error}"
        ) from None
