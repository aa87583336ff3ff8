# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of features and policies, and the names of element types."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Feature: TypeAlias = NDArray[Any] | str | list[str]
"""A feature as a policy gets it.

Numbers and bools are NumPy arrays of the compiler's type and shape. A scalar is 0-d:
arithmetic, comparison and ``float(x)`` work on it.
"""

Features: TypeAlias = dict[str, Any]
"""The features of one request by name; each is a `Feature`.

Declared as Any, since a policy knows their types and a type checker does not.
"""

Policy: TypeAlias = Callable[[Features], Any]
"""A function from the features of a request to the advice.

The arrays are read-only, and may be the same objects in the next request: reshape one
with ``x.reshape(...)``, not by assigning to ``x.shape``.

A policy returns a number, a bool, a str, a list of one of these, an array, or a dict
of several outputs by name. Returning None or raising `Deferred` leaves the decision to
the compiler.
"""

_NAMES: dict[Any, str] = {
    bool: "bool",
    "bool": "bool",
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
    """Returns the bridge's name of an element type.

    Args:
        dtype: such a name (``"float"``, ``"int64_t"``, ``"bool"``, ``"string"``), a
            Python type (bool, int, float, str) or anything that ``numpy.dtype``
            accepts, or else a TypeError is raised. ``"float"`` has 32 bits, as in C.
    """
    if dtype in _NAMES:
        return _NAMES[dtype]
    if isinstance(dtype, str) and dtype in _NAMES.values():
        return dtype
    name = np.dtype(dtype).name
    if name not in _NAMES:
        raise TypeError(f"the bridge does not support tensors of dtype {name}")
    return _NAMES[name]
