# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge inspect``: shows what is in an .onnx file."""

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


def inspect(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
) -> None:
    """Show an .onnx file: its inputs, its outputs, and what it says of itself.

    What a compiler has to send is among the inputs, by name, with the types that LLVM
    gives them; a dimension with a name is free. What the metadata means is in
    docs/model-metadata.md.

    ```sh
    mlbridge export ppo.zip --to inliner.onnx
    mlbridge inspect inliner.onnx
    ```
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
    versions = (f"{name(o.domain or 'onnx')} {o.version}" for o in model.opset_import)
    about.add_row("operators", f"{len(model.graph.node)} of {', '.join(versions)}")
    about.add_row("weights", f"{sum(prod(w.dims) for w in model.graph.initializer):,}")
    for entry in model.metadata_props:
        # The inputs say it already.
        if entry.key != "mlbridge.features":
            about.add_row(name(entry.key), whole(_value(entry.value)))
    console.print(about)


def _load(file: Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise typer.BadParameter(
            f"to look into an .onnx file takes onnx: {pip_install('onnx')}"
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
    """``float[N,300]``, with the bridge's names of types."""
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
    extents = (str(dim.dim_value or dim.dim_param or "?") for dim in tensor.shape.dim)
    shape = ",".join(extents)
    return f"{element}[{shape}]" if shape else element


def _value(text: str) -> str:
    """A JSON object a line each, anything else as it is.

    What is nested more deeply than Python reads is text, too.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        return "\n".join(f"{key}: {value}" for key, value in found.items())
    return text
