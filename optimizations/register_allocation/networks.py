# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks that decide about register allocation in LLVM.

The kinds `eviction` and `priority` have the features and advice of LLVM's own ML
advisors. The other kinds have the features and advice of `-mlbridge-regalloc`. An
evolution strategy finds the weights, so a network is a function from a vector of
weights to an ONNX model.
Each network starts as a heuristic and learns changes to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx.parser
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import numpy_helper

from mlbridge.errors import InvalidArgument, Malformed
from mlbridge.export import FeatureSpec
from mlbridge.export.features import to_json
from mlbridge_optimizations.training.cma_es import Weights

Kind: TypeAlias = Literal["allocator", "dialogue", "eviction", "priority"]

POSITIONS = 33
"""The number of positions: the registers, and then the range that needs a register."""

_INTEGERS = ("is_free", "is_hint", "is_local", "max_stage", "min_stage")
_FLOATS = (
    "nr_urgent",
    "nr_broken_hints",
    "nr_rematerializable",
    "nr_defs_and_uses",
    "weighed_reads_by_max",
    "weighed_writes_by_max",
    "weighed_read_writes_by_max",
    "weighed_indvars_by_max",
    "hint_weights_by_max",
    "start_bb_freq_by_max",
    "end_bb_freq_by_max",
    "hottest_bb_freq_by_max",
    "liverange_size",
    "use_def_density",
)
COLUMNS_OF_EVICTIONS = (*_INTEGERS, *_FLOATS)
"""The features of a position, without the mask. A network has one more column: the
progress."""


class Network(ABC):
    """A network that an evolution trains: a graph, and a vector of weights."""

    kind: ClassVar[Kind]
    graph: ClassVar[str] = ""
    """The graph in ONNX's text format. The weights are its initializers."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden
        self.learned: Weights | None = None

    @abstractmethod
    def initial(self) -> dict[str, NDArray[np.float64]]:
        """Returns the weights of the heuristic, by name."""

    @property
    def start(self) -> Weights:
        """The weights with which training starts, as a vector, float64 [n].

        These are the heuristic's weights, unless `load` was called.
        """
        if self.learned is not None:
            return self.learned
        return np.concatenate([part.ravel() for part in self.initial().values()])

    def load(self, file: Path) -> None:
        """Reads, from an ONNX file, the weights with which training starts.

        Raises Malformed if the file is no ONNX model, and InvalidArgument if it does
        not contain this network.
        """
        try:
            model = onnx.load_model_from_string(file.read_bytes())
        except DecodeError as error:
            raise Malformed(f"{file}: expected an ONNX model: {error}") from error
        stored = {
            part.name: numpy_helper.to_array(part) for part in model.graph.initializer
        }
        parts = []
        for name, part in self.initial().items():
            if name not in stored or stored[name].shape != part.shape:
                raise InvalidArgument(
                    f"{file}: expected weights '{name}' of shape {part.shape}, as in"
                    f" networks of the kind {self.kind}"
                )
            parts.append(stored[name].ravel().astype(np.float64))
        self.learned = np.concatenate(parts)

    def parts(self, weights: Weights) -> dict[str, NDArray[np.float64]]:
        """Returns weights, float64 [n], by name."""
        found, at = {}, 0
        for name, part in self.initial().items():
            found[name] = weights[at : at + part.size].reshape(part.shape)
            at += part.size
        return found

    def named(self, weights: Weights) -> dict[str, onnx.TensorProto]:
        """Returns weights, float64 [n], as initializers by name."""
        return {
            name: numpy_helper.from_array(values.astype(np.float32), name)
            for name, values in self.parts(weights).items()
        }

    def write(
        self, stem: Path, weights: Weights, metadata: Mapping[str, str] | None = None
    ) -> str:
        """Writes the network with these weights, float64 [n].

        Returns its spec for the plug-in. The file's name is `stem` with `.onnx`.
        """
        file = stem.with_name(f"{stem.name}.onnx")
        _write(file, self.graph, self.named(weights), metadata)
        return f"onnx:{file}"


def _write(
    file: Path,
    graph: str,
    weights: Mapping[str, onnx.TensorProto],
    metadata: Mapping[str, str] | None,
) -> None:
    """Writes a model of a graph and the weights that it names."""
    model = onnx.parser.parse_model(graph)
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(weights[name] for name in weights if name in used)
    features = to_json([_feature(port) for port in model.graph.input])
    entries = {"mlbridge.features": features, **(metadata or {})}
    for key, text in entries.items():
        model.metadata_props.add(key=key, value=text)
    file.write_bytes(model.SerializeToString())


def _feature(port: onnx.ValueInfoProto) -> FeatureSpec:
    tensor = port.type.tensor_type
    shape = tuple(d.dim_param or d.dim_value for d in tensor.shape.dim)
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    return FeatureSpec(port.name, kind, shape)


def _casts() -> str:
    return "\n".join(f"  f_{name} = Cast<to = 1>({name})" for name in _INTEGERS)


def _parts() -> str:
    return ", ".join([*(f"f_{name}" for name in _INTEGERS), *_FLOATS])


def _ports() -> str:
    integers = [f"int64[1,{POSITIONS}] {name}" for name in ("mask", *_INTEGERS)]
    floats = [f"float[1,{POSITIONS}] {name}" for name in _FLOATS]
    return ", ".join([*integers, *floats, "float[1] progress"])


class EvictionNetwork(Network):
    """Chooses `index_to_evict`, int64 [1], among the positions whose mask is 1.

    Each position gets a score from its own features and the progress. At first, the
    score is minus the largest spill weight at the position, so that a range evicts the
    lightest ranges if these are lighter than itself.
    """

    kind = "eviction"
    graph = f"""
