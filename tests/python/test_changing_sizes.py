# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observations whose size changes between steps: spaces, padding, exported models."""

import pickle
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest
from gymnasium import spaces
from gymnasium.spaces import Box, Dict, Discrete, Graph, GraphInstance, Sequence

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

import torch
from stable_baselines3 import PPO
from torch import Tensor, nn

from exported import run
from mlbridge import InvalidArgument, ModelError, SchemaMismatch, Unsupported
from mlbridge.envs import Padded
from mlbridge.envs.spaces import ActionWriter, ObservationReader
from mlbridge.export import FeatureSpec, export, features_of, parse_feature
from mlbridge_optimizations.training.networks import OwnNetwork, OwnPolicy

ROWS = Sequence(Box(-1, 1, (3,)), stack=True)
GRAPH = Graph(Box(0, 1, (2,)), Discrete(3, start=1))
LINKS = np.array([[0, 1], [1, 0], [2, 2]])
SENT = {
    "graph.nodes": np.full((3, 2), 0.5, np.float32),
    "graph.edges": np.array([1, 2, 3]),
    "graph.edge_links": LINKS,
    "count": np.array(7, np.int32),
}
SPACE = Dict({"graph": GRAPH, "count": Discrete(9)})
PADDED = Padded(SPACE, {"graph.nodes": 4, "graph.edges": 5})


def test_graphs_and_sequences_are_read() -> None:
    observation, rest = ObservationReader(SPACE)({**SENT, "time": np.array(1)})
    assert SPACE.contains(observation)
    assert rest == {"time": 1}
    graph = observation["graph"]
    assert isinstance(graph, GraphInstance)
    np.testing.assert_array_equal(graph.edge_links, LINKS)
    alone = ObservationReader(ROWS)
    for count in 4, 1, 0:
        rows = np.full((count, 3), 0.5, np.float32)
        found, _ = alone({"observation": rows})
        assert ROWS.contains(found)
        assert found.shape == (count, 3)
    no_edges = ObservationReader(Graph(Box(0, 1, (2,)), None))
    assert no_edges({"nodes": SENT["graph.nodes"]})[0].edges is None
    says = r"float32\[\?, 3\], found float32\[2, 4\]"
    with pytest.raises(SchemaMismatch, match=says):
        alone({"observation": np.zeros((2, 4), np.float32)})


def test_sequences_are_actions() -> None:
    write = ActionWriter(Sequence(Discrete(4), stack=True))
    assert write([1, 2, 3])["action"].tolist() == [1, 2, 3]
    assert write([])["action"].shape == (0,)
    with pytest.raises(TypeError, match="stack=True"):
        ActionWriter(Sequence(Discrete(4)))


def test_padded() -> None:
    read = ObservationReader(pickle.loads(pickle.dumps(PADDED)))
    observation, _ = read(SENT)
    assert PADDED.contains(observation)
    assert observation["graph.nodes_mask"].tolist() == [1, 1, 1, 0]
    assert observation["graph.edges"].tolist() == [1, 2, 3, 0, 0]
    assert observation["graph.edge_links"].shape == (5, 2)
    again = PADDED.unpad(observation)
    assert list(again) == [name for name in PADDED.spaces if "mask" not in name]
    for name, value in SENT.items():
        np.testing.assert_array_equal(again[name], value)
    many = {**SENT, "graph.nodes": np.zeros((6, 2), np.float32)}
    with pytest.raises(SchemaMismatch, match=r"at most 4 rows.*found 6"):
        read(many)
    with pytest.raises(SchemaMismatch, match=r"expected 3 rows.*found 2"):
        read({**SENT, "graph.edge_links": LINKS[:2]})
    both = Padded(
        Dict({"a": ROWS, "b": Sequence(Discrete(2), stack=True)}), {"a": 8}, {"b": "a"}
    )
    assert list(both.spaces) == ["a", "a_mask", "b"]
    with pytest.raises(TypeError, match="cannot be represented as tensors"):
        Padded(Dict({"a": spaces.OneOf([Discrete(2)])}), {})


@pytest.mark.parametrize(
    ("limits", "extents"),
    [
        ({"graph.nodes": 4}, {}),
        ({"graph.nodes": 4, "graph.edges": 5, "x": 1}, {}),
        ({"graph.nodes": 4, "graph.edges": 5}, {"count": "graph.nodes"}),
    ],
)
def test_limits_that_do_not_fit(limits: Any, extents: Any) -> None:
    with pytest.raises(InvalidArgument, match="expected a limit for each of"):
        Padded(SPACE, limits, extents)


