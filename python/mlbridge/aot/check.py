# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a compiled model with ONNX Runtime.

`least_sizes` is called before code is generated, and finds the smallest extents that
ONNX Runtime accepts. `check` compares the results of the generated code with ONNX
Runtime's results. Both functions start another process, ``python -m
mlbridge.aot.check``, so that a crash becomes an error message.
"""

import json
import math
import signal
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from mlbridge.aot.graph import Graph, Tensor
from mlbridge.aot.library import CompiledModel
from mlbridge.errors import ModelError
from mlbridge.onnx import open_session

_SIZES = (1, 2, 3, 5, 8, 17, 33)
"""The sizes to test for free extents: below, at and above the width of a register."""
_MORE_SIZES = 24
_BEYOND = 4001
"""A large size to test. It usually exceeds the primes that `extents` chooses."""
_MAX_ELEMENTS = 1 << 20
"""The maximum number of elements of an input. Larger sizes are not tested."""
_MAX_WORKSPACE = 1 << 26
"""The maximum temporary memory in bytes. Larger sizes are not tested."""
_ROUNDS = 4
# Limits for random integer inputs. If an index is out of range, the next limit is used.
_RANGES = (1000, 100, 10, 2, 1)
_NOT_FINITE = (np.nan, np.inf, -np.inf)
_TIMEOUT = 600
# Accept this multiple of `_noise`, because rounding in the model adds to the noise.
_MUCH_NOISE = 8


@dataclass(frozen=True)
class Checked:
    """The result of a successful comparison."""

    variants: list[str]
    evaluations: int
    """The number of evaluations of each variant."""
    difference: float
    """The largest difference. It is relative for numbers above 1."""
    runtime: str


def check(
    library: Path, model: Path, pinned: Mapping[str, int], tolerance: float
) -> Checked:
    """Compares each variant that this CPU supports with ONNX Runtime on random inputs.

    Floating-point results may differ by the tolerance, which is relative for numbers
    above 1. A larger difference is accepted if the model amplifies rounding errors.

    Raises:
        ModelError: the results differ, or the code or ONNX Runtime failed.
    """
    return Checked(**_ask(model, pinned, library=str(library), tolerance=tolerance))


def least_sizes(model: Path, pinned: Mapping[str, int]) -> dict[str, int]:
    """Returns the smallest size of each free extent that ONNX Runtime accepts.

    Raises:
        ModelError: ONNX Runtime accepts none of the sizes that were tried.
    """
    return _ask(model, pinned)


def _ask(model: Path, pinned: Mapping[str, int], **rest: Any) -> dict[str, Any]:
    """Runs `_main` in another process, and returns its result."""
    request = {"model": str(model), "pinned": dict(pinned), **rest}
    try:
        result = subprocess.run(
            [sys.executable, "-m", "mlbridge.aot.check"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"'{model}': comparing with ONNX Runtime took more than {_TIMEOUT} s"
        ) from None
    if result.returncode < 0:
        name = signal.Signals(-result.returncode).name
        what = "compiled model" if "library" in request else "ONNX Runtime"
        raise ModelError(f"'{model}': the {what} was ended by {name}")
    if result.returncode:
        last = result.stderr.strip().splitlines() or ["no reason given"]
        raise ModelError(f"'{model}': {last[-1]}")
    reply: dict[str, Any] = json.loads(result.stdout)
    return reply


class _Reference:
    """The model, run by ONNX Runtime."""

    def __init__(self, model: Path, pinned: Mapping[str, int]) -> None:
        self.graph = Graph(model, pinned)
        self.names = [output.name for output in self.graph.outputs]
        self._session = open_session(str(model), log_level=4)

    def run(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return self._run(self._session, inputs)

    def run_near(self, inputs: Sequence[NDArray[Any]]) -> Iterator[list[NDArray[Any]]]:
        """Yields the outputs of models whose weights differ in the last bits."""
        for session in self._near_sessions:
            # An operator may refuse other weights, for example other scales.
            try:
                outputs = self._run(session, inputs)
            except Exception:
                continue
            yield outputs

    def _run(self, session: Any, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        feeds = {t.name: i for t, i in zip(self.graph.inputs, inputs, strict=True)}
        return [np.asarray(output) for output in session.run(self.names, feeds)]

    @cached_property
    def _near_sessions(self) -> list[Any]:
        random = np.random.default_rng(1)
        sessions = []
        for _ in range(_ROUNDS):
            model = self.graph.pinned({})
            for weights in model.graph.initializer:
                values = numpy_helper.to_array(weights)
                if values.dtype in (np.float32, np.float64):
                    near = numpy_helper.from_array(
                        _perturbed(values, random), weights.name
                    )
                    weights.CopyFrom(near)
            with suppress(Exception):
                sessions.append(open_session(model.SerializeToString(), log_level=4))
        return sessions


def _find_least(model: Path, pinned: Mapping[str, int]) -> dict[str, int]:
    reference = _Reference(model, pinned)
    graph = reference.graph
    random = np.random.default_rng(1)
    refusal: Exception | None = None

    def replies(sizes: Mapping[str, int]) -> bool:
        nonlocal refusal
        try:
            _expect(reference, sizes, random)
        except Exception as error:
            refusal = error
            return False
        return True

    tried = [max(_SIZES), *_more_sizes(graph), *_SIZES[-2::-1]]
    all_tried = (dict.fromkeys(graph.symbols, size) for size in tried)
    enough = next((s for s in all_tried if _is_small(graph, s) and replies(s)), None)
    if enough is None:
        raise ModelError(f"ONNX Runtime does not run it: {refusal}")
    accepted = dict(enough)

    def least(symbol: str) -> int:
        def accepts(size: int) -> bool:
            return replies(accepted | {symbol: size})

        sizes = range(2, accepted[symbol])
        return 1 if accepts(1) else 2 + bisect_left(sizes, True, key=accepts)

    return {symbol: least(symbol) for symbol in accepted}


def _compare(
    library: Path, model: Path, pinned: Mapping[str, int], tolerance: float
) -> Checked:
    import onnxruntime

    reference = _Reference(model, pinned)
    compiled = CompiledModel(library)
    evaluations, worst = 0, 0.0
    random = np.random.default_rng(1)
    for sizes, rounds in _all_sizes(reference.graph, compiled):
        for _ in range(rounds):
            try:
                inputs, expected = _expect(reference, sizes, random)
            except Exception as error:
                where = f" {sizes}" if sizes else " it"
                raise ModelError(f"ONNX Runtime does not run{where}: {error}") from None
            for variant in compiled.variants:
                found = compiled.run(variant, list(sizes.values()), inputs)
                for i, name in enumerate(reference.names):
                    where = f"{variant}, {sizes}: " if sizes else f"{variant}: "
                    off = _differences(where + name, found[i], expected[i])
                    worst = max(worst, float(np.max(off, initial=0)))
                    if np.all(off <= tolerance):
                        continue
                    noise = _noise(reference, inputs, random)[i]
                    if np.any(off > np.maximum(tolerance, _MUCH_NOISE * noise)):
                        raise _mismatch(where + name, found[i], expected[i], off)
            evaluations += 1
        if any(i.dtype.kind == "f" for i in inputs):
            _check_not_finite(reference, compiled, sizes, inputs, random)
    return Checked(compiled.variants, evaluations, worst, onnxruntime.__version__)


def _all_sizes(
    graph: Graph, compiled: CompiledModel
) -> Iterator[tuple[dict[str, int], int]]:
    """Yields sizes of the free extents, each with the number of tests to run.

    The code accepts these sizes. Usually, each extent has a different size.
    """
    symbols = graph.symbols
    if not symbols:
        yield {}, _ROUNDS
        return
    more = _more_sizes(graph)
    least = _least_of(symbols, compiled, [*more, max(_SIZES)])
    for i in range(len(_SIZES)):
        sizes = {
            s: max(least[s], _SIZES[(i + 3 * j) % len(_SIZES)])
            for j, s in enumerate(symbols)
        }
        if compiled.accepts(list(sizes.values())):
            yield sizes, _ROUNDS
    yield least, _ROUNDS
    for i in range(len(more)):
        sizes = {s: more[(i + j) % len(more)] for j, s in enumerate(symbols)}
        numbers = list(sizes.values())
        if (
            _is_small(graph, sizes)
            and compiled.accepts(numbers)
            and compiled.workspace_bytes(numbers) <= _MAX_WORKSPACE
        ):
            yield sizes, 1


def _least_of(
    symbols: Sequence[str], compiled: CompiledModel, enough: Sequence[int]
) -> dict[str, int]:
    """Returns each extent's smallest accepted size, or raises ModelError."""
    for size in enough:
        found: dict[str, int] = {}
        for i, symbol in enumerate(symbols):
            for least in range(1, size + 1):
                others = [size] * len(symbols)
                others[i] = least
                if compiled.accepts(others):
                    found[symbol] = least
                    break
        if len(found) == len(symbols):
            return found
    raise ModelError(f"the code accepts none of the sizes {list(enough)}")


