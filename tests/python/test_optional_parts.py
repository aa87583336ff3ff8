# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a few steps of training and tuning with Ray, on one cluster of two nodes.

The long tests of `make test-full` check that RLlib learns, and learns phase ordering.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import pytest

import compilers

pytest.importorskip("ray", reason="Ray is not installed: run scripts/make-venv train")

from mlbridge_optimizations.optimization import MODEL
from mlbridge_optimizations.registry import of_file
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings
from programs import FULL, reply_of
from test_optimization import PROGRAM, SPILLS

# Sends messages of its own .proto. An episode has the rewards 1, 2, ..., 10.
COUNTS = f'''
"""Decides nothing. The compiler counts."""

import numpy as np
from gymnasium import spaces
from torch import nn

from mlbridge import protobuf
from mlbridge.envs import CompilerEnv
from mlbridge_optimizations import Optimization

TYPES = "test.StepObservation", "test.StepAction"
# Ray sends the messages to its workers together with `make_env`.
MESSAGES = protobuf.messages_from("steps.desc", *TYPES)


def make_env(settings, worker):
    return CompilerEnv(
        ["{compilers.PROGRAM}"],
        f"pipe:?serdes={{MESSAGES.name}}",
        formats=[MESSAGES],
        observation_space=spaces.Dict({{"count": spaces.Box(0, 99, (), np.int64)}}),
        action_space=spaces.Discrete(3),
        worker=worker,
    )


class Count(nn.Module):
    """An encoder of the only observation."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 4)
        self.out_features = 4

    def forward(self, observations):
        return self.layer(observations["count"].float().reshape(-1, 1))


OPTIMIZATION = Optimization(
    "counts", "Nothing.", make_env, encoder=lambda settings, space: Count()
)
'''

pytestmark = [
    pytest.mark.skipif(
        not PROGRAM.exists(),
        reason="the example's compiler is not built: run scripts/build release",
    ),
    # Ray and RLlib emit warnings about themselves.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def spills(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("spills") / "spills.py"
    # A relative path must work in all processes of Ray.
    file.write_text(SPILLS.replace(str(PROGRAM), os.path.relpath(PROGRAM)))
    return of_file(file)


@pytest.fixture(scope="module")
def two_nodes(spills: Any) -> Iterator[str]:
    """Yields the address of the Ray cluster that all tests here use.

    `spills` is loaded first, because Ray sends its definitions to the nodes.
    """
    import ray
    from ray.cluster_utils import Cluster

    from mlbridge_optimizations.training.rllib import cluster

    memory = 100 << 20
    nodes: Any = Cluster(
        initialize_head=True,
        # Workers run on the other node.
        head_node_args={"num_cpus": 0, "object_store_memory": memory},
    )
    try:
        nodes.add_node(num_cpus=3, object_store_memory=memory)
        with cluster(3, nodes.address):
            known: Any = ray.nodes
            assert [node["Alive"] for node in known()] == [True, True]
            yield nodes.address
    finally:
        nodes.shutdown()


@pytest.fixture
def experiment(spills: Any, tmp_path: Path) -> Experiment:
    settings = TrainingSettings(
        tmp_path / "out", engine="rllib", steps=32, rollout=16, hidden="8"
    )
    return Experiment(spills, spills.settings(), settings)


@pytest.mark.parametrize("algo", ["dqn", "appo"])
def test_rllib_trains_and_exports(
    experiment: Experiment, two_nodes: str, algo: str
) -> None:
    wanted = experiment.changed(algo=algo)
    exported = policy.train(wanted, address=two_nodes)[MODEL]
    assert int((wanted.settings.out / "checkpoint/steps").read_text()) >= 32
    (ranges,) = (feature.name for feature in exported.features)
    request = {ranges: np.full((1, 15), 0.5, np.float32)}
    advice = reply_of(f"onnx:{exported.path}", request)
    values = advice.values() if isinstance(advice, dict) else [advice]
    assert all(np.isfinite(value).all() for value in values), advice


def test_rllib_trains_with_messages_of_your_own(
    generated: Path, tmp_path: Path, two_nodes: str
) -> None:
    pytest.importorskip("mlbridge._format_protobuf", reason="no Protobuf")
    if not Path(compilers.PROGRAM).exists():
        pytest.skip("test-environment is not built: run scripts/build release")
    file = tmp_path / "counts.py"
    file.write_text(COUNTS.replace("steps.desc", str(generated / "steps.desc")))
    counts: Any = of_file(file)
    settings = TrainingSettings(
        tmp_path / "out", engine="rllib", steps=64, rollout=32, hidden="8"
    )
    policy.train(Experiment(counts, counts.settings(), settings), address=two_nodes)
    returns = Curve().load(tmp_path / "out/curve.csv").returns
    assert len(returns) >= 3
    assert set(returns) == {55.0}


@pytest.mark.parametrize(
    ("engine", "algo"),
    [("rllib", "ppo"), ("sb3", "a2c"), pytest.param("rllib", "appo", marks=FULL)],
)
def test_tuning_takes_the_best_of_its_trials(
    experiment: Experiment, two_nodes: str, engine: str, algo: str
) -> None:
    from mlbridge_optimizations.training.tune import tune

    ended: list[int] = []
    # Like a progress bar, `show` cannot be pickled.
    lock = RLock()

    def show(done: int) -> None:
        with lock:
            ended.append(done)

    wanted = experiment.changed(engine=engine, algo=algo, steps=64)
    best, rows = tune(wanted, 2, address=two_nodes, show=show)
    assert ended == [1, 2]
    assert len(rows) == 2
    assert float(rows[0][-1]) >= float(rows[1][-1])
    assert f"{best.settings.learning_rate:.2g}" == rows[0][0]
