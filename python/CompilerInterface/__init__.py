# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's import name for `mlbridge`: ``import CompilerInterface as CI``.

`PipeCompilerInterface` also accepts the arguments of the package that the paper's
authors published. `evaluate` returns a dict from feature name to value, with every
message format.
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
    """`mlbridge.PipeCompilerInterface` that also accepts the published arguments."""

    def __init__(
        self,
        name: str | PathLike[str] | None = None,
        serdes: str | PathLike[str] | None = None,
        *,
        data_format: str | None = None,
        pipe_name: str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Accepts (name, serdes) or (data_format, pipe_name), by position or keyword.

        ``data_format`` is ``"bytes"`` or ``"json"``. The other arguments have the same
        meaning as in `mlbridge.PipeCompilerInterface`.
        """
        if name in _SERDES and data_format is None:
            name, serdes, data_format = serdes, None, str(name)
        pipe = pipe_name if name is None else name
        if pipe is None or (name is not None and pipe_name is not None):
            raise TypeError("PipeCompilerInterface() takes one name of a pipe")
        if data_format is not None and serdes is not None:
            raise TypeError("PipeCompilerInterface() takes serdes or data_format")
        chosen = str(serdes or data_format or "bitstream")
        super().__init__(pipe, _SERDES.get(chosen, chosen), **options)

    def reset_pipes(self) -> None:
        """Does nothing, because each compiler gets new pipes when it connects."""


__all__ = [
    "BaseCompilerInterface",
    "GRPCCompilerInterface",
    "InteractiveCompilerInterface",
    "PipeCompilerInterface",
    "SharedMemoryCompilerInterface",
]
