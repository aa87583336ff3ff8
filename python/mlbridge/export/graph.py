# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the exported graph: nodes that process features, and then the policy."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import compose, helper, inliner, numpy_helper, shape_inference

from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import Normalisation, Policy, Port

BATCH = "N"
"""The name of the free first dimension."""
_OURS, _POLICYS = "features/", "policy/"


def build(
    policy: Policy, outputs: Sequence[str] | None = None, *, batch: int | None = None
) -> onnx.ModelProto:
    """Builds the graph from features to `outputs`. The default is `policy.outputs`.

    The batch size of the graph is `batch`. If `batch` is None, any size is accepted.

    Raises:
        InvalidArgument: an output is unknown, or has the name of a feature.
        Unsupported: the policy has a fixed batch size, but `batch` is None.
    """
    model = _tidied(policy.graph)
    _select(model, outputs or policy.outputs, policy.features)
    if batch is None:
        _check_free(model)
    model = compose.add_prefix(model, _POLICYS, rename_outputs=False)
    builder = _Builder()
    inputs = {value.name: value for value in model.graph.input}
    for port in policy.ports:
        name = _POLICYS + port.name
        wanted = inputs[name].type.tensor_type
        if port.mask_of:
            builder.add_mask(port, name, policy.features)
        else:
            builder.add_port(port, name, len(wanted.shape.dim), wanted.elem_type)
    first = BATCH if batch is None else batch
    graph = helper.make_graph(
        [*builder.nodes, *model.graph.node],
        "mlbridge",
        [
            helper.make_tensor_value_info(
                f.name, helper.np_dtype_to_tensor_dtype(f.dtype), [first, *f.shape]
            )
            for f in policy.features
        ],
        [_output(value, first) for value in model.graph.output],
        [*builder.constants, *model.graph.initializer],
    )
    # Prune again, because some of the added masks may be unused.
    _prune(graph)
    result = helper.make_model(
        graph, opset_imports=model.opset_import, producer_name="mlbridge"
    )
    result.ir_version = max(model.ir_version, 8)
    result = shape_inference.infer_shapes(result)
    onnx.checker.check_model(result)
    return result


def decided(model: onnx.ModelProto, scores: str, name: str) -> onnx.ModelProto:
    """Replaces the outputs by the index of the best score, int64 [N].

    Raises InvalidArgument if a feature has this name.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    if name in {value.name for value in graph.input}:
        raise InvalidArgument(
            f"'{name}' is a feature and an output: rename one of them"
        )
    scored = next(value for value in graph.output if value.name == scores)
    batch = scored.type.tensor_type.shape.dim[0]
    graph.node.append(helper.make_node("ArgMax", [scores], [name], axis=1, keepdims=0))
    extents = [batch.dim_value or batch.dim_param]
    del graph.output[:]
    graph.output.append(
        helper.make_tensor_value_info(name, onnx.TensorProto.INT64, extents)
    )
    _prune(graph)
    onnx.checker.check_model(result)
    return result


def _tidied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inlines all functions, and removes the converter's notes from the nodes."""
    model = inliner.inline_local_functions(model)
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    del model.graph.metadata_props[:]
    # Drop inferred shapes. `build` infers them again after it has added nodes.
    del model.graph.value_info[:]
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def _select(
    model: onnx.ModelProto,
    wanted: Sequence[str] | None,
    features: Iterable[FeatureSpec],
) -> None:
    by_name = {value.name: value for value in model.graph.output}
    names = list(by_name) if wanted is None else list(wanted)
    if unknown := [name for name in names if name not in by_name]:
        raise InvalidArgument(
            f"there is no output '{unknown[0]}', only {', '.join(by_name)}"
        )
    if twice := [feature.name for feature in features if feature.name in names]:
        raise InvalidArgument(
            f"'{twice[0]}' is a feature and an output: rename one of them"
        )
    chosen = [by_name[name] for name in names]
    del model.graph.output[:]
    model.graph.output.extend(chosen)
    _prune(model.graph)


def _prune(graph: onnx.GraphProto) -> None:
    """Removes nodes that no output needs, because some runtimes would run them."""
    needed = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.isdisjoint(node.output):
            continue
        kept.append(node)
        needed.update(_inputs_of(node))
    del graph.node[:]
    graph.node.extend(reversed(kept))
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(constants)


