# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Apache TVM: from an .onnx file to a library for ``tvm:policy.so``.

Needs the package apache-tvm: ``scripts/make-venv tvm``.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mlbridge.aot.graph import Graph
from mlbridge.errors import ModelError
from mlbridge.runtimes import signature_json


def runtime() -> Path:
    """The library that the runner needs, as in ``tvm:policy.so?runtime=PATH``.

    Raises:
        ImportError: the package apache-tvm is not installed.
    """
    import tvm

    return Path(tvm.__file__).parent / "lib/libtvm_runtime.so"


def compile_model(
    model: str | os.PathLike[str],
    library: str | os.PathLike[str],
    *,
    target: dict[str, Any] | None = None,
) -> None:
    """Compiles a model.

    Args:
        model: the .onnx file. Extents without a value are free.
        library: what to write, a .so. Replaced at once, or not at all.
        target: TVM's; by default ``{"kind": "llvm"}``, any machine of this kind.

    Raises:
        ImportError: the package apache-tvm is not installed.
        Malformed: the file is no ONNX model.
        Unsupported: an input or an output is no tensor of numbers.
        ModelError: TVM cannot compile the model.
    """
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    graph = Graph(Path(model), {})
    text = signature_json(
        [(t.name, t.dtype, t.extents) for t in graph.inputs],
        [(t.name, t.dtype, t.extents) for t in graph.outputs],
        graph.properties,
    )
    output = Path(library)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        made = Path(folder) / output.name
        try:
            module = from_onnx(graph.model, keep_params_in_input=False)
            with tvm.target.Target(target or {"kind": "llvm"}) as wanted:
                built = relax.build(relax.get_pipeline("zero")(module), wanted)
            built.export_library(str(made), addons=[_constant(folder, text)])
        except Exception as error:
            lines = str(error).strip().splitlines()
            raise ModelError(
                f"TVM cannot compile '{model}': {lines[-1] if lines else error!r}"
            ) from error
        made.replace(output)


def _constant(folder: str, text: str) -> str:
    """An object file with the signature, a string in C."""
    source = Path(folder) / "signature.c"
    # A string in JSON is one in C as well, where no character is beyond ASCII.
    source.write_text(f"const char mlbridge_signature[] = {json.dumps(text)};\n")
    made = source.with_suffix(".o")
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-c", "-fPIC", str(source), "-o", str(made)],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return str(made)
