# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways to run a model, for the benchmarks of whole compiles."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Protocol

from mlbridge.files import spec_of
from mlbridge_benchmarks.common import savedmodel

# Maps each flow whose model is in another process to the model's address and to the
# options of the compiler's spec.
SERVED = {
    "gRPC": ("grpc+unix:{}", ""),
    "pipe, JSON": ("pipe:{}", "?serdes=json"),
    "pipe, bitstream": ("pipe:{}", "?serdes=bitstream"),
    "shm": ("shm:{}", ""),
}
IN_PROCESS = ("onnx", "aot")
"""The flows whose model is in the compiler's process, named like the runners."""


def in_process_spec(runner: str, model: Path, folder: Path) -> str:
    """Returns the spec with which a runner evaluates an .onnx file.

    For aot, compiles the model to the folder. For TensorFlow's runners, `savedmodel`
    converts the model.
    """
    if runner in savedmodel.SETS:
        return savedmodel.spec(runner, model)
    if runner == "aot":
        from mlbridge.aot import compile_model

        library = folder / f"lib{model.stem}.so"
        compile_model(model, library)
        return spec_of(runner, library)
    return spec_of(runner, model)


def rotated(names: Iterable[str], turn: int) -> list[str]:
    """Returns the names in another order each turn.

    The first flow that compiles a module may be slower, so each flow is sometimes the
    first.
    """
    order = list(names)
    start = turn % len(order)
    return order[start:] + order[:start]


class _Timed(Protocol):
    @property
    def seconds(self) -> float: ...


def mean_ratio(
    ours: Iterable[Sequence[_Timed]], theirs: Iterable[Sequence[_Timed]]
) -> float:
    """Returns the ratio of the times of `ours` to the times of `theirs`.

    It is the geometric mean, over the modules, of a module's median ratio over the
    rounds.

    Each element of `ours` and `theirs` has the times of one module, one time per round.
    """
    return geometric_mean(
        median(a.seconds / b.seconds for a, b in zip(mine, base, strict=True))
        for mine, base in zip(ours, theirs, strict=True)
    )