def _inputs_of(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names of tensors that a node reads, also in branches and loops."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _inputs_of(inner)
            yield from (value.name for value in graph.output)


def _check_free(model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        extents = value.type.tensor_type.shape.dim
        if not extents or extents[0].HasField("dim_value"):
            raise Unsupported(
                f"the policy's input '{value.name}' has a fixed first dimension, so it "
                "accepts only one request at a time; export it with batch=1 (--batch 1)"
            )


def _output(value: onnx.ValueInfoProto, first: int | str) -> onnx.ValueInfoProto:
    """Returns a copy of an output whose first dimension is `first`."""
    tensor = value.type.tensor_type
    shape = [dim.dim_value or dim.dim_param or None for dim in tensor.shape.dim]
    shape[:1] = [first] if shape else []
    return helper.make_tensor_value_info(value.name, tensor.elem_type, shape)


class _Builder:
    """Creates the nodes and constants that process features."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add_port(self, port: Port, name: str, rank: int, elem_type: int) -> None:
        """Adds nodes that compute the policy's input `name` from the features."""
        if len(port.features) == 1 and not port.one_hot:
            (feature,) = port.features
            value = self._cast(feature.name, feature.dtype, port.dtype)
            shape = feature.shape
        else:
            value = self._row(port)
            shape = (sum(feature.width for feature in port.features),)
        if shape != port.shape or rank != 1 + len(shape):
            target = np.array([-1, *port.shape], np.int64)
            value = self._node("Reshape", [value, self._constant(target)])
        dtype = port.dtype
        if port.normalise:
            value = self._normalise(port.normalise, value, dtype)
            dtype = port.normalise.dtype
        if elem_type != helper.np_dtype_to_tensor_dtype(dtype):
            value = self._node("Cast", [value], to=elem_type)
        if self.nodes and self.nodes[-1].output[0] == value:
            self.nodes[-1].output[0] = name
        else:
            self.nodes.append(helper.make_node("Identity", [value], [name]))

    def add_mask(self, port: Port, name: str, features: Sequence[FeatureSpec]) -> None:
        """Adds nodes that compute the mask `name`: a 1 for each row of an extent."""
        feature, axis = next(
            (feature, 1 + feature.shape.index(port.mask_of))
            for feature in features
            if port.mask_of in feature.shape
        )
        shape = self._node("Shape", [feature.name])
        axes = self._constant(np.array([0, axis], np.int64))
        size = self._node("Gather", [shape, axes], axis=0)
        one = numpy_helper.from_array(np.ones(1, port.dtype))
        node = helper.make_node("ConstantOfShape", [size], [name], value=one)
        self.nodes.append(node)

    def _row(self, port: Port) -> str:
        """Returns a tensor [N, width] with all features of a port as columns."""
        parts = [self._columns(port, feature) for feature in port.features]
        joined = []
        # Concatenate before converting, to need one conversion per type.
        for dtype, members in groupby(parts, lambda part: part[1]):
            value = self._concatenate([name for name, _ in members])
            joined.append(self._cast(value, np.dtype(dtype), port.dtype))
        return self._concatenate(joined)

    def _columns(self, port: Port, feature: FeatureSpec) -> tuple[str, str]:
        """Returns a feature as a tensor [N, width], and its element type."""
        value = feature.name
        if not feature.shape:
            axis = self._constant(np.array([1], np.int64))
            value = self._node("Unsqueeze", [value, axis])
        elif len(feature.shape) > 1:
            value = self._node("Flatten", [value], axis=1)
        if feature.categories:
            return self._one_hot(feature, value, port.dtype), str(port.dtype)
        return value, str(feature.dtype)

    def _one_hot(self, feature: FeatureSpec, value: str, dtype: np.dtype[Any]) -> str:
        """One-hot encodes a tensor of categories, [N, k], to [N, width]."""
        counts = [len(values) for values in feature.categories]
        if len(counts) > 1:
            repeated = np.repeat(np.arange(len(counts)), counts)
            value = self._node("Gather", [value, self._constant(repeated)], axis=1)
        ordered = [number for values in feature.categories for number in values]
        candidates = np.array([ordered], feature.dtype)
        value = self._node("Equal", [value, self._constant(candidates)])
        return self._cast(value, np.dtype(np.bool_), dtype)

    def _normalise(self, how: Normalisation, value: str, dtype: np.dtype[Any]) -> str:
        double = np.dtype(np.float64)
        value = self._cast(value, dtype, double)
        mean, scale = (np.asarray(x, np.float64)[None] for x in (how.mean, how.scale))
        value = self._node("Sub", [value, self._constant(mean)])
        value = self._node("Div", [value, self._constant(scale)])
        if how.clip is not None:
            limits = [self._constant(np.array(x)) for x in (-how.clip, how.clip)]
            value = self._node("Clip", [value, *limits])
        return self._cast(value, double, how.dtype)

    def _cast(self, value: str, found: np.dtype[Any], wanted: np.dtype[Any]) -> str:
        to = helper.np_dtype_to_tensor_dtype(wanted)
        return value if found == wanted else self._node("Cast", [value], to=to)

    def _concatenate(self, values: list[str]) -> str:
        return values[0] if len(values) == 1 else self._node("Concat", values, axis=1)

    def _constant(self, value: NDArray[Any]) -> str:
        name = f"{_OURS}constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def _node(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        output = f"{_OURS}{operator.lower()}_{len(self.nodes)}"
        node = helper.make_node(operator, inputs, [output], output, **attributes)
        self.nodes.append(node)
        return output
