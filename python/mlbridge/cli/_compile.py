# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge compile``: from an ONNX model to machine code."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mlbridge import aot
from mlbridge.terminal import console


class _Kind(StrEnum):
    shared = "shared"
    object = "object"
    archive = "archive"
    c = "c"


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
            help="What to write. Its suffix says what it is: .so, .o, .a or .c.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The model's name in C, `mlbridge_aot_model_NAME`. By default policy "
            "of libpolicy.so."
        ),
    ] = None,
    emit: Annotated[
        _Kind | None, typer.Option(help="What to write, whatever the suffix is.")
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
            help="Fix an extent that is free: `--pin batch=1`. One without a name is "
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
            help="How far a number may be off ONNX Runtime's, relative to those above "
            "1.",
        ),
    ] = aot.TOLERANCE,
) -> None:
    r"""Turn an ONNX model into machine code that needs no runtime.

    The result is a library of which a compiler needs nothing but the file:

    ```sh
    mlbridge compile policy.onnx -o libpolicy.so
    clang-22 -Oz -fpass-plugin=MLBridgeLLVM.so \
      -mllvm -mlbridge-inliner=aot:libpolicy.so -c a.c
    ```

    or an object that becomes part of the compiler; `mlbridge_add_aot_model` does that
    in CMake, and `builtin:policy` is the model then:

    ```sh
    mlbridge compile policy.onnx -o policy.o --header policy.h
    ```

    It has code for x86-64-v4 (AVX-512), x86-64-v3 (AVX2) and every x86-64, which share
    the weights; the CPU chooses. On other architectures there is one kind.

    Before anything is written, all of it that this CPU can run is compared with ONNX
    Runtime on random inputs, with several sizes of the extents that are free.
    """
    aot.compile_model(
        model,
        output,
        name=name,
        emit=None if emit is None else emit.value,
        header=header,
        pin=dict(_pin(text) for text in pin or []),
        cc=cc,
        tolerance=tolerance,
        report=console.print,
    )
    console.print(f"{output}: done", style="bold")


def _pin(text: str) -> tuple[str, int]:
    """What EXTENT=SIZE says."""
    extent, _, size = text.rpartition("=")
    if not extent or not size.isdigit() or int(size) < 1:
        raise typer.BadParameter(f"expected EXTENT=SIZE for --pin, found '{text}'")
    return extent, int(size)