def _more_sizes(graph: Graph) -> list[int]:
    """Returns a large size, and sizes near each constant in the model.

    An operator may behave differently for sizes above and below a constant.
    """
    near = {c + i for c in graph.constants() for i in (-1, 0, 1) if c < _BEYOND}
    found = sorted(near - {0, *_SIZES})
    step = max(1, -(-len(found) // _MORE_SIZES))
    return [_BEYOND, *found[::-step]]


def _shape(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[d] if isinstance(d, str) else d for d in tensor.extents)


def _is_small(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Returns whether each input has at most `_MAX_ELEMENTS` elements."""
    return all(math.prod(_shape(t, sizes)) <= _MAX_ELEMENTS for t in graph.inputs)


def _expect(
    reference: _Reference, sizes: Mapping[str, int], random: np.random.Generator
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Returns random inputs, and the outputs of ONNX Runtime for these inputs."""
    tensors = reference.graph.inputs
    integers = any(tensor.dtype.kind in "iu" for tensor in tensors)
    for below in _RANGES if integers else _RANGES[:1]:
        inputs = [_random(tensor, sizes, random, below) for tensor in tensors]
        try:
            return inputs, reference.run(inputs)
        except Exception:
            if below == _RANGES[-1] or not integers:
                raise
    raise AssertionError("the last range returns or raises")


def _random(
    tensor: Tensor, sizes: Mapping[str, int], random: np.random.Generator, below: int
) -> NDArray[Any]:
    shape = _shape(tensor, sizes)
    if tensor.dtype.kind == "f":
        return np.asarray(random.normal(size=shape)).astype(tensor.dtype)
    limit = 2
    if tensor.dtype.kind != "b":
        limit = min(below, int(np.iinfo(tensor.dtype).max))
    return np.asarray(random.integers(0, limit, shape)).astype(tensor.dtype)


def _differences(
    name: str, found: NDArray[Any], expected: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns the difference of each element. It is relative for numbers above 1.

    The difference of two unequal integers is infinite.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ModelError(
            f"{name}: expected {expected.dtype}{list(expected.shape)}, found "
            f"{found.dtype}{list(found.shape)}"
        )
    same = found == expected
    if found.dtype.kind != "f":
        return np.where(same, 0.0, np.inf)
    with np.errstate(invalid="ignore"):
        off = np.abs(found.astype(np.float64) - expected)
        off /= np.maximum(1.0, np.abs(expected))
    same |= np.isnan(found) & np.isnan(expected)
    return np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))


def _check_not_finite(
    reference: _Reference,
    compiled: CompiledModel,
    sizes: Mapping[str, int],
    inputs: Sequence[NDArray[Any]],
    random: np.random.Generator,
) -> None:
    """Checks that NaN and infinity do not become ordinary numbers.

    A compiler would use such an ordinary number as a decision. Compares only how many
    outputs are NaN or infinite, because ONNX does not specify how operators order NaN.
    """

    def count(values: NDArray[Any]) -> int:
        return int(np.sum(~np.isfinite(values))) if values.dtype.kind == "f" else 0

    for value in _NOT_FINITE:
        asked = [_with(value, i, random) for i in inputs]
        try:
            expected = reference.run(asked)
        except Exception:
            continue
        for variant in compiled.variants:
            found = compiled.run(variant, list(sizes.values()), asked)
            for name, ours, theirs in zip(
                reference.names, found, expected, strict=True
            ):
                if count(ours) < count(theirs):
                    raise ModelError(
                        f"{variant}: {name}: for an input of {value}, {count(theirs)} "
                        f"of ONNX Runtime's results are NaN or infinite, but only "
                        f"{count(ours)} of the code's results"
                    )


def _with(
    value: float, values: NDArray[Any], random: np.random.Generator
) -> NDArray[Any]:
    """Returns a copy of an array.

    In an array of floats, sets a random element to `value`.
    """
    copy = values.copy()
    if copy.dtype.kind == "f" and copy.size:
        copy.reshape(-1)[random.integers(copy.size)] = value
    return copy


def _noise(
    reference: _Reference, inputs: Sequence[NDArray[Any]], random: np.random.Generator
) -> list[float]:
    """Measures how much ONNX Runtime's outputs change if last bits change.

    A model can amplify rounding errors beyond the tolerance, for example if it is deep
    or if large numbers cancel out. A difference of this size does not mean that the
    code is wrong. The last bits of inputs and of weights are changed. The weights
    matter if the inputs are integers, which have no such bits.
    """
    still = reference.run(inputs)
    noise = [0.0] * len(still)
    near = (
        reference.run(
            [_perturbed(x, random) if x.dtype.kind == "f" else x for x in inputs]
        )
        for _ in range(_ROUNDS)
    )
    for outputs in (*near, *reference.run_near(inputs)):
        for i, (a, b) in enumerate(zip(still, outputs, strict=True)):
            if a.shape == b.shape:
                off = _differences(reference.names[i], b, a)
                noise[i] = max(noise[i], float(np.max(off, initial=0)))
    return noise


def _perturbed(values: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """Returns a copy of an array of floats in which some last bits differ."""
    step = np.finfo(values.dtype).eps * random.choice([-1, 0, 1], values.shape)
    with np.errstate(over="ignore"):
        near = (values * (1 + step)).astype(values.dtype).reshape(values.shape)
    # Keep the largest numbers, because an infinity would make all outputs NaN.
    return np.where(np.isinf(near), values, near)


def _mismatch(
    name: str, found: NDArray[Any], expected: NDArray[Any], off: NDArray[np.float64]
) -> ModelError:
    worst = int(np.argmax(off))
    index = [int(i) for i in np.unravel_index(worst, found.shape)]
    return ModelError(
        f"{name}{index}: expected {expected.flat[worst]} (ONNX Runtime's result), "
        f"found {found.flat[worst]}"
    )


def _main() -> None:
    request = json.load(sys.stdin)
    model, pinned = Path(request["model"]), request["pinned"]
    try:
        if "library" in request:
            library = Path(request["library"])
            reply = asdict(_compare(library, model, pinned, request["tolerance"]))
        else:
            reply = _find_least(model, pinned)
    except Exception as error:
        sys.exit(" ".join(str(error).split()))
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    _main()
