# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the outputs of an exported graph with the outputs of the framework."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from mlbridge.errors import ModelError
from mlbridge.export.features import free_extents
from mlbridge.export.policy import Policy, Tensors
from mlbridge.onnx import open_session

ABSOLUTE, RELATIVE, CANCELLED = 1e-5, 1e-4, 1e-6
"""The parts of the tolerance, which accepts another order of summation. The tolerance
is the sum of ABSOLUTE, RELATIVE times the output, and CANCELLED times the largest
number in the request."""
ALONE = 4
"""The number of requests that are also compared in a batch of one."""
SIZES = 4
"""The number of sizes to try for free extents. The first size is 1."""
_ROWS = 24
"""The largest size to try for a free extent without a limit."""
_LISTED = 8
"""The maximum number of features in an error message."""

Some = slice | NDArray[np.intp]
"""The indices of some requests."""


@dataclass(frozen=True)
class Comparison:
    """The result of a successful check."""

    requests: int
    differences: dict[str, float]
    """Maps each output to its largest relative difference. This is the difference,
    divided by the largest of 1, the output and all numbers in the request."""

    def __str__(self) -> str:
        found = ", ".join(f"{k}: {v:.2g}" for k, v in self.differences.items())
        return f"{self.requests} requests, largest relative difference {found}"


def compare(
    model: onnx.ModelProto,
    policy: Policy,
    *,
    batch: int | None,
    requests: int = 256,
    samples: Tensors | None = None,
) -> Comparison:
    """Compares ONNX Runtime with the framework on the same requests.

    If the graph accepts any batch size, all requests are sent as one batch, and some of
    them also in a batch of one. Requests are random unless `samples` contains some.

    Raises:
        ModelError: an output differs. The message names the output and the request.
    """
    session = open_session(model.SerializeToString(), log_level=3)
    random = np.random.default_rng(0)
    differences = {output.name: 0.0 for output in session.get_outputs()}
    groups = [samples] if samples else _draw(policy, requests, random)
    count = sum(
        _compare(session, policy, group, batch, differences) for group in groups
    )
    return Comparison(count, differences)


def _draw(
    policy: Policy, requests: int, random: np.random.Generator
) -> Iterator[Tensors]:
    """Yields groups of random requests. Each group has other sizes of free extents."""
    free = sorted(free_extents(policy.features))
    most = {extent: policy.limits.get(extent, _ROWS) for extent in free}
    for i in range(SIZES if free else 1):
        sizes = {
            extent: int(random.integers(1, limit, endpoint=True)) if i else 1
            for extent, limit in most.items()
        }
        count = -(-requests // SIZES) if free else requests
        yield {f.name: f.draw(count, random, sizes) for f in policy.features}


def _compare(
    session: Any,
    policy: Policy,
    drawn: Tensors,
    batch: int | None,
    differences: dict[str, float],
) -> int:
    """Compares requests and updates `differences`. Returns the number of requests."""
    asked = {f.name: np.asarray(drawn[f.name], f.dtype) for f in policy.features}
    count = min(map(len, asked.values()))
    names = list(differences)

    def part(some: Some) -> dict[str, NDArray[Any]]:
        return {name: values[some] for name, values in asked.items()}

    def ask(some: Some) -> dict[str, NDArray[Any]]:
        return dict(zip(names, session.run(names, part(some)), strict=True))

    def check(found: Tensors, some: Some) -> None:
        features = part(some)
        expected = policy.reply(features)
        for name in names:
            right = np.asarray(expected[name])
            if right.dtype.kind == "f" and np.isnan(right).any():
                raise ModelError(
                    f"output '{name}': the policy itself answers NaN: its training"
                    " failed, for example because a reward was NaN or the learning rate"
                    " was too high"
                )
            if policy.limits and right.ndim == found[name].ndim:
                right = _without_padding(name, right, found[name].shape, policy.decide)
            difference = _difference(name, found[name], right, features)
            differences[name] = max(differences[name], difference)

    if batch is None:
        together = ask(slice(0, count))
        check(together, slice(0, count))
        for one in (slice(i, i + 1) for i in range(min(ALONE, count))):
            check(ask(one), one)
            check({name: values[one] for name, values in together.items()}, one)
    else:
        for start in range(0, count, batch):
            # Fill the last batch with the first requests.
            some = np.arange(start, start + batch) % count
            check(ask(some), some)
    return count


def _without_padding(
    name: str, padded: NDArray[Any], shape: tuple[int, ...], decide: str | None
) -> NDArray[Any]:
    """Removes padding from an output.

    Raises ModelError if the argmax is in the padding.
    """
    if decide == f"argmax:{name}" and (padded.argmax(-1) >= shape[-1]).any():
        raise ModelError(
            f"output '{name}': the network decides for padding, not for one of the"
            f" {shape[-1]} rows: it has to use the masks"
        )
    return padded[tuple(map(slice, shape))]


def _difference(
    name: str, found: NDArray[Any], expected: NDArray[Any], features: Tensors
) -> float:
    """Returns the largest difference, divided as in `Comparison`.

    Raises ModelError if it exceeds the tolerance.
    """
    if found.shape != expected.shape:
        raise ModelError(
            f"output '{name}': expected the shape {list(expected.shape)} of the "
            f"framework's output, found {list(found.shape)} in the exported graph"
        )
    if expected.size == 0:
        return 0.0
    scale: NDArray[Any] | float = 1.0
    if expected.dtype.kind not in "biuf":
        wrong = found != expected
        apart = wrong.astype(float)
    else:
        apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        size = np.abs(expected.astype(np.float64))
        rows = [np.abs(v.reshape(len(v), -1).astype(float)) for v in features.values()]
        largest = np.max([row.max(axis=1) for row in rows], axis=0)
        largest = largest.reshape(-1, *[1] * (expected.ndim - 1))
        tolerance = ABSOLUTE + RELATIVE * size + CANCELLED * largest
        exact = expected.dtype.kind != "f"
        wrong = apart != 0 if exact else ~(apart <= tolerance)
        # Accept equal infinities and NaNs, whose difference would be NaN.
        same = np.asarray(
            (found == expected) | ((found != found) & (expected != expected))
        )
        wrong, apart = wrong & ~same, np.where(same, 0, apart)
        scale = np.where(same, 1, np.maximum(np.maximum(size, largest), 1))
    if wrong.any():
        worst = tuple(np.argwhere(wrong)[np.argmax(apart[wrong])].tolist())
        asked = [f"{k}={_shorten(v[worst[0]])}" for k, v in features.items()]
        more = f" and {len(asked) - _LISTED} more" if len(asked) > _LISTED else ""
        raise ModelError(
            f"output '{name}' differs in {np.count_nonzero(wrong)} of {wrong.size} "
            f"elements: at {list(worst)} the framework returns {expected[worst]}, and "
            f"the exported graph {found[worst]}, for {', '.join(asked[:_LISTED])}"
            f"{more}. If outputs depend on the other requests of a batch, use batch=1 "
            "(--batch 1); if outputs are random, remove the randomness from the policy"
        )
    return float((apart / scale).max())


def _shorten(value: NDArray[Any]) -> str:
    return np.array2string(value.squeeze(), threshold=6, edgeitems=3, precision=5)
