# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's import name: ``import CompilerInterface as CI``.

It exports the interfaces of `mlbridge`. `PipeCompilerInterface` also takes the
arguments of the paper's published package, ``(data_format, pipe_name)``. `evaluate`
returns a dict by name in every format.
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
    """`mlbridge.PipeCompilerInterface` that also takes the published arguments."""

    def __init__(
        self,
        name: str | PathLike[str] | None = None,
        serdes: str | PathLike[str] | None = None,
        *,
        data_format: str | None = None,
        pipe_name: str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Takes (name, serdes) or (data_format, pipe_name), by position or keyword.

        Args:
            name: as for `mlbridge.PipeCompilerInterface`; or a data format, if the
                second argument is a pipe's name.
            serdes: as for `mlbridge.PipeCompilerInterface`.
            data_format: ``"bytes"`` or ``"json"``.
            pipe_name: a synonym of ``name``.
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
        """Does nothing: each compiler gets new pipes when it connects."""


__all__ = [
    "BaseCompilerInterface",
    "GRPCCompilerInterface",
    "InteractiveCompilerInterface",
    "PipeCompilerInterface",
    "SharedMemoryCompilerInterface",
]
