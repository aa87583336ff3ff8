# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an ONNX model to machine code that needs no runtime: ``mlbridge compile``.

    from mlbridge.aot import compile_model
    compile_model("policy.onnx", "libpolicy.so")

`graph` reads the file, `generate` writes one C file (the operators' code is
emx-onnx-cgen's; `extents` makes it work for free extents), `build` compiles it, and
`check` compares the result with ONNX Runtime.
"""

import importlib.metadata
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mlbridge.errors import InvalidArgument, ModelError, Unsupported
from mlbridge.extras import how_to_install

if TYPE_CHECKING:
    from mlbridge.aot.build import CCompiler

Kind = Literal["shared", "object", "archive", "c"]
KINDS: Mapping[str, Kind] = {
    ".so": "shared",
    ".o": "object",
    ".a": "archive",
    ".c": "c",
}
"""What is made, by the suffix of the output."""
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

    Nothing is written to `output` before every variant of the code that this CPU can
    run has given ONNX Runtime's answers on random inputs, for several sizes of the
    extents that are free.

    Args:
        model: the .onnx file. Its inputs and outputs are tensors of numbers.
        output: the file to write.
        name: the model's, a C identifier; by default out of the output's file name.
        emit: what to write; by default what the output's suffix says.
        header: a C header to write beside it, which declares the model.
        pin: sizes for extents that are free, by name.
        cc: the C compiler; by default $CC, cc, gcc, clang or clang-22.
        tolerance: how far a floating-point number may be off, relative to those
            above 1.
        report: gets a line for each step.

    Raises:
        InvalidArgument: a name, a suffix or an option is wrong.
        Malformed: the file is no ONNX model.
        Unsupported: the model has an operator that cannot be compiled, and the
            message says which; or a package that compiling needs is missing.
        ModelError: the code does not compute what ONNX Runtime does; the message
            names the output, the index and both values.
        CompilerError: the C compiler failed.
    """
    try:
        from mlbridge.aot.build import CCompiler
        from mlbridge.aot.check import check, least_sizes
        from mlbridge.aot.generate import declaration, generate
        from mlbridge.aot.graph import Graph
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"compiling a model needs the package {error.name}: "
            f"{how_to_install('compile')}"
        ) from error

    model, output = Path(model), Path(output)
    kind = emit or KINDS.get(output.suffix)
    if kind is None:
        raise InvalidArgument(
            f"'{output}': expected a name that ends in {', '.join(KINDS)}, or --emit"
        )
    name = name or default_name(output)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidArgument(
            f"expected a C identifier for the model's name, found '{name}'"
        )
    compiler = CCompiler.find(cc)
    pinned = dict(pin or {})
    clock = _Clock()
    graph = Graph(model, pinned)
    # What is there for a smaller size would be made up.
    least = least_sizes(model, pinned) if graph.symbols else {}
    text = generate(graph, name, least)
    version = importlib.metadata.version("emx-onnx-cgen")
    report(f"emx-onnx-cgen {version}: {len(text) >> 10} KiB of C in {clock.lap()}")

    with tempfile.TemporaryDirectory(prefix="mlbridge-") as folder:
        source = Path(folder) / f"{name}.c"
        source.write_text(text)
        library, made = _build(compiler, source, kind)
        report(
            f"{compiler.version} ({compiler.command[0]}): "
            f"{made.stat().st_size >> 10} KiB in {clock.lap()}"
        )
        try:
            checked = check(library, model, pinned, tolerance)
        except ModelError as error:
            if not graph.symbols:
                raise
            raise ModelError(
                f"{error}; with fewer free sizes it may be right:"
                f" --pin {graph.symbols[0]}=1"
            ) from None
        report(
            f"ONNX Runtime {checked.runtime} agrees with "
            f"{', '.join(checked.variants)}: "
            f"{checked.evaluations} evaluations of each, largest difference "
            f"{checked.difference:.1e}, in {clock.lap()}"
        )
        if header is not None:
            declared = Path(folder) / f"{name}.h"
            declared.write_text(declaration(name))
            _put(declared, Path(header))
        _put(made, output)


def _build(compiler: "CCompiler", source: Path, kind: Kind) -> tuple[Path, Path]:
    """The library that is compared, and what was asked for, both beside the source."""
    made = source.with_suffix({kind: suffix for suffix, kind in KINDS.items()}[kind])
    library, object_file = source.with_suffix(".so"), source.with_suffix(".o")
    compared = object_file
    if kind != "shared":
        compiler.object(source, object_file)
        compared = object_file.with_name("checked.o")
    # Only a library that is opened by name has the symbol that all models share.
    compiler.object(source, compared, "-DMLBRIDGE_AOT_SHARED")
    compiler.shared(compared, library)
    if kind == "archive":
        from mlbridge.aot.build import archive

        archive(object_file, made)
    return library, made


def _put(made: Path, output: Path) -> None:
    """A new file at once: the old one may be loaded, and is read until then."""
    descriptor, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    temporary = Path(name)
    try:
        os.close(descriptor)
        # With the permissions that the compiler gave it.
        shutil.copy(made, temporary)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def default_name(output: Path) -> str:
    """The model's name, out of a file name: policy of `libpolicy.so`."""
    return re.sub(r"\W", "_", output.stem.removeprefix("lib"), flags=re.ASCII)


class _Clock:
    """How long the steps take."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> str:
        """Since the last call, in words."""
        now = time.monotonic()
        taken, self._last = now - self._last, now
        return f"{taken:.1f} s"