<ir_version: 8, opset_import: ["" : 17]>
eviction ({_ports()}) => (int64[1] index_to_evict)
<int64[2] spread = {{1, {POSITIONS}}}, float[1] lowest = {{-1e9}}>
{{
{_casts()}
  p = Expand(progress, spread)
  columns = Concat<axis = 0>({_parts()}, p)
  rows = Transpose<perm = [1, 0]>(columns)
  direct = MatMul(rows, linear)
  before = MatMul(rows, inner)
  biased = Add(before, bias)
  hidden = Tanh(biased)
  learned = MatMul(hidden, outer)
  both = Add(direct, learned)
  scores = Transpose<perm = [1, 0]>(both)
  allowed = Cast<to = 9>(mask)
  masked = Where(allowed, scores, lowest)
  index_to_evict = ArgMax<axis = 1, keepdims = 0>(masked)
}}
"""

    def __init__(self, hidden: int = 6) -> None:
        super().__init__(hidden)

    def initial(self) -> dict[str, NDArray[np.float64]]:
        """See `Network`."""
        linear = np.zeros((len(COLUMNS_OF_EVICTIONS) + 1, 1))
        linear[COLUMNS_OF_EVICTIONS.index("use_def_density")] = -1.0
        linear[COLUMNS_OF_EVICTIONS.index("nr_broken_hints")] = -0.1
        draw = np.random.default_rng(0)
        inner = draw.normal(0, 0.5, (len(linear), self.hidden))
        zero = np.zeros(self.hidden)
        outer = np.zeros((self.hidden, 1))
        return {"linear": linear, "inner": inner, "bias": zero, "outer": outer}


class PriorityNetwork(Network):
    """Computes the `priority` of a live range, float [1].

    At first, the longest range has the highest priority.
    """

    kind = "priority"
    graph = """
