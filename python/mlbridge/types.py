# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of features and policies, and the names of element types."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Feature: TypeAlias = NDArray[Any] | str | list[str]
"""The value of a feature, as a policy receives it.

Numbers and bools are NumPy arrays of the compiler's type and shape. A scalar is a 0-d
array, which supports arithmetic, comparison and ``float(x)``.
"""

Features: TypeAlias = dict[str, Any]
"""Maps the names of features to values, each of type `Feature`.

The values are declared as Any, so that type checkers accept any policy.
"""

Policy: TypeAlias = Callable[[Features], Any]
"""A function that receives the features of a request and returns the advice.

The arrays are read-only, and later requests may reuse them. To reshape an array, call
``x.reshape(...)``. Do not assign to ``x.shape``.

The advice is a number, a bool, a str, a list of one of these, an array, or a dict of
several named outputs. A policy returns None or raises `Deferred` to leave the decision
to the compiler.
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
    """Returns the name of an element type, for example ``"int64_t"``.

    Args:
        dtype: a name (``"float"``, ``"int64_t"``, ``"bool"``, ``"string"``), a Python
            type (bool, int, float, str), or anything that ``numpy.dtype`` accepts.
            ``"float"`` has 32 bits, as in C. A TypeError is raised for other values.
    """
    if dtype in _NAMES:
        return _NAMES[dtype]
    if isinstance(dtype, str) and dtype in _NAMES.values():
        return dtype
    name = np.dtype(dtype).name
    if name not in _NAMES:
        raise TypeError(f"the bridge does not support tensors of dtype {name}")
    return _NAMES[name]
