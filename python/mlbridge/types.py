# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of what goes through the bridge, and their names."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Feature: TypeAlias = NDArray[Any] | str | list[str]
"""A feature as a policy sees it.

Numbers and bools are NumPy arrays of the compiler's own type and shape; a scalar is
0-d, so that arithmetic, comparison and ``float(x)`` work on it as it is.
"""

Features: TypeAlias = dict[str, Any]
"""The features of one request by name; each is a `Feature`.

Any, since a policy knows what its compiler sends, and type checkers do not.
"""

Policy: TypeAlias = Callable[[Features], Any]
"""A function from the features of a request to its answer.

The arrays are read-only, and may be the same objects in the next request: reshape one
with ``x.reshape(...)``, which makes another, not by assigning to its ``shape``.

It returns a number, a bool, a str, a list of one of those, an array, or a dict of
several outputs by name; None, or raising `Deferred`, leaves the decision to the
compiler.
"""

_NAMES: dict[Any, str] = {
    bool: "bool",
    int: "int64_t",
    float: "double",
    str: "string",
    "float32": "float",
    "float64": "double",
}
_NAMES |= {
    name: name + "_t"
    for name in (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
}


def element_type_name(dtype: Any) -> str:
    """The bridge's name of an element type.

    Args:
        dtype: that name itself (``"float"``, ``"int64_t"``, ``"bool"``,
            ``"string"``), a Python type (bool, int, float, str) or anything that
            ``numpy.dtype`` takes. Where C and NumPy differ, C's meaning holds:
            ``"float"`` has 32 bits.

    Raises:
        TypeError: NumPy knows no such type, or the bridge carries none.
    """
    if dtype in _NAMES:
        return _NAMES[dtype]
    if isinstance(dtype, str) and dtype in _NAMES.values():
        return dtype
    name = np.dtype(dtype).name
    if name not in _NAMES and name != "bool":
        raise TypeError(f"the bridge carries no tensors of dtype {name}")
    return _NAMES.get(name, "bool")
