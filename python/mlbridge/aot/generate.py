# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates a C file from a graph, with the help of emx-onnx-cgen.

The code of emx-onnx-cgen is changed so that it can run in a compiler: mutable statics,
malloc and global weights are removed, checks of indices are added, and matrix products
are replaced by faster ones.
"""

import importlib.metadata
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emx_onnx_cgen
import jinja2
import onnx
from emx_onnx_cgen.compiler import Compiler, CompilerOptions

from mlbridge.aot.extents import Point, generalise, starts
from mlbridge.aot.extents import points as two_points
from mlbridge.aot.graph import Graph, Tensor
from mlbridge.aot.operators import CHECKED, check_operators
from mlbridge.errors import Unsupported

_HERE = Path(__file__).resolve().parent
_TEMPLATES = _HERE / "templates"
_WEIGHT = re.compile(r"^const EMX_UNUSED [^=;]*= *\{.*?^\};\n", re.M | re.S)
_WEIGHT_LOADER = re.compile(r"^_Bool mlb_entry_load\(.*?^\}\n", re.M | re.S)
_NODE = re.compile(r"^EMX_NODE_FN void (\w+)\(", re.M)
_HELPER = re.compile(r"^static inline \w+ (\w+)\(", re.M)
_ENTRY = re.compile(r"^void mlb_entry\((?P<parameters>.*)\) \{$", re.M)
_TEMPORARY = re.compile(
    r"^ +(?P<type>\w+) (?:\(\*\w+\)(?P<inner>(?:\[[^\]]+\])+)|\*\w+)"
    r" = malloc\(sizeof\(\*\w+\) \* (?P<outer>.+)\);$",
    re.M,
)
# Matches the static buffers of a node. Without `static`, each thread has its own
# buffers.
_LOCAL_STATIC = re.compile(r"^( +)static (?!const\b|inline\b)", re.M)
_FILE_STATIC = re.compile(r"^static (?!const\b|inline\b)[^()]*(?:=|;)", re.M)
_OPERATOR = re.compile(r"^ \* OpType: (\w+)$", re.M)
# Matches code that computes an index from a value, for example in Gather and Scatter.
_INDEX = re.compile(
    r"^ *if \((?P<index>gather_index|scatter_index|feature_index|index\d+) < 0\) \{\n"
    r" *(?P=index) \+= (?P<extent>.+);\n *\}\n",
    re.M,
)
_CHECKED_INDEX = r"""\g<0>if (\g<index> < 0 || \g<index> >= \g<extent>) {
    *mlb_status = MLBRIDGE_AOT_BAD_INDEX;
    return;
}
"""
# Matches Relu and PRelu, whose comparison is swapped so that NaN is not lost.
_RECTIFIER = re.compile(
    r"(?P<x>[\w\[\]]+) > (?P<zero>0\.0f?) \? (?P=x) : (?P<else>[^;()]+)(?=[;)])"
)
# Matches ReduceMax and ReduceMin, which are changed so that NaN is not lost.
_REDUCTION = re.compile(r"if \((?P<compare>(?P<x>[^;]+) [<>] acc)\) acc = (?P=x);")
_NAME = re.compile(r"(\w+)(?:\[[^\]]*\])+ =")
_ZERO = "0x0.0p+0"
# `_hide_zeros` skips tables with more elements than this, because compilers do not
# unroll loops over such tables.
_MOST_UNROLLED = 1024
_DIMENSION = re.compile(r"\[(?:restrict )?([^\]]+)\]")
_WIDTHS = (4, 8, 16)
_LEAST_WIDTH = _WIDTHS[0]
# The variants for x86-64, each with its number of floats per register.
_VARIANTS = (("x86-64-v4", 16), ("x86-64-v3", 8))
_MOST_INLINED = 64
"""The maximum number of operators in one function. C compilers need minutes for
more."""


def header() -> str:
    """Returns the text of MLCompilerBridge-C/AOTModel.h."""
    installed = _HERE / "AOTModel.h"
    checkout = _HERE.parents[2] / "include/MLCompilerBridge-C/AOTModel.h"
    return (installed if installed.exists() else checkout).read_text()


def declaration(name: str) -> str:
    """Returns a C header that declares the model, for programs that link the model."""
    return _rendered("model.h.in", name=name)


def generate(graph: Graph, name: str, least: Mapping[str, int] | None = None) -> str:
    """Returns a model's C file, which needs C99, vector extensions of GNU C, and libm.

    ``name`` is a C identifier. ``least`` maps free extents to their smallest sizes, if
    these are not 1.

    Raises:
        Unsupported: an operator cannot be compiled, or does not allow free extents.
    """
    variables = {s: f"mlb_n{i}" for i, s in enumerate(graph.symbols)}
    code, most = _code(graph, variables)
    check_operators(graph)
    bounds = {s: ((least or {}).get(s, 1), most.get(s)) for s in variables}
    dims = [_DIMENSION.findall(p) for p in code.parameters.split(",")]
    expected = len(graph.inputs) + len(graph.outputs)
    if len(dims) != expected:
        raise Unsupported(
            f"'{graph.path}': expected code with {expected} parameters, found "
            f"'{code.parameters}'"
        )
    return "\n".join(
        [
            _head(graph, name, variables),
            code.weights,
            *_variants(graph, code),
            _tail(graph, name, variables, bounds, code, dims[len(graph.inputs) :]),
        ]
    )


Bounds = Mapping[str, tuple[int, int | None]]
"""Maps each free extent to its smallest and its largest size."""


def _code(
    graph: Graph, variables: Mapping[str, str]
) -> "tuple[_Code, Mapping[str, int]]":
    """Returns the code, and the largest sizes for which the code is valid."""

    def code(sizes: Sequence[Mapping[str, int]], at: tuple[Point, Point]) -> _Code:
        texts = _emit(graph, sizes)
        try:
            return _Code.of(texts, at)
        except Unsupported as error:
            hint = "; fix the extents with --pin EXTENT=SIZE" if variables else ""
            raise Unsupported(f"'{graph.path}': {error}{hint}") from None

    if not variables:
        return code([{}], ({}, {})), {}
    constants = graph.constants()
    refusals: list[Unsupported] = []
    for start in starts(constants, len(variables)):
        at = two_points(list(variables.values()), graph.fixed_extents(), start)
        sizes = [{s: point[v] for s, v in variables.items()} for point in at]
        most = sizes[1] if any(c > start for c in constants) else {}
        try:
            return code(sizes, at), most
        except Unsupported as error:
            refusals.append(error)
    raise refusals[-1]


@dataclass(frozen=True)
class _Code:
    """The code of the generator, changed so that it can run in a compiler."""

    weights: str
    text: str
    functions: Sequence[str]
    """The names of the functions in the text: operators, their helpers, the model."""
    parameters: str
    temporaries: Sequence[str]
    """The arguments of mlb_room() for each temporary tensor."""

    @classmethod
    def of(cls, texts: Sequence[str], at: tuple[Point, Point]) -> "_Code":
        """Changes the generator's code.

        Merges the two texts if there are two points.
        """
        weights = [_WEIGHT.findall(text) for text in texts]
        if weights[0] != weights[-1]:
            raise Unsupported("the model's constants depend on a free extent")
        bodies = [_strip(_WEIGHT.sub("", text)) for text in texts]
        body = generalise((bodies[0], bodies[1]), at) if len(bodies) > 1 else bodies[0]

        entry = _ENTRY.search(body)
        if entry is None or _FILE_STATIC.search(body):
            raise Unsupported(
                "the code has an unknown form, found emx-onnx-cgen "
                f"{importlib.metadata.version('emx-onnx-cgen')}"
            )
        nodes, model = body[: entry.start()], body[entry.end() :]
        temporaries = [_room(found) for found in _TEMPORARY.finditer(model)]
        if len(temporaries) != model.count("malloc(") or "malloc(" in nodes:
            raise Unsupported("an operator allocates its own memory")

        functions = _NODE.findall(nodes)
        nodes = _NODE.sub(r"EMX_NODE_FN void \1(MLB_PARAMETERS, ", nodes)
        nodes = _LOCAL_STATIC.sub(r"\1", nodes)
        nodes = _RECTIFIER.sub(r"\g<x> < \g<zero> ? \g<else> : \g<x>", nodes)
        nodes = _REDUCTION.sub(
            r"if (\g<compare> || \g<x> != \g<x>) acc = \g<x>;", nodes
        )
        nodes = _check_indices(nodes)
        calls = re.compile(rf"^( +)({'|'.join(map(re.escape, functions))})\(", re.M)
        model = calls.sub(r"\1\2(MLB_ARGUMENTS, ", model) if functions else model
        model = _hide_zeros(model, weights[0])
        parameters = entry["parameters"]
        opening = (
            f"MLB_INLINE void mlb_model(MLB_PARAMETERS, unsigned char *mlb_memory, "
            f"{parameters}) {{"
        )
        return cls(
            "".join(f"static {weight}\n" for weight in weights[0]),
            f"{nodes}"
            "#define malloc(bytes) mlb_take(&mlb_memory, bytes)\n"
            "#define free(memory) ((void)(memory))\n\n"
            f"{opening}{model}\n#undef malloc\n#undef free\n",
            [*functions, *_HELPER.findall(nodes), "mlb_model"],
            parameters,
            temporaries,
        )


def _check_indices(nodes: str) -> str:
    """Inserts a range check after each computation of an index."""
    nodes = _INDEX.sub(_CHECKED_INDEX, nodes)
    parts = _OPERATOR.split(nodes)
    for operator, code in zip(parts[1::2], parts[2::2], strict=True):
        if operator in CHECKED and "MLBRIDGE_AOT_BAD_INDEX" not in code:
            raise Unsupported(f"found no index to check in the code of {operator}")
    return nodes


def _hide_zeros(model: str, weights: Sequence[str]) -> str:
    """Hides zeros in tables from GCC, because GCC would fold NaN times 0 to 0."""
    names = [
        match[1]
        for weight in weights
        if _ZERO in weight and weight.count(",") < _MOST_UNROLLED
        if (match := _NAME.search(weight))
    ]
    if not names:
        return model
    return re.sub(rf"\b({'|'.join(names)})\b", r"MLB_HIDDEN(\1)", model)


def _emit(graph: Graph, points: Sequence[Mapping[str, int]]) -> list[str]:
    """Returns the generator's text for each point.

    A point has a size per free extent.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-") as folder:
        # Wrap each template in an include. The generator compiles all templates, but
        # renders only a few, and an included template is compiled only when it is
        # rendered.
        templates = Path(folder)
        theirs = Path(emx_onnx_cgen.__file__).parent / "templates"
        (templates / "theirs").symlink_to(theirs)
        for template in theirs.glob("*.j2"):
            include = f'{{% include "theirs/{template.name}" %}}'
            (templates / template.name).write_text(include)
        for ours in _TEMPLATES.glob("*.j2"):
            (templates / ours.name).write_text(ours.read_text())
        options = CompilerOptions(
            template_dir=templates, model_name="mlb_entry", large_weight_threshold=0
        )
        compiler = Compiler(options)
        texts: list[str] = []
        for sizes in points:
            try:
                texts.append(compiler.compile(graph.pinned(sizes)))
            except (
                emx_onnx_cgen.CodegenError,
                emx_onnx_cgen.ShapeInferenceError,
                emx_onnx_cgen.UnsupportedOpError,
                onnx.shape_inference.InferenceError,
            ) as error:
                why = str(error)
                for symbol, size in sizes.items():
                    why = re.sub(rf"\b{size}\b", symbol, why)
                # Drop the hint, which names an option that mlbridge does not have.
                why, dynamic, _ = why.partition("Hint: ")
                fix = "; fix the extents with --pin EXTENT=SIZE" if dynamic else ""
                raise Unsupported(
                    f"'{graph.path}': emx-onnx-cgen has no C for it: {why.strip()}{fix}"
                ) from error
        return texts


