# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's import name: ``import CompilerInterface as CI``.

Everything is `mlbridge`'s; `PipeCompilerInterface` also takes the arguments of the
paper's published package, ``PipeCompilerInterface(data_format, pipe_name)``. What
`evaluate` returns is a dict by name in every format.
"""

from os import PathLike
from typing import Any

from mlbridge import (
    BaseCompilerInterface,
    GRPCCompilerInterface,
    InteractiveCompilerInterface,
    SharedMemoryCompilerInterface,
)
from mlbridge import PipeCompilerInterface as _PipeCompilerInterface

_SERDES = {"bytes": "bitstream", "json": "json"}


class PipeCompilerInterface(_PipeCompilerInterface):
    """`mlbridge.PipeCompilerInterface`, with the published package's arguments too."""

    def __init__(
        self,
        name: str | PathLike[str] | None = None,
        serdes: str | PathLike[str] | None = None,
        *,
        data_format: str | None = None,
        pipe_name: str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Takes (name, serdes) or (data_format, pipe_name), by place or by keyword.

        Args:
            name: as for `mlbridge.PipeCompilerInterface`; or, with a pipe's name in
                the second place, a data format.
            serdes: as for `mlbridge.PipeCompilerInterface`.
            data_format: ``"bytes"`` or ``"json"``.
            pipe_name: another word for ``name``.
            options: as for `mlbridge.PipeCompilerInterface`.
        """
        if name in _SERDES and data_format is None:
            name, serdes, data_format = serdes, None, str(name)
        place = pipe_name if name is None else name
        if place is None or (name is not None and pipe_name is not None):
            raise TypeError("PipeCompilerInterface() takes one name of a pipe")
        if data_format is not None and serdes is not None:
            raise TypeError("PipeCompilerInterface() takes serdes or data_format")
        chosen = str(serdes or data_format or "bitstream")
        super().__init__(place, _SERDES.get(chosen, chosen), **options)

    def reset_pipes(self) -> None:
        """Does nothing: each compiler has pipes of its own, made when it comes."""


__all__ = [
    "BaseCompilerInterface",
    "GRPCCompilerInterface",
    "InteractiveCompilerInterface",
    "PipeCompilerInterface",
    "SharedMemoryCompilerInterface",
]
