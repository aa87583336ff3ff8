# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a compiled model in Python, with copies of the structures in AOTModel.h."""

import ctypes
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import ModelError

_ABI, _ALIGNMENT = 1, 64
_DTYPES: list[Any] = [
    *(np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float32, np.float64, np.bool_),
]
_Int64s = ctypes.POINTER(ctypes.c_int64)
_Pointers = ctypes.POINTER(ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("extents", _Int64s),
    )


class _Property(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _Variant(ctypes.Structure):
    _fields_ = (
        ("cpu", ctypes.c_char_p),
        ("supported", ctypes.CFUNCTYPE(ctypes.c_int)),
        (
            "run",
            ctypes.CFUNCTYPE(
                ctypes.c_int, _Int64s, _Pointers, _Pointers, ctypes.c_void_p
            ),
        ),
    )


_COUNTS = ("inputs", "outputs", "free_extents", "properties", "variants")


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("magic", "abi")),
        ("name", ctypes.c_char_p),
        *((f"num_{name}", ctypes.c_uint32) for name in _COUNTS),
        ("reserved", ctypes.c_uint32),
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("properties", ctypes.POINTER(_Property)),
        ("variants", ctypes.POINTER(_Variant)),
        (
            "measure",
            ctypes.CFUNCTYPE(
                ctypes.c_int, _Int64s, _Int64s, ctypes.POINTER(ctypes.c_uint64)
            ),
        ),
    )


class CompiledModel:
    """A library from `mlbridge compile`, which is never unloaded."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path.resolve()))
        symbol = ctypes.POINTER(_Model).in_dll(library, "mlbridge_aot_model")
        self._model = symbol.contents
        if self._model.abi != _ABI:
            raise ModelError(f"expected ABI {_ABI}, found {self._model.abi}")
        self._outputs = self._model.outputs[: self._model.num_outputs]
        self._variants = {
            v.cpu.decode(): v
            for v in self._model.variants[: self._model.num_variants]
            if v.supported()
        }

    @property
    def variants(self) -> list[str]:
        """The variants that this CPU supports, widest vectors first."""
        return list(self._variants)

    def accepts(self, sizes: Sequence[int]) -> bool:
        """Returns whether the model accepts these sizes of the free extents."""
        return self._measure(sizes)[0] == 0

    def workspace_bytes(self, sizes: Sequence[int]) -> int:
        """Returns how many bytes of temporary memory an evaluation needs."""
        return self._measure(sizes)[2]

    def _measure(self, sizes: Sequence[int]) -> tuple[int, list[int], int]:
        """Returns the status, the outputs' extents, and the temporary bytes needed."""
        extents = (ctypes.c_int64 * (sum(o.rank for o in self._outputs) or 1))()
        size = ctypes.c_uint64()
        status = self._model.measure(_int64s(sizes), extents, ctypes.byref(size))
        return status, list(extents), size.value

    def run(
        self, variant: str, sizes: Sequence[int], inputs: Sequence[NDArray[Any]]
    ) -> list[NDArray[Any]]:
        """Evaluates one variant of the model.

        Args:
            variant: a name in `variants`.
            sizes: the sizes of the free extents, in the order in which the inputs have
                them.
            inputs: C-contiguous arrays in the order of the model's inputs, with the
                inputs' types and shapes.

        Raises:
            ModelError: an index is out of range, or the model rejects the sizes.
        """
        status, extents, size = self._measure(sizes)
        if status:
            raise ModelError(f"measure({list(sizes)}) returned {status}")
        left = iter(extents)
        results = [
            np.zeros(list(islice(left, output.rank)), _DTYPES[output.type])
            for output in self._outputs
        ]
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
        workspace = memory.ctypes.data + -memory.ctypes.data % _ALIGNMENT
        status = self._variants[variant].run(
            _int64s(sizes), _addresses(inputs), _addresses(results), workspace
        )
        if status:
            raise ModelError(f"run({list(sizes)}) of {variant} returned {status}")
        return results


def _int64s(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * (len(numbers) or 1))(*numbers)


def _addresses(arrays: Sequence[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * (len(arrays) or 1))(*(a.ctypes.data for a in arrays))
