# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported policies of Stable-Baselines3 choose the same actions as `predict`."""

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")
pytest.importorskip("onnxscript", reason="needs scripts/make-venv export")

from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from exported import Guess, run
from mlbridge import InvalidArgument, ModelError, SchemaMismatch, Unsupported
from mlbridge.export import export
from mlbridge.export.sb3 import load, load_statistics

COUNT = 40

ROW = spaces.Box(-3, 3, (4,), np.float32)
DICT = spaces.Dict(
    size=spaces.Box(0, 9, (1,), np.int64),
    embedding=spaces.Box(-4, 4, (3,), np.float32),
    kind=spaces.Discrete(4),
    flags=spaces.MultiBinary(2),
    choice=spaces.MultiDiscrete([2, 3]),
)
NUMBERS = spaces.Dict(
    size=spaces.Box(0, 1000, (1,), np.int64),
    embedding=spaces.Box(-4, 4, (3,), np.float32),
)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks that Stable-Baselines3 leaves none of its folders, SB3-TIME."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("SB3-*")) == []


def trained(
    algorithm: Any, observations: Any, actions: Any, *, normalised: bool = False
) -> Any:
    env: Any = DummyVecEnv([lambda: Guess(observations, actions)])
    kind = "MlpPolicy"
    boxes: list[str] | None = None
    if isinstance(observations, spaces.Dict):
        parts = observations.spaces.items()
        boxes = [name for name, part in parts if isinstance(part, spaces.Box)]
        kind = "MultiInputPolicy"
    if normalised:
        env = VecNormalize(env, norm_obs_keys=boxes)
    more = {"learning_starts": 8} if algorithm is DQN else {"n_steps": 16}
    if algorithm is PPO:
        more["batch_size"] = 16
    model = algorithm(kind, env, seed=4, device="cpu", **more)
    # The default logger would leave an empty folder in /tmp.
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model.learn(64)


def observations(space: Any, seed: int = 0) -> dict[str, NDArray[Any]]:
    space.seed(seed)
    drawn = [space.sample() for _ in range(COUNT)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([one[key] for one in drawn]) for key in space.spaces}
    return {"observation": np.stack(drawn)}


