# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a SavedModel to an object file, and writes its descriptor as C code.

compile.py SAVED_MODEL FOLDER NAME [--signature KEY] [--cpu CPU] [--separate-weights]

CMake's mlbridge_add_tf_aot_model() runs this script with a Python that has TensorFlow
2.15. TensorFlow's compiler writes FOLDER/NAME.o and a header. The script writes
FOLDER/NAME.c and FOLDER/NAME.h, which define the descriptor ``mlbridge_aot_model_NAME``
(include/MLCompilerBridge-C/AOTModel.h). It reads TensorFlow's header to find out which
buffers the compiled function uses for its inputs and outputs. If CPU is given, the
script also writes FOLDER/NAME_wide.o, for machines with that CPU's instructions.

By default, the variables become constants of the code. With --separate-weights, the
script writes them to FOLDER/NAME.weights, which NAME.c includes when it is compiled.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from math import prod
from pathlib import Path

ALIGNMENT = 64

# Maps XLA's element types to the descriptor's type names and the sizes in bytes.
TYPES = {
    "pred": ("BOOL", 1),
    "s8": ("INT8", 1),
    "s16": ("INT16", 2),
    "s32": ("INT32", 4),
    "s64": ("INT64", 8),
    "u8": ("UINT8", 1),
    "u16": ("UINT16", 2),
    "u32": ("UINT32", 4),
    "u64": ("UINT64", 8),
    "f32": ("FLOAT", 4),
    "f64": ("DOUBLE", 8),
}

CONSTANT, TEMPORARY, PARAMETER, ON_STACK = range(4)

# Maps LLVM's names of the supported CPUs to levels of x86-64. A level includes all
# instructions that LLVM uses for the CPU.
LEVELS = {
    "x86-64-v3": "x86-64-v3",
    "haswell": "x86-64-v3",
    "broadwell": "x86-64-v3",
    "skylake": "x86-64-v3",
    "x86-64-v4": "x86-64-v4",
    "skylake-avx512": "x86-64-v4",
}


class Failure(Exception):
    """An error message for the user."""


@dataclass(frozen=True)
class Tensor:
    """An input, output or variable, and the index of its buffer."""

    name: str
    kind: str
    extents: tuple[int, ...]
    buffer: int

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return prod(self.extents) * TYPES[self.kind][1]


@dataclass(frozen=True)
class Function:
    """The compiled function, as TensorFlow's header describes it."""

    symbol: str
    buffers: list[tuple[int, int]]
    """A pair for each buffer: its kind, and its size in bytes."""
    result: int
    inputs: list[Tensor]
    outputs: list[Tensor]
    weights: list[Tensor]
    """The variables that are not constants of the code."""

    @property
    def offsets(self) -> dict[int, int]:
        """Maps the buffer of each variable to its offset in the file of weights."""
        found, offset = {}, 0
        for tensor in self.weights:
            found[tensor.buffer] = offset
            offset += padded(tensor.nbytes)
        return found


@dataclass(frozen=True)
class Variant:
    """The model, compiled for one CPU."""

    cpu: str
    function: Function
    level: str | None = None
    """The required level of x86-64. None if any machine can run the function."""


def padded(size: int) -> int:
    """Returns the next multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def find(pattern: str, header: str, what: str) -> str:
    """Returns the match of the pattern's group. Raises Failure if `what` is missing."""
    match = re.search(pattern, header, re.DOTALL)
    if not match:
        raise Failure(f"expected {what} in the header that TensorFlow wrote")
    return match[1]


def numbers(pattern: str, header: str, what: str) -> list[int]:
    """Returns the integers in the match of the pattern's group."""
    return [int(word) for word in re.findall(r"\d+", find(pattern, header, what))]


def names(function: str, prefix: str, header: str) -> list[str]:
    """Returns the names that a function of the header lists, without their prefix."""
    listed = find(
        rf"{function}\(\) {{.*?kNames\[\] = {{(.*?)nullptr}}", header, function
    )
    return [name.removeprefix(prefix) for name in re.findall(r'"([^"]*)"', listed)]


def types(listed: str) -> list[tuple[str, tuple[int, ...]]]:
    """Parses a list of types, for example ``s64[1,1], f32[1,2]``."""
    return [
        (kind, tuple(int(extent) for extent in extents.split(",") if extent))
        for kind, extents in re.findall(r"(\w+)\[([\d,]*)\]", listed)
    ]


