# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge compile``: compiles an ONNX model to machine code."""

from pathlib import Path
from typing import Annotated

import typer

from mlbridge import aot
from mlbridge.terminal import console


def compile_(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.onnx", help="ONNX file.", exists=True)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write. The suffix selects its kind: .so, .o, .a or .c.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="NAME in the C symbol `mlbridge_aot_model_NAME`. The default comes "
            "from the file name: `policy` for libpolicy.so."
        ),
    ] = None,
    emit: Annotated[
        aot.Kind | None,
        typer.Option(help="Kind of file to write. Overrides the suffix of --output."),
    ] = None,
    header: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.h", help="Also write a C header that declares the model."
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXTENT=SIZE",
            help="Fix the size of a dimension that the model leaves free. `mlbridge "
            "inspect` prints the names: for `float[N,3]`, use `--pin N=1`. A dimension "
            "printed as `?` is named INPUT:INDEX, such as `x:0`. May be repeated.",
        ),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="C compiler. [default: the first of $CC, cc, gcc, clang, clang-22]",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help="Largest accepted difference from ONNX Runtime's outputs. It is "
            "relative for outputs above 1, and absolute otherwise. If a model "
            "amplifies rounding errors, the limit is larger: 8 times the change in "
            "ONNX Runtime's output if only the last bits of the inputs change.",
        ),
    ] = aot.TOLERANCE,
) -> None:
    r"""Compile an ONNX model to machine code that needs no runtime.

    To load the model from a file, compile it to a library:

    ```sh
    mlbridge compile policy.onnx -o libpolicy.so
    clang-22 -Oz -fpass-plugin=MLBridgeLLVM.so \
      -mllvm -mlbridge-inliner=aot:libpolicy.so -c a.c
    ```

    To link the model into a compiler as `builtin:policy`, compile it to an object. The
    CMake function `mlbridge_add_aot_model` runs this command:

    ```sh
    mlbridge compile policy.onnx -o policy.o --header policy.h
    ```

    The code for x86-64 has variants for AVX-512, AVX2 and older CPUs. The variant with
    the widest vectors that the CPU supports is selected at run time.

    Before the file is written, each variant that this CPU supports is compared with
    ONNX Runtime on random inputs.
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
        raise typer.BadParameter(
            f"--pin {text}: expected EXTENT=SIZE, with a size of 1 or more: --pin N=1"
        )
    return extent, int(size)
