# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the size of machine code, on which the rewards of environments depend."""

import io

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from mlbridge.errors import Malformed


def text_size(code: bytes, name: str) -> int:
    """Returns the size of the machine code in an ELF file, in bytes.

    The size is the sum of all executable sections, for example ``.text.unlikely``.
    Raises Malformed, with ``name``, if ``code`` is not an ELF file.
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