def predicted(model: Any, asked: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Returns the framework's own actions, one request after another."""
    normalise = model.get_vec_normalize_env()
    actions = []
    for i in range(COUNT):
        one: Any = {name: values[i] for name, values in asked.items()}
        if not isinstance(model.observation_space, spaces.Dict):
            one = one["observation"]
        if normalise:
            one = normalise.normalize_obs(one)
        actions.append(model.predict(one, deterministic=True)[0])
    return np.stack(actions)


CASES = [
    (PPO, ROW, False),
    (PPO, ROW, True),
    (PPO, DICT, True),
    (A2C, NUMBERS, True),
    (DQN, ROW, True),
    (DQN, DICT, False),
    (A2C, spaces.Discrete(6), False),
]


@pytest.mark.parametrize(("algorithm", "space", "normalised"), CASES)
def test_the_same_actions(
    tmp_path: Path, algorithm: Any, space: Any, normalised: bool
) -> None:
    model = trained(algorithm, space, spaces.Discrete(5), normalised=normalised)
    done = export(model, tmp_path / "m.onnx")
    output = "q_values" if algorithm is DQN else "logits"
    assert (done.outputs, done.decide) == ((output,), f"argmax:{output}")
    asked = observations(space)
    assert {f.name for f in done.features} == set(asked)
    assert all(asked[f.name].dtype == f.dtype for f in done.features)
    found = run(done.path, asked)[output].argmax(axis=1)
    np.testing.assert_array_equal(found, predicted(model, asked))
    assert len(np.unique(found)) > 1, "a constant would prove nothing"


@pytest.mark.parametrize(
    "actions",
    [
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
        spaces.Box(-0.02, 0.02, (2,), np.float32),
    ],
)
def test_actions_of_several_parts(tmp_path: Path, actions: Any) -> None:
    model = trained(PPO, ROW, actions)
    done = export(model, tmp_path / "m.onnx")
    assert (done.outputs, done.decide) == (("action",), None)
    asked = observations(ROW)
    found = run(done.path, asked)["action"]
    expected = predicted(model, asked)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert found.min() != found.max()


def test_continuous_actions_with_noise_by_state(tmp_path: Path) -> None:
    env = Guess(ROW, spaces.Box(-2, 2, (2,), np.float32))
    model = PPO("MlpPolicy", env, use_sde=True, device="cpu")
    done = export(model, tmp_path / "m.onnx", outputs=["action"])
    asked = observations(ROW)
    found = run(done.path, asked)["action"]
    np.testing.assert_allclose(found, predicted(model, asked), rtol=1e-4, atol=1e-5)


def test_squashed_actions(tmp_path: Path) -> None:
    """Squashed actions are refused, because `predict` scales them after the network."""
    env = Guess(ROW, spaces.Box(-5, 10, (2,), np.float32))
    squash = {"squash_output": True}
    model = PPO("MlpPolicy", env, use_sde=True, policy_kwargs=squash, device="cpu")
    with pytest.raises(Unsupported, match="squash_output: export the network"):
        export(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


class Opposite(ActorCriticPolicy):
    """A policy that negates the network's action."""

    def _predict(self, observation: Any, deterministic: bool = False) -> Any:
        return -super()._predict(observation, deterministic)


def test_what_is_compared_with_is_predict(tmp_path: Path) -> None:
    env = Guess(ROW, spaces.Box(-2, 2, (2,), np.float32))
    model = PPO(Opposite, env, device="cpu")
    with pytest.raises(ModelError, match="output 'action' differs"):
        export(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_a_file_with_statistics(tmp_path: Path) -> None:
    """The model and the statistics are in two files. `load` infers the algorithm."""
    model = trained(PPO, NUMBERS, spaces.Discrete(5), normalised=True)
    model.save(tmp_path / "ppo.zip")
    model.get_vec_normalize_env().save(str(tmp_path / "statistics.pkl"))
    loaded = load(tmp_path / "ppo.zip")
    assert type(loaded) is PPO
    statistics = load_statistics(tmp_path / "statistics.pkl")
    outputs, path = ["logits", "value"], tmp_path / "a.onnx"
    export(loaded, path, statistics=statistics, outputs=outputs)
    asked = observations(NUMBERS)
    found = run(path, asked)
    assert found["value"].shape == (COUNT, 1)
    expected = predicted(model, asked)
    np.testing.assert_array_equal(found["logits"].argmax(axis=1), expected)
    without = export(loaded, tmp_path / "b.onnx")
    other = run(without.path, asked)["logits"].argmax(axis=1)
    assert not np.array_equal(other, expected)
    (tmp_path / "other.pkl").write_bytes(pickle.dumps(7))
    with pytest.raises(InvalidArgument, match=r"VecNormalize.save\(\) .*, found a int"):
        load_statistics(tmp_path / "other.pkl")


@pytest.mark.parametrize("algorithm", [A2C, DQN])
def test_the_algorithm_of_a_file(tmp_path: Path, algorithm: Any) -> None:
    trained(algorithm, ROW, spaces.Discrete(2)).save(tmp_path / "m.zip")
    assert type(load(tmp_path / "m.zip")) is algorithm


def test_features_in_a_row_instead_of_one_observation(tmp_path: Path) -> None:
    """Several features of the compiler, even integers, form the observation."""
    model = trained(PPO, ROW, spaces.Discrete(5), normalised=True)
    given = ["int64_t size", "double[1] weight", "int8_t[2] flags"]
    done = export(model, tmp_path / "m.onnx", features=given)
    assert [str(f) for f in done.features] == given
    row = np.round(observations(ROW)["observation"])
    asked: dict[str, NDArray[Any]] = {
        "size": row[:, 0].astype(np.int64),
        "weight": row[:, 1:2].astype(np.float64),
        "flags": row[:, 2:].astype(np.int8),
    }
    found = run(done.path, asked)["logits"].argmax(axis=1)
    np.testing.assert_array_equal(found, predicted(model, {"observation": row}))


@pytest.mark.parametrize(
    ("space", "given", "message"),
    [
        (ROW, ["float a", "float b"], r"PPO: expected an observation of shape \[4\]"),
        (NUMBERS, ["int64 size"], "size, embedding; missing: embedding"),
        (
            NUMBERS,
            ["int64 size", "float[2] embedding"],
            r"expected 'float\[3\] embedding', found 'float\[2\] embedding'",
        ),
    ],
)
def test_features_that_do_not_fit(
    tmp_path: Path, space: Any, given: list[str], message: str
) -> None:
    model = trained(PPO, space, spaces.Discrete(2))
    with pytest.raises(SchemaMismatch, match=message):
        export(model, tmp_path / "m.onnx", features=given)


def test_other_algorithms(tmp_path: Path) -> None:
    env = Guess(ROW, spaces.Box(-1, 1, (1,), np.float32))
    model = SAC("MlpPolicy", env, buffer_size=100, device="cpu")
    with pytest.raises(Unsupported, match=r"PPO, A2C, DQN, or ARS.*export the network"):
        export(model, tmp_path / "m.onnx")
    model.save(tmp_path / "sac.zip")
    says = r"expected what .* PPO, A2C, DQN or ARS saved"
    with pytest.raises(Unsupported, match=says):
        load(tmp_path / "sac.zip")


def test_normalisation_is_in_the_graph(tmp_path: Path) -> None:
    model = trained(PPO, ROW, spaces.Discrete(3), normalised=True)
    export(model, tmp_path / "m.onnx")
    operators = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert {"Sub", "Div", "Clip"} <= set(operators)
