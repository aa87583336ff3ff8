# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge inspect``: shows the contents of an .onnx file."""

import json
from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mlbridge.errors import Malformed
from mlbridge.extras import pip_install
from mlbridge.files import expect_regular_file
from mlbridge.printable import name, whole
from mlbridge.terminal import console
from mlbridge.types import element_type_name

_File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="ONNX file.")]


def inspect(file: _File) -> None:
    """Show the inputs, outputs and metadata of an .onnx file.

    The inputs are the features that a compiler must send. A dimension with a name may
    have any size. docs/reference/model-metadata.md explains the metadata.
    """
    model = _load(file)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    table = Table(title=name(str(file)), title_justify="left")
    for column in ("", "name", "type"):
        table.add_column(column, no_wrap=column != "name", overflow="fold")
    for what, values in (("input", inputs), ("output", model.graph.output)):
        for value in values:
            table.add_row(what, name(value.name), name(_type(value, file)))
        table.add_section()
    console.print(table)

    about = Table(box=None, show_header=False, pad_edge=False)
    about.add_column(no_wrap=True, style="dim")
    about.add_column(overflow="fold")
    # A file may list the same opset several times, also by the alias "ai.onnx".
    opsets = dict.fromkeys(
        f"{'onnx' if o.domain in ('', 'ai.onnx') else name(o.domain)} {o.version}"
        for o in model.opset_import
    )
    word = "opset" if len(opsets) == 1 else "opsets"
    about.add_row("operators", f"{len(model.graph.node)}, {word} {', '.join(opsets)}")
    about.add_row("weights", f"{sum(prod(w.dims) for w in model.graph.initializer):,}")
    for entry in model.metadata_props:
        # Skip the features, because the table of inputs has shown them.
        if entry.key != "mlbridge.features":
            about.add_row(name(entry.key), whole(_value(entry.value)))
    console.print(about)


def _load(file: Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise typer.BadParameter(
            f"reading an .onnx file needs the package onnx: {pip_install('onnx')}"
        ) from None
    expect_regular_file(file)
    try:
        model = onnx.load(file, load_external_data=False)
    except Exception as error:
        raise Malformed(f"{file}: expected an ONNX model: {error}") from error
    if not model.graph.output:
        raise Malformed(f"{file}: expected an ONNX model, found one without outputs")
    return model


def _type(value: Any, file: Path) -> str:
    """Returns the type of an input or output as text, for example `float[N,300]`."""
    from onnx import helper

    tensor = value.type.tensor_type
    if not tensor.elem_type:
        return "no tensor"
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    except KeyError:
        raise Malformed(
            f"{file}: '{value.name}': expected an element type of ONNX, found "
            f"{tensor.elem_type}"
        ) from None
    try:
        element = "string" if dtype.kind == "O" else element_type_name(dtype)
    except TypeError:
        element = str(dtype)
    shape = ",".join(str(d.dim_value or d.dim_param or "?") for d in tensor.shape.dim)
    return f"{element}[{shape}]" if shape else element


def _value(text: str) -> str:
    """Formats a JSON object as one line per entry. Other text is returned unchanged."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        return "\n".join(f"{key}: {value}" for key, value in found.items())
    return text
