# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of the inlining demo: training, and replies that match the training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("torch", reason="the demo's packages are not installed")
pytest.importorskip("onnxscript", reason="the demo's packages are not installed")

import torch

from exported import run
from mlbridge_optimizations.inlining.agreement import Agreement
from mlbridge_optimizations.inlining.export import write_onnx
from mlbridge_optimizations.inlining.network import InliningNetwork
from mlbridge_optimizations.inlining.policy import Policy
from mlbridge_optimizations.inlining.record import Table
from mlbridge_optimizations.inlining.train import Epoch, Settings, Trained, train
from programs import ROOT

NAMES = ("callee_users", "cost_estimate", "constant", "threshold")
counts = st.integers(0, 1000)


def table(rows: int = 600, units: int = 12, seed: int = 0) -> Table:
    """Invented call sites, which are inlined if their cost is below the threshold."""
    random = np.random.default_rng(seed)
    cost = random.integers(-50, 300, rows)
    threshold = random.choice([5, 45, 225], rows)
    users = random.integers(1, 9, rows)
    return Table(
        NAMES,
        np.column_stack([users, cost, np.full(rows, 7), threshold]),
        cost < threshold,
        np.sort(random.integers(0, units, rows)),
        tuple(f"unit{i}" for i in range(units)),
    )


def trained(data: Table, **settings: Any) -> tuple[Trained, list[Epoch]]:
    seen: list[Epoch] = []
    return train(data, replace(Settings(), **settings), seen.append), seen


@pytest.fixture(scope="module")
def training() -> Trained:
    return trained(table())[0]


