# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an ONNX model file as a policy for `serve`."""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge import _core
from mlbridge.batching import Batched, batched, stack
from mlbridge.errors import Malformed, SchemaMismatch, Unsupported
from mlbridge.files import expect_regular_file
from mlbridge.printable import few_names
from mlbridge.types import Features, element_type_name

_DTYPES: dict[str, Any] = {
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
} | {
    f"tensor({sign}int{bits})": np.dtype(f"{sign}int{bits}")
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def load_onnx(path: str | PathLike[str], *, threads: int = 1, seed: int = 0) -> Batched:
    """Returns a policy that runs an ONNX model.

    The policy receives a list of requests and returns a list of replies::

        policy = load_onnx("inliner.onnx")
        (reply,) = policy([features])

    Each input of the model receives the feature with the same name. Other features are
    ignored. If the first dimension of all inputs is free, one run of the model answers
    a batch of requests. Otherwise the model runs once per request.

    A feature of shape (a, b) fits an input of shape (N, a, b). Dimensions of 1 may be
    added or dropped, so the feature also fits (N, 1, a, b).

    The metadata ``mlbridge.decide`` determine the reply, as for ``onnx:FILE``. Without
    these metadata, the reply is the output, or a dict of all outputs if there are
    several. An array of one element becomes a scalar.

    Args:
        path: the .onnx file.
        threads: the maximum number of threads in one run.
        seed: the random seed for ``sample:OUTPUT``.

    Raises:
        InvalidArgument: the path is not a regular file.
        OSError: the file cannot be read.
        ImportError: onnxruntime is not installed.
        Unsupported: an input is not a tensor of numbers.
        Malformed: the metadata contain unknown values.
        SchemaMismatch: the metadata do not fit the outputs.

    The policy raises SchemaMismatch if a feature is missing, has a wrong shape or
    dtype, or violates ``mlbridge.finite``. It raises ModelError if a score is NaN.
    """
    return batched(_OnnxModel(fspath(path), threads, seed))


def open_session(model: str | bytes, *, threads: int = 1, log_level: int = 2) -> Any:
    """Opens an ONNX Runtime session on the CPU, for an .onnx file or its bytes.

    Raises InvalidArgument or OSError if the path is not a regular file, and Malformed
    if ONNX Runtime cannot load the file.
    """
    if isinstance(model, str):
        expect_regular_file(model)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = log_level
    try:
        return onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # The exception type depends on the version.
        if isinstance(model, bytes):
            raise
        raise Malformed(f"'{model}': ONNX Runtime says: {error}") from error


class _OnnxModel:
    """A model: an ONNX Runtime session and the descriptions of its inputs."""

    def __init__(self, path: str, threads: int, seed: int) -> None:
        self._path = path
        self._session = open_session(path, threads=threads)
        about = self._session.get_modelmeta().custom_metadata_map
        # Declare other output types as strings, because no decision can use them.
        outputs = {
            o.name: element_type_name(_DTYPES[o.type])
            if o.type in _DTYPES
            else "string"
            for o in self._session.get_outputs()
        }
        self._decision = _core.Decision(path, about, outputs, seed)
        finite = self._decision.refuses_non_finite
        self._inputs = [_Input(path, i, finite) for i in self._session.get_inputs()]
        only = self._decision.output
        self._outputs = list(outputs) if only is None else [only]
        self._takes_many = all(i.takes_many for i in self._inputs)

    def __call__(self, requests: Sequence[Features]) -> list[Any]:
        if self._takes_many:
            return self._run(requests)
        return [self._run([one])[0] for one in requests]

    def _run(self, requests: Sequence[Features]) -> list[Any]:
        names = [i.name for i in self._inputs]
        for features in requests:
            if missing := [name for name in names if name not in features]:
                raise SchemaMismatch(
                    f"{self._path}: the input '{missing[0]}' has no feature of its "
                    f"name; the request has {few_names(features)}"
                )
        rows = stack([{name: q[name] for name in names} for q in requests])
        fed = {i.name: i.fill(rows[i.name]) for i in self._inputs}
        results = self._session.run(self._outputs, fed)
        columns = {
            name: self._rows_of(name, result, len(requests))
            for name, result in zip(self._outputs, results, strict=True)
        }
        if len(columns) == 1:
            return columns[self._outputs[0]]
        rows_of_all = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows_of_all]

    def _rows_of(self, name: str, result: Any, count: int) -> list[Any]:
        """Splits one output into one row per request."""
        array = np.asarray(result)
        if self._takes_many and (array.ndim == 0 or array.shape[0] != count):
            raise SchemaMismatch(
                f"{self._path}: expected {count} rows of the output '{name}', one a "
                f"request, found the shape {array.shape}"
            )
        if self._decision.chooses:
            # Add a dimension, so that `choose` chooses within a row, not among rows.
            own = array[:, None] if self._takes_many and array.ndim == 1 else array
            array = self._decision.choose(own)
        rows = array if self._takes_many else [array]
        return [row.reshape(()) if row.size == 1 else row for row in rows]