def tensors(
    found_names: list[str],
    found_types: list[tuple[str, tuple[int, ...]]],
    places: list[int],
) -> list[Tensor]:
    """Combines the names, types and buffers of inputs, outputs or variables."""
    result = []
    for name, (kind, extents), place in zip(
        found_names, found_types, places, strict=True
    ):
        if kind not in TYPES:
            raise Failure(f"'{name}' has type {kind}, which features cannot have")
        result.append(Tensor(name, kind, extents, place))
    return result


def read(header: str) -> Function:
    """Parses the header that TensorFlow has written."""
    signature = r"The logical function signature is:\n//\s+\((.*?)\) -> "
    arguments = types(find(signature, header, "the function's signature"))
    results = types(find(signature[:-1].replace("(.*?)", ".*?") + r" (.*?)\n", header,
                         "the function's results"))  # fmt: skip
    encoded = re.findall(r"EncodedBufferInfo{(\d+)ULL,", header)
    buffers = [(int(word) & 3, int(word) >> 2) for word in encoded]
    table = r"{}\[\w+\] = {{(.*?)}};"
    argument_places = []
    if arguments:
        argument_places = numbers(
            table.format("kArgIndexToBufferIndex"), header, "the arguments' buffers"
        )
    result_places = numbers(
        table.format("kResultIndexToBufferIndex"), header, "the results' buffers"
    )
    inputs = names("StaticArgNames", "feed_", header)
    count = int(find(r"kNumVariables = (\d+);", header, "the number of variables"))
    if len(arguments) != len(inputs) + count:
        raise Failure(
            f"expected arguments for {len(inputs)} inputs and {count} variables, "
            f"found {len(arguments)}"
        )
    variables = names("StaticVariableNames", "param_", header) if count else []
    for name in variables:
        if f"set_var_param_{name}_data(const " not in header:
            raise Failure(
                f"expected constant variables, but the model changes '{name}'"
            )
    # The variables follow the inputs.
    first = len(inputs)
    function = Function(
        find(r'extern "C" void (\w+)\(', header, "the function's symbol"),
        buffers,
        int(find(r"kResultIndex = (\d+);", header, "the results' place")),
        tensors(inputs, arguments[:first], argument_places[:first]),
        tensors(names("StaticResultNames", "fetch_", header), results, result_places),
        tensors(variables, arguments[first:], argument_places[first:]),
    )
    check(function)
    return function


def check(function: Function) -> None:
    """Raises Failure if the generated C code does not support the function."""
    for tensor in (*function.inputs, *function.weights):
        kind, size = function.buffers[tensor.buffer]
        if kind != PARAMETER or size != tensor.nbytes:
            raise Failure(f"'{tensor.name}' has no buffer of its size")
    for tensor in function.outputs:
        kind, size = function.buffers[tensor.buffer]
        if kind not in (PARAMETER, TEMPORARY) or size < tensor.nbytes:
            raise Failure(f"output '{tensor.name}' has no buffer of its size")


def quoted(text: str) -> str:
    """Returns the text as a C string literal."""
    return json.dumps(text)


def table(kind: str, found: list[Tensor]) -> str:
    """Returns the C code of the inputs' or the outputs' descriptors."""
    lines = [
        f"static const int64_t {kind}_extents_{i}[] = "
        f"{{{', '.join(map(str, tensor.extents)) or '0'}}};"
        for i, tensor in enumerate(found)
    ]
    rows = [
        f"    {{{quoted(tensor.name)}, MLBRIDGE_AOT_{TYPES[tensor.kind][0]}, "
        f"{len(tensor.extents)}, {kind}_extents_{i}}},"
        for i, tensor in enumerate(found)
    ]
    listed = "\n".join(rows) or "    {0, 0, 0, 0},"
    return "\n".join(
        [*lines, f"static const MLBridgeAOTTensor {kind}s[] = {{", listed, "};"]
    )


