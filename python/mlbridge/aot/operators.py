# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists the operators whose generated code is safe for any feature values.

The generated code does not check the values of indices, lengths and axes. With a wrong
value, the code would read or write memory outside of a tensor. Only the operators in
this file are allowed. In their code, either no address depends on a feature's value, or
`generate` adds a check.
"""

from collections.abc import Iterable, Iterator

import onnx

from mlbridge.aot.graph import Graph
from mlbridge.errors import Unsupported

_INDEXED = """
    ArrayFeatureExtractor Gather GatherElements GatherND Scatter ScatterElements
    ScatterND
"""
CHECKED = frozenset(_INDEXED.split())
"""Operators that use a tensor as indices. `generate` adds a check to their code."""

_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BiasGelu Binarizer BitCast BitShift
    BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh
    Div Dropout Elu Equal Erf Exp FastGelu Floor Gelu Greater GreaterOrEqual
    HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max
    Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink
    Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh
    ThresholdedRelu Where Xor
"""
# Safe, because only shapes determine the position of each element.
_PLACES = """
    Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten Pad Range
    Reshape Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
"""
# Safe, because lengths are clamped to the axis, and classes and keys are only compared.
_ALONG_AN_AXIS = """
    ArgMax ArgMin CumProd CumSum Hardmax LabelEncoder LogSoftmax OneHot ReduceL1
    ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare ReverseSequence Softmax TopK
"""
# Safe, because all indices are constants in the model, also the indices of tree
# ensembles.
_LAYERS = """
    AveragePool BatchNormalization Conv ConvInteger ConvTranspose Det Einsum
    FusedMatMul GRU Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool
    GroupNormalization If InstanceNormalization LRN LSTM LayerNormalization
    LpNormalization LpPool MatMul MatMulInteger MaxPool MeanVarianceNormalization
    RMSNormalization RNN SkipLayerNormalization
    DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul QuantizeLinear
    TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor
"""
_PLAIN = frozenset(
    name
    for names in (_ELEMENTWISE, _PLACES, _ALONG_AN_AXIS, _LAYERS)
    for name in names.split()
)

# Maps operators to the positions of inputs that are sizes, positions or axes. Such an
# input must not depend on a feature.
_REDUCTIONS = {name: (1,) for name in _PLAIN if name.startswith("Reduce")}
_PARAMETERS = {
    **_REDUCTIONS,
    **dict.fromkeys(("Expand", "OneHot", "Reshape", "Split", "Tile", "TopK"), (1,)),
    **dict.fromkeys(("CumProd", "CumSum", "Squeeze", "Unsqueeze"), (1,)),
    "ConstantOfShape": (0,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4),
}


def check_operators(graph: Graph) -> None:
    """Raises Unsupported if an operator is not safe for all feature values."""
    functions = graph.model.functions
    known = _PLAIN | CHECKED | {function.name for function in functions}
    bodies = [(graph.model.graph.node, {tensor.name for tensor in graph.inputs})]
    bodies += [(function.node, set(function.input)) for function in functions]
    for node, given in (pair for body in bodies for pair in _nodes(*body)):
        if node.op_type not in known:
            raise Unsupported(
                f"'{graph.path}': {node.op_type} may index by a feature's value, but "
                "the compiler has no check for this operator"
            )
        for i in _PARAMETERS.get(node.op_type, ()):
            if i < len(node.input) and node.input[i] in given:
                raise Unsupported(
                    f"'{graph.path}': {node.op_type} uses '{node.input[i]}' as a size, "
                    "a position or an axis: expected a constant or a function of "
                    "shapes, found a tensor that depends on a feature's value"
                )


def _nodes(
    nodes: Iterable[onnx.NodeProto], given: set[str]
) -> Iterator[tuple[onnx.NodeProto, set[str]]]:
    """Yields each node, with the names of tensors that depend on values of features.

    `given` contains the tensors that depend on features, and grows at each node. This
    is correct because the nodes are in topological order.
    """
    for node in nodes:
        inner = [a.g for a in node.attribute if a.HasField("g")]
        for graph in inner:
            yield from _nodes(graph.node, given)
        if node.op_type not in ("Shape", "Size") and (
            inner or not given.isdisjoint(node.input)
        ):
            given.update(node.output)
        yield node, given