def _strip(text: str) -> str:
    """Removes the generator's file header and the declarations of weights."""
    text = text[text.index("*/") + 2 :]
    text = _WEIGHT_LOADER.sub("", text)
    text = re.sub(r"^extern const .*;\n", "", text, flags=re.M)
    return re.sub(r"^/\*\n \* Weight \d+:.*?\*/\n", "", text, flags=re.M | re.S)


def _room(found: re.Match[str]) -> str:
    dims = [found["outer"], *_DIMENSION.findall(found["inner"] or "")]
    return f"sizeof({found['type']}), {_array(dims)}, {len(dims)}"


def _array(extents: Sequence[object]) -> str:
    """Returns a C array of the extents. Without extents, its only element is 1."""
    return f"(const int64_t[]){{{', '.join(map(str, extents)) or '1'}}}"


def _output_extents(graph: Graph, tensor: Tensor, found: list[str]) -> list[str]:
    """Returns a list of C expressions, one per extent of an output."""
    rank = len(tensor.extents)
    if len(found) == rank:
        return found
    if rank == 0 and found == ["1"]:
        return []
    raise Unsupported(
        f"'{graph.path}': expected {rank} dimensions of the output '{tensor.name}', "
        f"found [{', '.join(found)}]"
    )


def _head(graph: Graph, name: str, variables: Mapping[str, str]) -> str:
    product = _template("product.c")
    return _rendered(
        "head.c.in",
        name=name,
        source=graph.path.name.replace("*/", ""),
        version=importlib.metadata.version("emx-onnx-cgen"),
        header=header(),
        products="\n".join(product.replace("WIDTH", str(w)) for w in _WIDTHS),
        numbers="".join(f", const int64_t {v}" for v in variables.values()),
        arguments="".join(f", {v}" for v in variables.values()),
    )