def places(function: Function) -> tuple[list[str], int]:
    """Returns C code for the buffers' addresses, and their total size in bytes."""
    addresses, size = [], 0
    weights = function.offsets
    for i, (kind, nbytes) in enumerate(function.buffers):
        if i in weights:
            # The function only reads these buffers.
            addresses.append(f"(char *)weights + {weights[i]}")
        elif kind in (CONSTANT, ON_STACK):
            addresses.append("0")
        else:
            addresses.append(f"memory + {size}")
            size += padded(nbytes)
    return addresses, size


def variant_code(variant: Variant, number: int) -> str:
    """Returns the C code of one variant."""
    function = variant.function
    addresses, _ = places(function)
    copies_in = [
        f"  memcpy(buffers[{tensor.buffer}], inputs[{i}], {tensor.nbytes});"
        for i, tensor in enumerate(function.inputs)
    ]
    copies_out = [
        f"  memcpy(outputs[{i}], buffers[{tensor.buffer}], {tensor.nbytes});"
        for i, tensor in enumerate(function.outputs)
    ]
    check = "1"
    if variant.level is not None:
        check = f"!!__builtin_cpu_supports({quoted(variant.level)})"
    newline = "\n"
    return f"""MLBridgeXLAFunction {function.symbol};

static int supported_{number}(void) {{ return {check}; }}

static int run_{number}(const int64_t *free_extents, const void *const *inputs,
                 void *const *outputs, void *workspace) {{
  char *memory = (char *)workspace;
  void *buffers[] = {{{", ".join(addresses)}}};
  (void)free_extents;
  (void)inputs;
  /* Copy the inputs, because the function may need a larger alignment. */
{newline.join(copies_in)}
  mlbridge_xla_run({function.symbol}, buffers[{function.result}], buffers);
{newline.join(copies_out)}
  return MLBRIDGE_AOT_OK;
}}
"""


def weights_code(name: str, file: Path) -> str:
    """Returns the C code that includes the file of weights."""
    symbol = f"mlbridge_weights_{name}"
    # The path is a string of the assembler in a string of C.
    included = quoted(f".incbin {quoted(str(file))}\n")
    return f"""__asm__(".section .rodata.{symbol},\\"a\\",@progbits\\n"
        ".balign {ALIGNMENT}\\n"
        ".globl {symbol}\\n"
        ".hidden {symbol}\\n"
        "{symbol}:\\n"
        {included}
        ".previous\\n");
extern const char weights[] __asm__("{symbol}")
    __attribute__((visibility("hidden")));
"""


def write(variants: list[Variant], name: str, weights: Path | None) -> str:
    """Returns the C code of the model. The last variant must run on all machines."""
    function = variants[-1].function
    included = weights_code(name, weights) if weights else ""
    size = max(places(variant.function)[1] for variant in variants)
    properties = {"mlbridge.framework": f"tensorflow {version('tensorflow-cpu')}"}
    extents = [extent for tensor in function.outputs for extent in tensor.extents]
    says = [f"  output_extents[{i}] = {extent};" for i, extent in enumerate(extents)]
    listed = "\n".join(
        f"    {{{quoted(key)}, {quoted(value)}}}," for key, value in properties.items()
    )
    codes = "\n".join(variant_code(variant, i) for i, variant in enumerate(variants))
    rows = "\n".join(
        f"    {{{quoted(variant.cpu)}, supported_{i}, run_{i}}},"
        for i, variant in enumerate(variants)
    )
    newline = "\n"
    return f"""/* Written by mlbridge_add_tf_aot_model(); do not edit. */
#include "{name}.h"

#include "Run.h"

#include <string.h>

{table("input", function.inputs)}
{table("output", function.outputs)}
{included}
static const MLBridgeAOTProperty properties[] = {{
{listed}
}};

static int measure(const int64_t *free_extents, int64_t *output_extents,
                   uint64_t *workspace_bytes) {{
  (void)free_extents;
{newline.join(says)}
  *workspace_bytes = {size};
  return MLBRIDGE_AOT_OK;
}}

{codes}
static const MLBridgeAOTVariant variants[] = {{
{rows}
}};

const MLBridgeAOTModel mlbridge_aot_model_{name} = {{
    MLBRIDGE_AOT_MAGIC, MLBRIDGE_AOT_ABI, {quoted(name)},
    {len(function.inputs)}, {len(function.outputs)}, 0, {len(properties)},
    {len(variants)}, 0, inputs, outputs, properties, variants, measure}};
"""