def test_features_of_changing_size() -> None:
    found = {str(feature): feature for feature in features_of(PADDED)}
    assert list(found) == [
        "int64_t count",
        "float[graph.nodes,2] graph.nodes",
        "int64_t[graph.edges] graph.edges",
        "int64_t[graph.edges,2] graph.edge_links",
    ]
    assert found == {str(feature): feature for feature in features_of(SPACE)}
    links = found["int64_t[graph.edges,2] graph.edge_links"]
    extents = {"graph.edges": 9, "graph.nodes": 3}
    drawn = links.draw(50, np.random.default_rng(1), extents)
    assert drawn.shape == (50, 9, 2)
    assert set(drawn.ravel()) == {0, 1, 2}
    assert parse_feature("float[nodes, 3] x") == FeatureSpec("x", shape=("nodes", 3))


class Sums(nn.Module):
    """A score for each node, and the sum of the scores."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(2, 1)

    def forward(self, nodes: Tensor, links: Tensor) -> dict[str, Tensor]:
        near = nodes.gather(1, links[:, :, :1].expand(-1, -1, 2)).sum(1, keepdim=True)
        scores: Tensor = self.layer(nodes + near).squeeze(2)
        return {"scores": scores, "sum": scores.sum(1)}


def test_a_module_by_the_names_of_its_features(tmp_path: Path) -> None:
    features = [
        FeatureSpec("nodes", shape=("nodes", 2)),
        FeatureSpec("links", "int64", ("links", 2), indexes="nodes"),
    ]
    module = Sums()
    exported = export(module, tmp_path / "sums.onnx", features=features)
    assert exported.comparison.requests == 256
    for count in 1, 6:
        nodes = np.random.default_rng(count).random((1, count, 2), np.float32)
        links = np.zeros((1, 3, 2), np.int64)
        found = run(exported.path, {"nodes": nodes, "links": links})
        expected = module(torch.from_numpy(nodes), torch.from_numpy(links))
        for name in ("scores", "sum"):
            values = expected[name].detach()
            np.testing.assert_allclose(found[name], values, rtol=1e-5)


def test_other_frameworks_have_fixed_sizes(tmp_path: Path) -> None:
    features = ["float[nodes,2] x"]
    with pytest.raises(Unsupported, match=r"float\[nodes,2\] x.* not for jax"):
        export(len, tmp_path / "m.onnx", features=features, framework="jax")
    with pytest.raises(Unsupported, match="cannot be part of a vector"):
        export(nn.Linear(3, 1), tmp_path / "m.onnx", features=[*features, "float y"])


class Drawn(gymnasium.Env[Any, Any]):
    """An environment with two rows of at most six. Only its spaces matter."""

    observation_space = Padded(Dict({"rows": ROWS}), {"rows": 6})
    action_space = Discrete(6)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        rows = np.full((2, 3), 0.5, np.float32)
        return self.observation_space.pad({"rows": rows}), {}


class Scores(nn.Module):
    """Scores each row. With `hides`, masks padding. With `counts`, uses the extent."""

    def __init__(self, *, hides: bool, counts: bool) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer, self.hides, self.counts = nn.Linear(3, 1), hides, counts

    def forward(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        scores = self.layer(seen["rows"]).squeeze(2) - 9
        if self.counts:
            scores = scores + seen["rows"].new_ones(1) / scores.shape[1]
        if self.hides:
            scores = scores.masked_fill(seen["rows_mask"] == 0, -1e9)
        else:
            scores = scores * seen["rows_mask"]
        return scores, seen["rows"].sum((1, 2))[:, None]


def test_padding_must_not_count(tmp_path: Path) -> None:
    path = tmp_path / "scores.onnx"
    with pytest.raises(ModelError, match="output 'logits' differs"):
        export(scoring(hides=True, counts=True), path)
    with pytest.raises(ModelError, match="decides for padding"):
        export(scoring(hides=False, counts=False), path)
    export(scoring(hides=True, counts=False), path)
    (rows,) = onnx.load(path).graph.input
    shape = [d.dim_value or d.dim_param for d in rows.type.tensor_type.shape.dim]
    assert shape == ["N", "rows", 3]
    seen = np.array([[[0, 0, 0], [1, 1, 1]]], np.float32)
    assert run(path, {"rows": seen})["logits"].shape == (1, 2)


def scoring(**options: bool) -> PPO:
    settings = {
        "features_extractor_class": OwnNetwork,
        "features_extractor_kwargs": {"make": lambda: Scores(**options)},
    }
    return PPO(OwnPolicy, Drawn(), policy_kwargs=settings, device="cpu")