class _Input:
    """An input of a model, which converts features to the input's tensor."""

    def __init__(self, path: str, info: Any, finite: bool) -> None:
        self.name: str = info.name
        if info.type not in _DTYPES:
            raise Unsupported(
                f"{path}: expected numbers for the input '{self.name}', found "
                f"{info.type}"
            )
        self._path = path
        self._finite = finite
        self._dtype = np.dtype(_DTYPES[info.type])
        # Represent a free dimension by None.
        self._shape = [d if isinstance(d, int) else None for d in info.shape]
        self.takes_many = bool(self._shape) and self._shape[0] is None

    def fill(self, rows: Any) -> NDArray[Any]:
        """Returns the input's tensor.

        Each row of `rows` is the feature's value for one request.
        """
        if not isinstance(rows, np.ndarray):
            raise self._mismatch("a string")
        leading = rows.shape[:1] if self.takes_many else ()
        wanted = self._shape[1:] if self.takes_many else self._shape
        shape = _fit(rows.shape[1:], wanted)
        if shape is None:
            raise self._mismatch(f"shape {rows.shape[1:]} per request")
        # Accept integers for a float input, but not floats for an integer input.
        if not np.can_cast(rows.dtype, self._dtype, casting="same_kind"):
            raise self._mismatch(str(rows.dtype))
        cast = rows.astype(self._dtype, copy=False)
        if self._dtype.kind in "iu" and not np.array_equal(cast, rows):
            raise self._mismatch(f"a value that {self._dtype} cannot hold")
        if self._finite and self._dtype.kind == "f" and not np.isfinite(cast).all():
            at = int(np.argmin(np.isfinite(cast))) % max(1, cast[0].size)
            raise self._mismatch(
                f"NaN or an infinity at element {at}; the model needs finite numbers"
            )
        return cast.reshape(leading + shape)

    def _mismatch(self, found: str) -> SchemaMismatch:
        sizes = ", ".join("any" if size is None else str(size) for size in self._shape)
        return SchemaMismatch(
            f"{self._path}: feature '{self.name}': expected {self._dtype} of shape "
            f"({sizes}), found {found}"
        )


def _fit(found: Sequence[int], wanted: Sequence[int | None]) -> tuple[int, ...] | None:
    """Adds or drops extents of 1 to make a shape fit. Returns None if it cannot fit."""
    left = [size for size in found if size != 1]
    shape = []
    for index, size in enumerate(wanted):
        # A free dimension is 1 if the later dimensions need all remaining sizes.
        needed = sum(w != 1 for w in wanted[index:])
        if size == 1 or (size is None and needed > len(left)):
            shape.append(1)
        elif left and size in (None, left[0]):
            shape.append(left.pop(0))
        else:
            return None
    return None if left else tuple(shape)
