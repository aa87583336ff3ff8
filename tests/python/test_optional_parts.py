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

pytest.importorskip("ray", reason="Ray is not installed: run scripts/make-venv train")

from mlbridge_optimizations.optimization import MODEL
from mlbridge_optimizations.registry import of_file
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings
from programs import FULL, reply_of
from test_optimization import PROGRAM, SPILLS

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
