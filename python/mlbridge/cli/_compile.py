# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge compile``: compiles an ONNX model to machine code."""

from pathlib import Path
from typing import Annotated

import typer

from mlbridge import aot
from mlbridge.terminal import console


def compile_(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.onnx", help="The model.", exists=True)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; its suffix, .so, .o, .a or .c, selects the kind.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The model's name in C, `mlbridge_aot_model_NAME`. By default policy "
            "for libpolicy.so."
        ),
    ] = None,
    emit: Annotated[
        aot.Kind | None,
        typer.Option(help="The kind of file; overrides the suffix of --output."),
    ] = None,
    header: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.h", help="Also write a header that declares the model."
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXTENT=SIZE",
            help="Fix a free extent: `--pin batch=1`. An unnamed extent is "
            "INPUT:DIMENSION. May be repeated.",
        ),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="The C compiler. By default $CC, cc, gcc, clang or clang-22.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help="The largest difference from ONNX Runtime, relative for numbers above "
            "1.",
        ),
    ] = aot.TOLERANCE,
) -> None:
    r"""Compile an ONNX model to machine code that needs no runtime.

    The result is a library that a compiler loads by its path:

    ```sh
    mlbridge compile policy.onnx -o libpolicy.so
    clang-22 -Oz -fpass-plugin=MLBridgeLLVM.so \
      -mllvm -mlbridge-inliner=aot:libpolicy.so -c a.c
    ```

    or an object that is linked into the compiler as `builtin:policy`; in CMake,
    `mlbridge_add_aot_model` does that:

    ```sh
    mlbridge compile policy.onnx -o policy.o --header policy.h
    ```

    On x86-64, the result has code for x86-64-v4 (AVX-512), x86-64-v3 (AVX2) and the
    baseline, which share the weights; the CPU selects one. Other architectures have one
    variant.

    Every variant that this CPU can run is first compared with ONNX Runtime on random
    inputs, at several sizes of the free extents. Only then is the file written.
    """
    aot.compile_model(
        model,
        output,
        name=name,
        emit=emit,
        header=header,
        pin=dict(_pin(text) for text in pin or []),
        cc=cc,
        tolerance=tolerance,
        report=console.print,
    )
    console.print(f"{output}: done", style="bold")


def _pin(text: str) -> tuple[str, int]:
    extent, _, size = text.rpartition("=")
    if not extent or not size.isdigit() or int(size) < 1:
        raise typer.BadParameter(f"expected EXTENT=SIZE for --pin, found '{text}'")
    return extent, int(size)