def _template(name: str) -> str:
    """Returns a file in `templates`, without its file header."""
    text = (_TEMPLATES / name).read_text()
    return text[text.index("*/", text.index("\\file")) + 2 :].lstrip()


def _rendered(file: str, **words: Any) -> str:
    """Renders a Jinja template in `templates`."""
    template = jinja2.Template(
        _template(file),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return str(template.render(words))


def _variants(graph: Graph, code: _Code) -> Iterator[str]:
    """Yields the code for each kind of CPU. Function names differ between the kinds."""
    names = re.compile(rf"\b({'|'.join(map(re.escape, code.functions))})\b")
    for cpu, width in (*_VARIANTS, ("", _LEAST_WIDTH)):
        suffix = cpu.replace("-", "_") or "baseline"
        yield _rendered(
            "variant.c.in",
            cpu=cpu,
            suffix=suffix,
            width=width,
            inlines=len(code.functions) <= _MOST_INLINED,
            code=names.sub(rf"\1_{suffix}", code.text),
            extents=len(graph.symbols),
            arguments=[
                *(f"inputs[{i}]" for i in range(len(graph.inputs))),
                *(f"outputs[{i}]" for i in range(len(graph.outputs))),
            ],
        )


def _tail(
    graph: Graph,
    name: str,
    variables: Mapping[str, str],
    bounds: Bounds,
    code: _Code,
    found: Sequence[list[str]],
) -> str:
    pairs = zip(graph.outputs, found, strict=True)
    outputs = [(t, _output_extents(graph, t, dims)) for t, dims in pairs]
    free = {s: f"MLBRIDGE_AOT_FREE({i})" for i, s in enumerate(variables)}
    by_variable = {v: free[s] for s, v in variables.items()}
    shapes = [[free.get(str(d), d) for d in t.extents] for t in graph.inputs]
    shapes += [
        [
            d if d.isdigit() else by_variable.get(d, "MLBRIDGE_AOT_COMPUTED")
            for d in dims
        ]
        for _, dims in outputs
    ]
    rows = [
        (_string(t.name), _ELEMENTS[t.onnx_type], len(dims), _array(dims))
        for t, dims in zip([*graph.inputs, *graph.outputs], shapes, strict=True)
    ]
    count = len(graph.inputs)
    properties = graph.properties | _limits(bounds)
    return _rendered(
        "tail.c.in",
        name=name,
        extents=[(variables[s], *bounds[s]) for s in variables],
        temporaries=code.temporaries,
        outputs=[
            f"{t.dtype.itemsize}, {_array(dims)}, {len(dims)}" for t, dims in outputs
        ],
        output_extents=[dim for _, dims in outputs for dim in dims],
        cpus=[cpu for cpu, _ in _VARIANTS],
        tables={"inputs": rows[:count], "outputs": rows[count:]},
        properties=[
            (_string(key), _string(value)) for key, value in properties.items()
        ],
    )


def _limits(bounds: Bounds) -> dict[str, str]:
    """Returns the limits of sizes as metadata, which error messages show."""
    limits = [f"{s} >= {least}" for s, (least, _) in bounds.items() if least > 1]
    limits += [f"{s} <= {most}" for s, (_, most) in bounds.items() if most is not None]
    return {"mlbridge.extents": ", ".join(limits)} if limits else {}


_ELEMENTS = {
    number: f"MLBRIDGE_AOT_{name}" for name, number in onnx.TensorProto.DataType.items()
}


def _string(text: str) -> str:
    """Returns a C string literal with the UTF-8 bytes of a text."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode()
    )
    return f'"{plain}"'