<ir_version: 8, opset_import: ["" : 17]>
priority (int64[1] li_size, int64[1] stage, float[1] weight) => (float[1] priority)
<float one = {1}, float heaviest = {1e6}, float zero = {0}, float eighth = {0.125},
 int64 split = {2}, float range = {1073741824}, int64[2] row = {1, 3},
 int64[1] flat = {1}>
{
  size = Cast<to = 1>(li_size)
  size1 = Add(size, one)
  logSize = Log(size1)
  scaledSize = Mul(logSize, eighth)
  isSplit = Equal(stage, split)
  waits = Cast<to = 1>(isSplit)
  finite = Clip(weight, zero, heaviest)
  weight1 = Add(finite, one)
  logWeight = Log(weight1)
  features = Concat<axis = 0>(scaledSize, waits, logWeight)
  features2 = Reshape(features, row)
  direct = MatMul(features2, linear)
  before = MatMul(features2, inner)
  biased = Add(before, bias)
  hidden = Tanh(biased)
  learned = MatMul(hidden, outer)
  both = Add(direct, learned)
  share = Sigmoid(both)
  scaled = Mul(share, range)
  priority = Reshape(scaled, flat)
}
"""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__(hidden)

    def initial(self) -> dict[str, NDArray[np.float64]]:
        """See `Network`."""
        draw = np.random.default_rng(0)
        return {
            "linear": np.array([[1.0], [0.0], [0.0]]),
            "inner": draw.normal(0, 1, (3, self.hidden)),
            "bias": draw.normal(0, 1, self.hidden),
            "outer": np.zeros((self.hidden, 1)),
        }


COLUMNS = (
    "size",
    "weight",
    "operands",
    "reads",
    "writes",
    "hottest",
    "local",
    "crosses_call",
    "spillable",
    "hinted",
    "remat",
    "class_size",
    "degree",
    "pressure",
    "begin",
    "pressure_at_start",
)
"""The columns of `ranges`: compilers/llvm/RegAlloc/AllocationObservation.h."""


class AllocatorNetwork(Network):
    """Computes preferences for each live range of a function, float [n] each.

    The network is a graph network: each range has a state, and receives the mean of the
    states of the ranges that it interferes with. At first, all ranges are left to
    greedy.
    """

    kind = "allocator"
    graph = """
<ir_version: 8, opset_import: ["" : 17]>
allocator (float[n,16] ranges, float[n] spill_weights, int32[m,2] interferences)
  => (float[n] priority, float[n] value, float[n] leave, float[n] spill)
<int64 first = {0}, int64 second = {1}, int64[1] last = {-1}, float zero = {0},
 int64[1] degreeAt = {12}, int64[4] parts = {1, 1, 1, 1}>
{
  before = MatMul(ranges, inner)
  biased = Add(before, bias)
  state = Tanh(biased)
  pairs = Cast<to = 7>(interferences)
  a = Gather<axis = 1>(pairs, first)
  b = Gather<axis = 1>(pairs, second)
  aRows = Unsqueeze(a, last)
  bRows = Unsqueeze(b, last)
  ofA = Gather<axis = 0>(state, a)
  ofB = Gather<axis = 0>(state, b)
  none = Mul(state, zero)
  some = ScatterND<reduction = "add">(none, aRows, ofB)
  sum = ScatterND<reduction = "add">(some, bRows, ofA)
  logDegree = Gather<axis = 1>(ranges, degreeAt)
  minus = Neg(logDegree)
  share = Exp(minus)
  neighbours = Mul(sum, share)
  both = Concat<axis = 1>(state, neighbours)
  inner2 = MatMul(both, second_inner)
  biased2 = Add(inner2, second_bias)
  hidden = Tanh(biased2)
  learned = MatMul(hidden, outer)
  direct = MatMul(ranges, linear)
  scores = Add(learned, direct)
  all = Add(scores, constant)
  p, v, l, s = Split<axis = 1>(all, parts)
  priority = Squeeze(p, last)
  value = Squeeze(v, last)
  leave = Squeeze(l, last)
  spill = Squeeze(s, last)
}
"""

    def __init__(self, hidden: int = 6) -> None:
        super().__init__(hidden)

    def initial(self) -> dict[str, NDArray[np.float64]]:
        """See `Network`."""
        draw = np.random.default_rng(0)
        linear = np.zeros((len(COLUMNS), 4))
        linear[COLUMNS.index("weight"), :2] = 1.0
        return {
            "linear": linear,
            "constant": np.array([0.0, 0.0, 0.3, -0.5]),
            "inner": draw.normal(0, 0.5, (len(COLUMNS), self.hidden)),
            "bias": np.zeros(self.hidden),
            "second_inner": draw.normal(0, 0.5, (2 * self.hidden, self.hidden)),
            "second_bias": np.zeros(self.hidden),
            "outer": np.zeros((self.hidden, 4)),
        }


_MASKED = """
  allowed = Greater(action_mask, zero)
  masked = Where(allowed, scores, lowest)
  choice = ArgMax<axis = 0, keepdims = 0>(masked)
}
"""


def _of_rows(agent: str, features: str, count: int) -> str:
    """Returns the graph of an agent that scores the rows of its last feature."""
    rows = features.split()[-1]
    return (
        f"""
