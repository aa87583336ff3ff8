# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a SavedModel of TensorFlow, such as a policy of TF-Agents or MLGO.

A Python interpreter that has TensorFlow runs worker/savedmodel.py. It may differ from
the interpreter that runs this module.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from mlbridge.errors import Malformed, ModelError, Unsupported
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import (
    OPSET,
    Policy,
    Port,
    Tensors,
    named_features,
    observe,
)

WORKER = Path(__file__).with_name("worker") / "savedmodel.py"
CONVERTING, REPLYING = 600.0, 60.0
"""The time limits in seconds."""


def is_saved_model(path: Path) -> bool:
    """Returns whether a path is the folder of a SavedModel."""
    return (path / "saved_model.pb").is_file()


def policy_of(
    folder: str | os.PathLike[str],
    features: Sequence[FeatureSpec],
    *,
    signature: str | None = None,
    constants: Mapping[str, float] | None = None,
    python: str | os.PathLike[str] | None = None,
) -> Policy:
    """Makes a policy from the folder of a SavedModel.

    Each input of the signature receives the feature with its name. The inputs
    ``step_type``, ``reward`` and ``discount`` of TF-Agents become 0.

    Args:
        folder: the folder, which contains ``saved_model.pb``. If it also contains
            ``output_spec.json``, as for MLGO, the first output in this file is the
            decision.
        features: the compiler's features. The default is the inputs.
        signature: the name of the signature. The default is ``serving_default``,
            ``action`` or the only one.
        constants: maps further inputs to numbers, which replace these inputs.
        python: a Python interpreter with TensorFlow and tf2onnx. The default is the
            interpreter that runs this function.

    Raises:
        SchemaMismatch: the features do not fit the inputs.
        Unsupported: TensorFlow is missing, or the model cannot be converted.
        Malformed: output_spec.json does not fit the model.
    """
    path = Path(folder)
    worker = _Worker(path, os.fspath(python or sys.executable))
    about = worker.convert(signature, dict(constants or {}))
    model = onnx.load(worker.graph)
    first = [_batch_of(path, one) for one in about["inputs"]]
    if len(set(first)) > 1:
        raise Unsupported(
            f"{path}: expected inputs with the same first extent, found {first}"
        )
    wanted = [
        FeatureSpec(one["name"], one["type"], tuple(one["shape"][1:]))
        for one in about["inputs"]
    ]
    chosen = named_features(features, wanted, str(path))
    ports = tuple(
        Port(w.name, (f,), w.dtype, w.shape)
        for f, w in zip(chosen, wanted, strict=True)
    )
    types = {
        value.name: onnx.helper.tensor_dtype_to_np_dtype(
            value.type.tensor_type.elem_type
        )
        for value in model.graph.output
    }

    def reply(tensors: Tensors) -> dict[str, NDArray[Any]]:
        found = worker.ask(observe(ports, tensors))
        return {name: np.asarray(found[name], dtype) for name, dtype in types.items()}

    return Policy(
        model,
        ports,
        about["version"],
        reply,
        decide=_decision(path, about["outputs"]),
        batch=first[0],
        constants=about["constants"],
    )


def _batch_of(path: Path, described: Mapping[str, Any]) -> int | None:
    name, shape = described["name"], described["shape"]
    if not shape or None in shape[1:]:
        raise Unsupported(
            f"{path}: input '{name}': expected the shape [batch, ...] with a size for"
            f" each extent except the batch, found {shape}"
        )
    batch: int | None = shape[0]
    return batch


def _decision(path: Path, outputs: Sequence[str]) -> str | None:
    """Returns the rule for the decision that MLGO's output_spec.json names."""
    described = path / "output_spec.json"
    if not described.is_file():
        return None
    try:
        name = json.loads(described.read_text(encoding="utf-8"))[0]["logging_name"]
    except (ValueError, LookupError, TypeError) as error:
        raise Malformed(
            f'{described}: expected [{{"logging_name": OUTPUT, ...}}, ...]: {error!r}'
        ) from error
    if name not in outputs:
        raise Malformed(
            f"{described}: expected an output of the model, {', '.join(outputs)}, found"
            f" '{name}'"
        )
    return f"outputs:{name}"


class _Worker:
    """A process that loads the model. The process ends with this object."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder, self._python = folder, python
        self._scratch = tempfile.TemporaryDirectory(prefix="mlbridge-savedmodel-")
        self.graph = Path(self._scratch.name) / "model.onnx"
        self._said = self.graph.with_name("stderr")
        self._rest = b""

    def convert(
        self, signature: str | None, constants: Mapping[str, float]
    ) -> dict[str, Any]:
        """Starts the process, which writes `graph`. Returns the model's description."""
        job = {
            "folder": str(self._folder),
            "signature": signature,
            "constants": constants,
            "opset": OPSET,
            "to": str(self.graph),
        }
        try:
            with self._said.open("wb") as said:
                process = subprocess.Popen(
                    [self._python, str(WORKER), json.dumps(job)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    start_new_session=True,
                )
        except OSError as error:
            self._scratch.cleanup()
            raise Unsupported(
                f"cannot run {self._python}: {error.strerror}: {_HOW}"
            ) from None
        self._process = process
        weakref.finalize(self, _end, process, self._scratch)
        about = self._receive(CONVERTING)
        if "missing" in about:
            raise Unsupported(
                f"reading {self._folder} needs the Python package '{about['missing']}'"
                f", which {self._python} does not have: {_HOW}"
            )
        return about

    def ask(self, inputs: Tensors) -> dict[str, Any]:
        """Returns the outputs by name."""
        request = {name: value.tolist() for name, value in inputs.items()}
        assert self._process.stdin is not None
        # A process that has ended cannot receive. `_receive` then raises its error.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._receive(REPLYING)

    def _receive(self, limit: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end, output = time.monotonic() + limit, self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([output], [], [], max(0.0, end - time.monotonic()))[0]:
                raise ModelError(
                    f"{self._folder}: {self._python} has not replied in {limit:.0f} s"
                )
            part = os.read(output, 1 << 20)
            if not part:
                last = self._said.read_text(errors="replace").strip()[-2000:]
                raise ModelError(f"{self._folder}: {self._python} has ended: {last}")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise Unsupported(f"{self._folder}: {said['error']}")
        return said


_HOW = (
    "name a Python that has TensorFlow and tf2onnx (python=, --python), such as "
    "build/venvs/keras/bin/python after VENV=build/venvs/keras scripts/make-venv keras"
)


def _end(
    process: subprocess.Popen[bytes], scratch: tempfile.TemporaryDirectory[str]
) -> None:
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout):
        assert file is not None
        with contextlib.suppress(BrokenPipeError):
            file.close()
    scratch.cleanup()