def logits(network: InliningNetwork, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    with torch.no_grad():
        return np.asarray(network(torch.from_numpy(rows).float()))


def agreement(training: Trained, data: Table, rows: Any = ...) -> Agreement:
    decisions = logits(training.network, data.features) > 0
    return Agreement.of(decisions[rows], data.decisions[rows])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_agreement_counts(pairs: list[tuple[bool, bool]]) -> None:
    model, llvm = (np.array(column) for column in zip(*pairs, strict=True))
    found = Agreement.of(model, llvm)
    assert (found.decisions, found.llvm_inlines) == (len(pairs), llvm.sum())
    assert found.accuracy == pytest.approx((model == llvm).mean())
    assert found.majority_rate == pytest.approx(max(llvm.mean(), 1 - llvm.mean()))
    recalls = [(model == llvm)[llvm == side].mean() for side in set(llvm.tolist())]
    assert found.balanced_accuracy == pytest.approx(np.mean(recalls))


@given(st.tuples(*[counts] * 4), st.tuples(*[counts] * 4))
def test_agreements_add_up(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    total = Agreement(*a) + Agreement(*b)
    assert total == Agreement(*(x + y for x, y in zip(a, b, strict=True)))
    assert total.decisions == sum(a) + sum(b)


def test_always_the_same_answer_is_worth_half() -> None:
    """Balanced accuracy is then 1/2, however often LLVM gives the same reply."""
    lazy = Agreement(both_inline=0, only_llvm=10, only_model=0, neither=990)
    assert lazy.accuracy == lazy.majority_rate == 0.99
    assert lazy.balanced_accuracy == 0.5


def test_it_learns(training: Trained) -> None:
    found = agreement(training, table(seed=1))
    assert found.balanced_accuracy > 0.97
    assert found.majority_rate < 0.8


def test_it_learns_from_what_llvm_decides_only() -> None:
    """A network learns nothing from shuffled decisions."""
    data = table()
    shuffled = np.random.default_rng(3).permutation(data.decisions)
    training, _ = trained(replace(data, decisions=shuffled), epochs=20)
    assert agreement(training, table(seed=1)).balanced_accuracy < 0.7


def test_a_seed_makes_the_network() -> None:
    data = table()
    first, again, other = (
        trained(data, seed=seed, epochs=3)[0].network.state_dict() for seed in (5, 5, 6)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_validation_files_are_not_learned_from() -> None:
    """Decisions in validation files change the validation loss, but not the network."""
    data = table()
    before, _ = trained(data, epochs=2)
    names = before.validation_units
    assert 0 < len(names) < len(data.unit_names)
    aside = np.isin(data.units, [data.unit_names.index(name) for name in names])
    assert 0.05 < aside.mean() <= Settings.validation_share
    after, _ = trained(replace(data, decisions=data.decisions ^ aside), epochs=2)
    losses = [[e.training_loss for e in found.curve] for found in (before, after)]
    assert losses[0] == losses[1]
    assert after.curve[0].validation_loss > before.curve[0].validation_loss


def test_the_best_epoch_is_kept() -> None:
    training, seen = trained(table(), epochs=200, patience=5)
    assert seen == training.curve
    losses = [epoch.validation_loss for epoch in training.curve]
    assert training.best == int(np.argmin(losses))
    assert len(losses) in (200, training.best + 6)
    data = table()
    aside = np.isin([data.unit_names[u] for u in data.units], training.validation_units)
    assert agreement(training, data, aside) == training.best_epoch.validation


@pytest.mark.parametrize(
    "data",
    [
        replace(table(), decisions=np.zeros(600, np.bool_)),
        replace(table(), units=np.zeros(600, np.int64), unit_names=("all",)),
    ],
    ids=["one answer", "one file"],
)
def test_too_little_to_learn_from(data: Table) -> None:
    with pytest.raises(ValueError, match="too few"):
        trained(data)


def test_constants_are_dropped(training: Trained) -> None:
    rows = table(seed=1).features
    changed = rows.copy()
    changed[:, NAMES.index("constant")] = 10_000
    first, second = (logits(training.network, each) > 0 for each in (rows, changed))
    np.testing.assert_array_equal(first, second)


@given(st.lists(st.integers(-(2**20), 2**20), min_size=4, max_size=4))
def test_policy_is_the_network(training: Trained, row: list[int]) -> None:
    values = np.array(row, np.int64)
    (expected,) = logits(training.network, values[None])
    policy = Policy(training.network)
    found = policy.logit(values)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    features = {name: values[i : i + 1] for i, name in enumerate(NAMES)}
    # Features come in any order, with LLVM's own decision and unknown features.
    asked = dict(reversed(features.items()), inlining_default=np.array([1]), more="x")
    assert policy(asked) == int(found > 0)


def test_saved_and_loaded(training: Trained, tmp_path: Path) -> None:
    path = tmp_path / "inliner.pt"
    training.network.save(path)
    loaded = InliningNetwork.load(path)
    assert loaded.features == NAMES
    row = table().features[3]
    assert Policy(loaded).logit(row) == Policy(training.network).logit(row)


def assert_alike(
    network: InliningNetwork, path: Path, rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Asserts that an .onnx file decides like the policy. Returns its decisions.

    Logits near 0 may round to either decision. `rows` is int64[n, d].
    """
    features = {name: rows[:, i, None] for i, name in enumerate(network.features)}
    found = run(path, features)["inlining_decision"]
    assert found.dtype == np.int64
    logits = Policy(network).logit(rows)
    sure = np.abs(logits) > 1e-5
    np.testing.assert_array_equal(found[sure] != 0, (logits > 0)[sure])
    assert sure.mean() > 0.99
    return np.asarray(found != 0)


@pytest.mark.parametrize("derived", [True, False])
def test_the_file_decides_as_the_policy(tmp_path: Path, derived: bool) -> None:
    data = table()
    training, _ = trained(data, derived=derived, epochs=20)
    row = data.features[0]
    (expected,) = logits(training.network, row[None])
    assert Policy(training.network).logit(row) == pytest.approx(expected, abs=1e-5)
    path = tmp_path / "inliner.onnx"
    done = write_onnx(training.network, path, data, seed=1)
    assert [(f.name, f.type, f.shape) for f in done.features] == [
        (name, "int64_t", (1,)) for name in NAMES
    ]
    rows = np.concatenate([table(seed=2).features, table(seed=3).features])
    assert 0.1 < assert_alike(training.network, path, rows).mean() < 0.9


def test_the_files_of_the_repository_agree() -> None:
    """models/inlining-imitation stores the network in two formats."""
    folder = ROOT / "models/inlining-imitation"
    network = InliningNetwork.load(folder / "inliner.pt")
    random = np.random.default_rng(4)
    rows = random.integers(0, 60, (4000, len(network.features)))
    index = [network.features.index(n) for n in ("cost_estimate", "threshold")]
    rows[:, index] = random.integers(-50, 120, (4000, 2))
    found = assert_alike(network, folder / "inliner.onnx", rows)
    assert 0.05 < found.mean() < 0.95