<ir_version: 8, opset_import: ["" : 17]>
{agent} ({features}, float[{count}] action_mask) => (int64 choice)
<float zero = {{0}}, float lowest = {{-1e9}}, int64[1] flat = {{{count}}}>
{{
  rows = MatMul({rows}, {agent}_linear)
  scores = Reshape(rows, flat)"""
        + _MASKED
    )


class DialogueNetwork(Network):
    """The four agents of a dialogue. Each computes its `choice`, int64.

    An agent gives a linear score to each choice. Untrained agents allocate the longest
    range first, to the first free register. If no register is free, they split a range
    with a hot block at the hottest loop that uses it. They assign any other range to
    the register of the lightest ranges, if these are lighter. Otherwise, they leave the
    range to greedy, or spill it if `leaves` is False.
    """

    kind = "dialogue"
    agents: ClassVar[dict[str, str]] = {
        "node": _of_rows("node", "float[8,16] ranges", 8),
        "task": """
<ir_version: 8, opset_import: ["" : 17]>
task (float[16] range, float[32,6] colours, float[2] action_mask) => (int64 choice)
<float zero = {0}, float lowest = {-1e9}, float[1] colour = {0}>
{
  best = ReduceMax<axes = [0], keepdims = 0>(colours)
  all = Concat<axis = 0>(range, best)
  learned = MatMul(all, task_linear)
  split = Add(learned, task_bias)
  scores = Concat<axis = 0>(colour, split)"""
        + _MASKED,
        "colour": """
<ir_version: 8, opset_import: ["" : 17]>
colour (float[16] range, float[32,6] colours, float[34] action_mask) => (int64 choice)
<float zero = {0}, float lowest = {-1e9}, int64[1] flat = {32}>
{
  rows = MatMul(colours, colour_linear)
  ofColours = Reshape(rows, flat)
  others = MatMul(range, others_linear)
  ofOthers = Add(others, others_bias)
  scores = Concat<axis = 0>(ofColours, ofOthers)"""
        + _MASKED,
        "split": _of_rows("split", "float[16] range, float[16,6] points", 16),
    }

    def __init__(self, *, leaves: bool = True) -> None:
        super().__init__(0)
        self.leaves = leaves

    def initial(self) -> dict[str, NDArray[np.float64]]:
        """See `Network`."""
        columns = len(COLUMNS)
        longest = np.zeros((columns, 1))
        longest[COLUMNS.index("size")] = 1.0
        # The columns of colours and points: DialoguePolicy.h.
        task = np.zeros((columns + 6, 1))
        task[columns] = -10.0  # A colour is free.
        task[COLUMNS.index("hottest")] = 1.0
        return {
            "node_linear": longest,
            "task_linear": task,
            "task_bias": np.array([-5.0]),
            "colour_linear": np.array([[10.0], [0.1], [0.0], [0.0], [0.0], [1.0]]),
            "others_linear": np.zeros((columns, 2)),
            "others_bias": np.array(
                [-0.5 if self.leaves else 0.0, 0.0 if self.leaves else -1e6]
            ),
            "split_linear": np.array([[1.0], [0.0], [0.0], [0.0], [0.5], [2.0]]),
        }

    def write(
        self, stem: Path, weights: Weights, metadata: Mapping[str, str] | None = None
    ) -> str:
        """See `Network`. `stem` becomes a folder with a file for each agent."""
        named = self.named(weights)
        parts = []
        stem.mkdir(exist_ok=True)
        for agent, graph in self.agents.items():
            file = stem / f"{agent}.onnx"
            _write(file, graph, named, metadata)
            parts.append(f"{agent}={file}")
        return "onnx:" + ",".join(parts)


NETWORKS: dict[str, Callable[[], Network]] = {
    "allocator": AllocatorNetwork,
    "dialogue": DialogueNetwork,
    "dialogue-alone": partial(DialogueNetwork, leaves=False),
    "eviction": EvictionNetwork,
    "priority": PriorityNetwork,
}
