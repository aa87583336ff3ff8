# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles an .onnx file with Apache TVM to a library for ``tvm:policy.so``.

The package apache-tvm is needed. ``scripts/make-venv tvm`` installs it.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from mlbridge.aot.graph import Graph
from mlbridge.errors import ModelError
from mlbridge.files import replacing
from mlbridge.runtimes import signature_json


def runtime() -> Path:
    """Returns the path of TVM's runtime, for ``tvm:policy.so?runtime=PATH``.

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
        library: the .so to write. An existing file is replaced atomically.
        target: the target of TVM. The default is ``{"kind": "llvm"}``, which runs on
            any machine of this architecture.

    Raises:
        ImportError: the package apache-tvm is not installed.
        Malformed: the file is not an ONNX model.
        Unsupported: an input or output is not a tensor of numbers.
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
    with replacing(Path(library)) as made:
        try:
            module = from_onnx(graph.model, keep_params_in_input=False)
            with tvm.target.Target(target or {"kind": "llvm"}) as wanted:
                built = relax.build(relax.get_pipeline("zero")(module), wanted)
            built.export_library(str(made), addons=[_constant(made.parent, text)])
        except Exception as error:
            lines = str(error).strip().splitlines()
            raise ModelError(
                f"TVM cannot compile '{model}': {lines[-1] if lines else error!r}"
            ) from error


def _constant(folder: Path, text: str) -> str:
    """Compiles an object file with the signature as a C string."""
    source, made = folder / "signature.c", folder / "signature.o"
    # Use JSON to quote: an ASCII string in JSON is also a valid string in C.
    source.write_text(f"const char mlbridge_signature[] = {json.dumps(text)};\n")
    compiler = os.environ.get("CC", "cc")
    command: list[str | Path] = [compiler, "-c", "-fPIC", source, "-o", made]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return str(made)