HEADER = """/* Written by mlbridge_add_tf_aot_model(); do not edit. */
#ifndef MLBRIDGE_AOT_MODEL_{name}
#define MLBRIDGE_AOT_MODEL_{name}

#include "MLCompilerBridge-C/AOTModel.h"

#ifdef __cplusplus
extern "C"
#else
extern
#endif
const MLBridgeAOTModel mlbridge_aot_model_{name};

#endif
"""


def compile_model(arguments: argparse.Namespace, name: str, cpu: str = "") -> Function:
    """Runs TensorFlow's compiler, and parses the header that it writes with NAME.o."""
    folder: Path = arguments.folder
    command = [
        str(Path(sys.executable).with_name("saved_model_cli")),
        "aot_compile_cpu",
        *("--dir", str(arguments.model.resolve()), "--tag_set", "serve"),
        *("--signature_def_key", arguments.signature),
        # Pass a relative path, because it becomes part of the function's symbol.
        *("--output_prefix", name, "--cpp_class", f"mlbridge::{name}"),
        *(["--target_cpu", cpu] if cpu else []),
        *(["--variables_to_feed", "all"] if arguments.separate_weights else []),
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # The text is empty if a signal ended the compiler.
        said = done.stderr.strip().splitlines()
        status = f"saved_model_cli ended with status {done.returncode}"
        raise Failure(said[-1] if said else status)
    header = (folder / f"{name}.h").read_text()
    for leftover in (f"{name}.h", f"{name}_metadata.o", f"{name}_makefile.inc"):
        (folder / leftover).unlink(missing_ok=True)
    return read(header)


def compile_variants(arguments: argparse.Namespace) -> list[Variant]:
    """Compiles a variant for the given CPU, if any, and then one for all machines."""
    name, cpu = arguments.name, arguments.cpu
    if cpu and cpu not in LEVELS:
        raise Failure(f"CPU: expected one of {', '.join(LEVELS)}, found '{cpu}'")
    found = [Variant("baseline", compile_model(arguments, name))]
    if cpu:
        wide = compile_model(arguments, f"{name}_wide", cpu)
        if shape_of(wide.weights) != shape_of(found[0].function.weights):
            raise Failure(f"CPU: expected the variables of all machines for '{cpu}'")
        found.insert(0, Variant(cpu, wide, LEVELS[cpu]))
    return found


def shape_of(weights: list[Tensor]) -> list[tuple[str, int]]:
    """Returns the names and sizes that determine the offsets of the variables."""
    return [(tensor.name, tensor.nbytes) for tensor in weights]


def write_weights(model: Path, weights: list[Tensor], file: Path) -> None:
    """Writes the values of a SavedModel's variables to a file."""
    if not weights:
        raise Failure("expected variables, but all weights are constants")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(model))
        handles = {
            # TensorFlow's compiler replaces these characters in the header.
            operation.name.replace("/", "_"): operation
            for operation in session.graph.get_operations()
            if operation.type == "VarHandleOp"
        }
        with file.open("wb") as opened:
            for tensor in weights:
                if tensor.name not in handles:
                    raise Failure(f"expected a variable '{tensor.name}', found none")
                handle = handles[tensor.name]
                value = session.run(
                    tf.raw_ops.ReadVariableOp(
                        resource=handle.outputs[0], dtype=handle.get_attr("dtype")
                    )
                ).tobytes()
                if len(value) != tensor.nbytes:
                    raise Failure(
                        f"variable '{tensor.name}': expected {tensor.nbytes} bytes, "
                        f"found {len(value)}"
                    )
                opened.write(value.ljust(padded(len(value)), b"\0"))


def parsed() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument("--cpu", default="")
    parser.add_argument("--separate-weights", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Runs the command line, and returns the exit status."""
    arguments = parsed()
    model, folder, name = arguments.model, arguments.folder, arguments.name
    try:
        variants = compile_variants(arguments)
        file = None
        if arguments.separate_weights:
            file = folder.resolve() / f"{name}.weights"
            write_weights(model, variants[-1].function.weights, file)
        (folder / f"{name}.c").write_text(write(variants, name, file))
        (folder / f"{name}.h").write_text(HEADER.format(name=name))
    except (Failure, OSError) as failure:
        print(f"{model}: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
