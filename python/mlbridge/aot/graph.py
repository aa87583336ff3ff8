# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads an ONNX file and rewrites its graph for the C code generator."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mlbridge.errors import InvalidArgument, Malformed, Unsupported
from mlbridge.files import expect_regular_file

# The element types of AOTModel.h.
_ELEMENT_TYPES = frozenset(
    getattr(TensorProto, name)
    for name in (
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        *("FLOAT", "DOUBLE", "BOOL"),
    )
)

MAX_RANK = 8
"""The maximum rank of a tensor, as `Shape::MaxRank` in C++."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output. An extent is an int, or a str if it is free."""

    name: str
    onnx_type: int
    extents: tuple[int | str, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type as a NumPy dtype."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.onnx_type))


class Graph:
    """An ONNX model, and the descriptions of its inputs and outputs."""

    def __init__(self, path: Path, pinned: Mapping[str, int]) -> None:
        """Reads an .onnx file and fixes the free extents named in `pinned`.

        Raises:
            OSError: the file cannot be read.
            Malformed: the file is not an ONNX model.
            InvalidArgument: the path is not a regular file, or `pinned` names an
                unknown free extent.
            Unsupported: an input or output is not a tensor of numbers, has a rank
                above `MAX_RANK`, or is both an input and an output.
        """
        self.path = path
        expect_regular_file(path)
        try:
            self.model = onnx.load(path)
            onnx.checker.check_model(self.model)
        except OSError:
            raise
        except Exception as error:
            why = str(error).strip().splitlines()
            raise Malformed(
                f"'{path}' is not an ONNX model: {why[0] if why else error!r}"
            ) from error
        constants = {c.name for c in self.model.graph.initializer}
        inputs = [i for i in self.model.graph.input if i.name not in constants]
        self._name_free_extents(inputs)
        known = _symbols([self._tensor(i) for i in inputs])
        if unknown := sorted(pinned.keys() - set(known)):
            raise InvalidArgument(
                f"'{path}' has no free extent '{unknown[0]}'; its free extents: "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        _pin(self.model, pinned)
        self.inputs = [self._tensor(i) for i in inputs]
        self.outputs = [self._tensor(o) for o in self.model.graph.output]
        self._check_tensors()
        self.symbols = _symbols(self.inputs)
        self.properties = {p.key: p.value for p in self.model.metadata_props}
        _expand_scalers(self.model)
        _transpose_constant_factors(self.model)

    def pinned(self, sizes: Mapping[str, int]) -> onnx.ModelProto:
        """Returns a copy of the model without free extents."""
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        _pin(copy, sizes)
        # Clear the outputs' extents that are not numbers, so that shape inference
        # computes these extents.
        for output in copy.graph.output:
            for dim in output.type.tensor_type.shape.dim:
                if not dim.HasField("dim_value"):
                    dim.Clear()
        del copy.graph.value_info[:]
        return onnx.shape_inference.infer_shapes(copy, data_prop=True)

    def fixed_extents(self) -> set[int]:
        """Returns all fixed extents of tensors in the file."""
        graph = self.model.graph
        sizes = {int(d) for c in graph.initializer for d in c.dims}
        for value in [*graph.input, *graph.output, *graph.value_info]:
            sizes |= {d.dim_value for d in value.type.tensor_type.shape.dim}
        return sizes

    def constants(self) -> set[int]:
        """Returns all numbers with which the model may compare an extent.

        They are extents, attributes and constants, except numbers that mean "to the
        end".
        """
        return {n for n in self.fixed_extents() | _integers(self.model.graph) if n > 1}

    def _tensor(self, value: onnx.ValueInfoProto) -> Tensor:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or (
            kind.elem_type not in _ELEMENT_TYPES
        ):
            found = value.type.WhichOneof("value")
            if value.type.HasField("tensor_type"):
                # Print the type's number if ONNX does not define a name for the type.
                number = kind.elem_type
                named = number in TensorProto.DataType.values()
                kind_name = TensorProto.DataType.Name(number) if named else number
                found = f"elements of type {kind_name}"
            raise Unsupported(
                f"'{self.path}': expected a tensor of numbers for '{value.name}', "
                f"found {found}"
            )
        return Tensor(
            value.name,
            kind.elem_type,
            tuple(
                d.dim_value if d.HasField("dim_value") else d.dim_param
                for d in kind.shape.dim
            ),
        )

    def _check_tensors(self) -> None:
        names = {tensor.name for tensor in self.inputs}
        for tensor in self.outputs:
            if tensor.name in names:
                raise Unsupported(
                    f"'{self.path}': the output '{tensor.name}' is an input; put an "
                    "Identity between them"
                )
            names.add(tensor.name)
        for tensor in [*self.inputs, *self.outputs]:
            if len(tensor.extents) > MAX_RANK:
                raise Unsupported(
                    f"'{self.path}': '{tensor.name}': expected a rank of at most "
                    f"{MAX_RANK}, found {len(tensor.extents)}"
                )

    def _name_free_extents(self, inputs: list[onnx.ValueInfoProto]) -> None:
        """Gives each unnamed free extent a name, for example `x:0` in the input x."""
        for value in inputs:
            if not value.type.tensor_type.HasField("shape"):
                raise Unsupported(
                    f"'{self.path}': input '{value.name}': expected a fixed rank, "
                    "found any rank"
                )
            for i, dim in enumerate(value.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value") and not dim.dim_param:
                    dim.dim_param = f"{value.name}:{i}"


def _symbols(tensors: list[Tensor]) -> list[str]:
    """Returns the names of all free extents, without duplicates."""
    free = (d for t in tensors for d in t.extents if isinstance(d, str))
    return list(dict.fromkeys(free))


def _pin(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


_TO_THE_END = 2**31 - 2
_DOUBLE = TensorProto.DOUBLE


def _integers(graph: onnx.GraphProto) -> set[int]:
    """Returns the absolute values of all integers in a graph and its subgraphs."""
    tensors, numbers = list(graph.initializer), set[int]()
    for attribute in (a for node in graph.node for a in node.attribute):
        numbers |= {abs(i) for i in (attribute.i, *attribute.ints)}
        if attribute.HasField("t"):
            tensors.append(attribute.t)
        if attribute.HasField("g"):
            numbers |= _integers(attribute.g)
    for tensor in tensors:
        if tensor.data_type in (TensorProto.INT32, TensorProto.INT64):
            values = numpy_helper.to_array(tensor)
            numbers |= {abs(int(i)) for i in np.unique(values)}
    return {n for n in numbers if n < _TO_THE_END}


def _expand_scalers(model: onnx.ModelProto) -> None:
    """Replaces each Scaler of ai.onnx.ml, which the generator does not support.

    Scaler is ``(x - offset) * scale``, in double precision if x is double.
    """
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info)
    doubles = {v.name for v in values if v.type.tensor_type.elem_type == _DOUBLE}
    used = {name for node in graph.node for name in (*node.input, *node.output)}
    used |= {tensor.name for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if (node.domain, node.op_type) != ("ai.onnx.ml", "Scaler"):
            nodes.append(node)
            continue
        (x,), (y,) = node.input, node.output
        given = {attribute.name: attribute.floats for attribute in node.attribute}
        own = f"{y}_scaler"
        while any(name.startswith(own) for name in used):
            own += "_"
        kind, dtype = (_DOUBLE, "f8") if x in doubles else (TensorProto.FLOAT, "f4")
        for name, default in (("offset", 0.0), ("scale", 1.0)):
            numbers = np.array(given.get(name, [default]), np.float32).astype(dtype)
            constant = numpy_helper.from_array(numbers, f"{own}_{name}")
            model.graph.initializer.append(constant)
        nodes += [
            helper.make_node("Cast", [x], [f"{own}_number"], to=kind),
            helper.make_node("Sub", [f"{own}_number", f"{own}_offset"], [f"{own}_sub"]),
            helper.make_node("Mul", [f"{own}_sub", f"{own}_scale"], [f"{own}_mul"]),
            helper.make_node("Cast", [f"{own}_mul"], [y], to=TensorProto.FLOAT),
        ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _transpose_constant_factors(model: onnx.ModelProto) -> None:
    """Transposes constant weights of Gemm from [outputs, inputs] to [inputs, outputs].

    The code is faster with this layout: it reads the weights in order, and keeps all
    sums in registers.
    """
    constants = {c.name: c for c in model.graph.initializer}
    transposed: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type != "Gemm" or node.input[1] not in constants:
            continue
        flags = [a for a in node.attribute if a.name == "transB" and a.i]
        if not flags:
            continue
        node.attribute.remove(flags[0])
        name = node.input[1]
        if name not in transposed:
            values = numpy_helper.to_array(constants[name])
            transposed[name] = f"{name}_transposed"
            model.graph.initializer.append(
                numpy_helper.from_array(
                    np.ascontiguousarray(values.T), transposed[name]
                )
            )
        node.input[1] = transposed[name]
    used = {name for node in model.graph.node for name in node.input}
    used |= {output.name for output in model.graph.output}
    # Keep unused constants if there are subgraphs, which may use them.
    nested = any(a.HasField("g") for node in model.graph.node for a in node.attribute)
    for name in transposed:
        if name not in used and not nested:
            model.graph.initializer.remove(constants[name])
