# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts .onnx models to SavedModels, and compiles these to machine code.

Two runners use TensorFlow. ``tf`` loads a SavedModel with TensorFlow's library, and
``tf-aot`` runs the same model compiled to machine code, which needs no TensorFlow. Each
runner has its own virtual environment with its own version of TensorFlow. Models are
kept in the checkout.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from mlbridge.errors import ModelError, Timeout, Unsupported
from mlbridge.files import replacing, spec_of

from .processes import ROOT

TF, TF_AOT = "tf", "tf-aot"
SETS = {TF: "keras", TF_AOT: "tf-aot"}
"""The requirements of each runner, and the name of its virtual environment."""

MODELS = ROOT / "build" / "tensorflow-models"
WRITER = Path(__file__).with_name("savedmodel_writer.py")
PROJECT = Path(__file__).with_name("tf_aot")
COMPILER = ROOT / "lib/TF/AOT"
SECONDS = 1800.0  # The time limit for writing all SavedModels, and for compiling all.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}


def _environment(runner: str) -> Path:
    return ROOT / "build" / "venvs" / SETS[runner]


def python_of(runner: str) -> Path:
    """Returns the Python interpreter that has a runner's TensorFlow."""
    named = os.environ.get("MLBRIDGE_TF_AOT_PYTHON") if runner == TF_AOT else None
    return Path(named) if named else _environment(runner) / "bin" / "python"


def library() -> Path | None:
    """Returns TensorFlow's library, or None if it is not installed."""
    if named := os.environ.get("MLBRIDGE_TENSORFLOW"):
        return Path(named)
    pattern = "lib/python3*/site-packages/tensorflow/libtensorflow_cc.so.2"
    return next(_environment(TF).glob(pattern), None)


def variables() -> dict[str, str]:
    """Returns the environment variables with which a compiler finds TensorFlow."""
    found = library()
    return QUIET | ({"MLBRIDGE_TENSORFLOW": str(found)} if found else {})


def missing(runner: str) -> str:
    """Returns what a runner lacks, or "" if it can be used.

    Whether a client or a plug-in was built with TensorFlow is not checked.
    """
    name = SETS.get(runner)
    if name is None:
        return ""
    if not python_of(runner).exists() or (runner == TF and library() is None):
        return f"needs `VENV=build/venvs/{name} scripts/make-venv {name}`"
    if runner == TF_AOT and shutil.which("cmake") is None:
        return "needs cmake"
    return ""


def make(runner: str, models: Iterable[Path]) -> list[Path]:
    """Returns the SavedModel of each .onnx model or, for tf-aot, the model's library.

    Raises:
        Unsupported: TensorFlow is missing, or a model has extents that are not fixed.
        ModelError: TensorFlow cannot save or compile a model.
        Timeout: one of the steps took more than `SECONDS`.
    """
    if why := missing(runner):
        raise Unsupported(f"{runner}: {why}")
    MODELS.mkdir(parents=True, exist_ok=True)
    files = {model: MODELS / _name(runner, model) for model in models}
    suffix = ".so" if runner == TF_AOT else ".tf"
    made = {model: path.with_suffix(suffix) for model, path in files.items()}
    lacking = {model: files[model] for model in files if not made[model].exists()}
    if lacking:
        _save(runner, lacking)
        if runner == TF_AOT:
            _compile(list(lacking.values()))
    return list(made.values())


def spec(runner: str, model: Path) -> str:
    """Returns the spec of an .onnx model's SavedModel, or of its machine code."""
    (made,) = make(runner, [model])
    scheme = "aot" if runner == TF_AOT else "tf"
    return f"{spec_of(scheme, made)}{_decision(model)}"


def _decision(model: Path) -> str:
    """Returns the options of a spec that replace the metadata of an .onnx model."""
    import onnx

    loaded = onnx.load(model, load_external_data=False)
    about = {one.key: one.value for one in loaded.metadata_props}
    rule, _, output = about.get("mlbridge.decide", "").partition(":")
    options = {"decide": rule, "output": output, "finite": about.get("mlbridge.finite")}
    told = [f"{key}={quote(value)}" for key, value in options.items() if value]
    return f"?{'&'.join(told)}" if told else ""


