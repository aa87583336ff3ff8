# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles an ONNX model to machine code that needs no runtime (``mlbridge compile``).

    from mlbridge.aot import compile_model
    compile_model("policy.onnx", "libpolicy.so")

Each step has its own module: `graph` reads the file, `generate` writes C code with
emx-onnx-cgen, `extents` generalises the C code to free extents, `build` compiles the
code, and `check` compares the result with ONNX Runtime.
"""

import importlib.metadata
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal

from mlbridge.aot.build import CCompiler, archive
from mlbridge.errors import InvalidArgument, ModelError, Unsupported
from mlbridge.extras import how_to_install
from mlbridge.files import expect_output, replacing

Kind = Literal["shared", "object", "archive", "c"]
KINDS: Mapping[str, Kind] = {
    ".so": "shared",
    ".o": "object",
    ".a": "archive",
    ".c": "c",
}
"""Maps each file suffix to a kind of output."""
TOLERANCE = 1e-5


def compile_model(
    model: str | PathLike[str],
    output: str | PathLike[str],
    *,
    name: str | None = None,
    emit: Kind | None = None,
    header: str | PathLike[str] | None = None,
    pin: Mapping[str, int] | None = None,
    cc: str | None = None,
    tolerance: float = TOLERANCE,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Compiles an ONNX model, and compares the result with ONNX Runtime.

    The generated code has a variant for each kind of CPU. Each variant that this CPU
    supports is compared on random inputs. `output` is written only if all these
    variants pass.

    Args:
        model: the .onnx file. Its inputs and outputs are tensors of numbers.
        output: the file to write.
        name: the model's name, a C identifier. The default is derived from `output`.
        emit: the kind of output. The default is derived from the suffix of `output`.
        header: a C header to write, which declares the model.
        pin: maps free extents (dimensions without a fixed size) to fixed sizes.
        cc: the C compiler. The default is the first of $CC, cc, gcc, clang, clang-22.
        tolerance: the largest accepted difference. It is relative for numbers above 1.
        report: a function that is called with one line per step.

    Raises:
        InvalidArgument: a name, a suffix or an option is wrong.
        Malformed: the file is not an ONNX model.
        Unsupported: an operator cannot be compiled, or a Python package is missing.
        ModelError: a result differs from ONNX Runtime's. The message names the output,
            the index and both values.
        CompilerError: the C compiler failed.
    """
    try:
        from mlbridge.aot.check import check, least_sizes
        from mlbridge.aot.generate import declaration, generate
        from mlbridge.aot.graph import Graph
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"compiling a model needs the package {error.name}: "
            f"{how_to_install('compile')}"
        ) from error

    model, output = Path(model), Path(output)
    kind = emit or _kind_of(output)
    name = name or default_name(output)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidArgument(f"expected a C identifier as a name, found '{name}'")
    for path in (output, *([] if header is None else [Path(header)])):
        expect_output(path, model)
    compiler = CCompiler.find(cc)
    pinned = dict(pin or {})
    last = time.monotonic()

    def lap() -> str:
        nonlocal last
        before, last = last, time.monotonic()
        return f"{last - before:.1f} s"

    graph = Graph(model, pinned)
    # The compiled model must reject the sizes that ONNX Runtime rejects.
    least = least_sizes(model, pinned) if graph.symbols else {}
    text = generate(graph, name, least)
    version = importlib.metadata.version("emx-onnx-cgen")
    report(f"emx-onnx-cgen {version}: {len(text) >> 10} KiB of C in {lap()}")

    with tempfile.TemporaryDirectory(prefix="mlbridge-") as folder:
        source = Path(folder) / f"{name}.c"
        source.write_text(text)
        library, made = _build(compiler, source, kind)
        report(
            f"{compiler.version} ({' '.join(compiler.command)}): "
            f"{made.stat().st_size >> 10} KiB in {lap()}"
        )
        try:
            checked = check(library, model, pinned, tolerance)
        except ModelError as error:
            if not graph.symbols:
                raise
            way_out = f"--pin {graph.symbols[0]}=1"
            raise ModelError(f"{error}; it may be right with {way_out}") from None
        report(
            f"ONNX Runtime {checked.runtime} agrees with "
            f"{', '.join(checked.variants)}: "
            f"{checked.evaluations} evaluations of each, largest difference "
            f"{checked.difference:.1e}, in {lap()}"
        )
        if header is not None:
            with replacing(Path(header)) as new:
                new.write_text(declaration(name))
        with replacing(output) as new:
            # Use copy(), which also copies the permissions of the compiled file.
            shutil.copy(made, new)


def _kind_of(output: Path) -> Kind:
    """Returns the kind of a file by its suffix. Raises InvalidArgument."""
    kind = KINDS.get(output.suffix)
    if kind is None:
        raise InvalidArgument(
            f"'{output}': expected a name that ends in {', '.join(KINDS)}, or --emit"
        )
    return kind


def _build(compiler: CCompiler, source: Path, kind: Kind) -> tuple[Path, Path]:
    """Builds the library that `check` loads, and the requested file.

    Returns both paths.
    """
    library, object_file = source.with_suffix(".so"), source.with_suffix(".o")
    compiler.object(source, object_file)
    compiler.shared(object_file, library)
    if kind == "archive":
        archive(object_file, source.with_suffix(".a"))
    return library, source.with_suffix({k: suffix for suffix, k in KINDS.items()}[kind])


def default_name(output: Path) -> str:
    """Derives the model's name from a file name: `policy` for `libpolicy.so`."""
    return re.sub(r"\W", "_", output.stem.removeprefix("lib"), flags=re.ASCII)
