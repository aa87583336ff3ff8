# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators' code may be asked by a compiler, whatever is in the features.

The generator takes the numbers in a tensor on trust: an index, a length, an axis that
is out of range is read from or written to. So an operator has to be known here: as one
that makes no address of a tensor's numbers, or as one in whose code `generate` puts a
check.
"""

from collections.abc import Iterator

import onnx

from mlbridge.aot.graph import Graph
from mlbridge.errors import Unsupported

_INDEXED = """
    ArrayFeatureExtractor Gather GatherElements GatherND Scatter ScatterElements
    ScatterND
"""
CHECKED = frozenset(_INDEXED.split())
"""They index by a tensor; their code gets a check."""

_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BiasGelu Binarizer BitCast BitShift
    BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh
    Div Dropout Elu Equal Erf Exp FastGelu Floor Gelu Greater GreaterOrEqual
    HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max
    Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink
    Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh
    ThresholdedRelu Where Xor
"""
# The place of each element follows from shapes.
_PLACES = """
    Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten Pad Range
    Reshape Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
"""
# A length is held to the axis, a class or a key compared with each.
_ALONG_AN_AXIS = """
    ArgMax ArgMin CumProd CumSum Hardmax LabelEncoder LogSoftmax OneHot ReduceL1
    ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare ReverseSequence Softmax TopK
"""
# Of the trees, the tables are the model's.
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

# Inputs that are sizes, places or axes: the model's own, or made of shapes.
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
    """Looks for operators that are not known to look at what they are given.

    Raises:
        Unsupported: there is one; the message names it.
    """
    functions = {f.name: f for f in graph.model.functions}
    for nodes, given in _all_nodes(graph):
        for node in nodes:
            known = node.op_type in _PLAIN | CHECKED | functions.keys()
            if not known:
                raise Unsupported(
                    f"'{graph.path}': {node.op_type} may index by what a feature "
                    "says, and nothing is known of a check"
                )
            for i in _PARAMETERS.get(node.op_type, ()):
                if i < len(node.input) and node.input[i] in given:
                    raise Unsupported(
                        f"'{graph.path}': {node.op_type} takes '{node.input[i]}' "
                        "for a size, a place or an axis, which follows from what is "
                        "in a feature; expected a constant, or a function of shapes"
                    )


def _all_nodes(
    graph: Graph,
) -> Iterator[tuple[list[onnx.NodeProto], set[str]]]:
    """All lists of nodes, each with the names of what follows from the inputs."""
    given = {tensor.name for tensor in graph.inputs}
    yield from _nodes(list(graph.model.graph.node), given)
    for function in graph.model.functions:
        yield from _nodes(list(function.node), set(function.input))


def _nodes(
    nodes: list[onnx.NodeProto], given: set[str]
) -> Iterator[tuple[list[onnx.NodeProto], set[str]]]:
    for node in nodes:
        inner = [a.g for a in node.attribute if a.HasField("g")]
        for graph in inner:
            yield from _nodes(list(graph.node), given)
        if node.op_type in ("Shape", "Size"):
            continue
        if inner or not given.isdisjoint(node.input):
            given.update(node.output)
    yield nodes, given