def _name(runner: str, model: Path) -> str:
    """Returns a name that contains a hash of all that determines the result."""
    digest = hashlib.sha256(model.read_bytes())
    digest.update(WRITER.read_bytes())
    if runner == TF_AOT:
        sources = [PROJECT / "CMakeLists.txt", ROOT / "cmake/MLBridgeTFAOT.cmake"]
        for path in (*sources, *sorted(COMPILER.iterdir())):
            if path.is_file():
                digest.update(path.read_bytes())
    return f"{model.stem.split('.')[0]}-{runner}-{digest.hexdigest()[:16]}"


def graph_of(model: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the graph of an .onnx model for `savedmodel_writer`, and its arrays."""
    import onnx
    from onnx import helper, numpy_helper

    loaded = onnx.load(model)
    arrays, constants = dict[str, Any](), dict[str, str]()

    def keep(name: str, tensor: Any) -> None:
        constants[name] = f"c{len(constants)}"
        arrays[constants[name]] = numpy_helper.to_array(tensor)

    def dtype(number: int) -> str:
        return str(helper.tensor_dtype_to_np_dtype(number))

    for tensor in loaded.graph.initializer:
        keep(tensor.name, tensor)
    nodes = []
    for node in loaded.graph.node:
        about = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant" and "value" in about:
            keep(node.output[0], about["value"])
            continue
        if node.op_type == "Cast":
            about["to"] = dtype(about["to"])
        if strange := [n for n, v in about.items() if not _is_plain(v)]:
            raise Unsupported(
                f"{model}: {node.op_type}: the attribute {strange[0]} is not supported"
            )
        nodes.append(
            {
                **{"operator": node.op_type, "attributes": about},
                **{"inputs": list(node.input), "outputs": list(node.output)},
            }
        )
    inputs = []
    for value in loaded.graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        shape = [
            d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim
        ]
        # One request is evaluated at a time, so its batch has the size 1.
        if shape and shape[0] is None:
            shape[0] = 1
        if None in shape:
            raise Unsupported(
                f"{model}: input {value.name!r}: expected fixed extents, found {shape}"
            )
        inputs.append(
            {"name": value.name, "type": dtype(kind.elem_type), "shape": shape}
        )
    graph = {
        **{"inputs": inputs, "outputs": [one.name for one in loaded.graph.output]},
        **{"nodes": nodes, "constants": constants},
    }
    return graph, arrays


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, int | float | str)


def _save(runner: str, models: Mapping[Path, Path]) -> None:
    """Writes SavedModels.

    `models` maps each .onnx file to the SavedModel's path without the suffix ``.tf``.
    """
    with tempfile.TemporaryDirectory(dir=MODELS) as name:
        words: list[str | Path] = []
        for model, target in models.items():
            folder = target.with_suffix(".tf")
            if folder.exists():
                continue
            graph, arrays = graph_of(model)
            source = Path(name, f"{target.name}.npz")
            np.savez(source, graph=np.array(json.dumps(graph)), **arrays)
            words += [source, folder]
        if words:
            # In isolated mode, Python does not import modules from this folder.
            _run([python_of(runner), "-I", WRITER, *words], "TensorFlow")


def _compile(models: Sequence[Path]) -> None:
    """Compiles the SavedModels of `_save` to libraries."""
    build = MODELS / "tf-aot"
    listed = ";".join(str(model.with_suffix(".tf")) for model in models)
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DMODELS={listed}"]
    options.append(f"-DMLBRIDGE_TF_AOT_PYTHON={python_of(TF_AOT)}")
    _run(["cmake", "-S", PROJECT, "-B", build, *options], "cmake")
    jobs = str(len(os.sched_getaffinity(0)))
    _run(["cmake", "--build", build, "--parallel", jobs], "cmake")
    for model in models:
        name = f"{model.name}.so"
        with replacing(MODELS / name) as new:
            shutil.copy(build / name, new)


def _run(command: Sequence[str | Path], what: str) -> None:
    """Runs a command, and reports its last lines if it fails."""
    try:
        done = subprocess.run(
            command,
            timeout=SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | QUIET,
        )
    except subprocess.TimeoutExpired:
        raise Timeout(f"{what} took more than {SECONDS:g} s") from None
    if done.returncode:
        raise ModelError(f"{what}: status {done.returncode}: {done.stdout[-2000:]}")
