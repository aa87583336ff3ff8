# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests searches of pass sequences, choices of core sets, and value models."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from core_sets import SMALL, STEPS, modules, records, table_of
from mlbridge.errors import SchemaMismatch
from mlbridge_optimizations import corpus
from mlbridge_optimizations.phase_ordering.environment.actions import (
    Action,
    ActionSpace,
)
from mlbridge_optimizations.phase_ordering.environment.compiler import SequenceRunner
from mlbridge_optimizations.phase_ordering.environment.kept import Kept
from mlbridge_optimizations.phase_ordering.environment.runners import Runners
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet
from mlbridge_optimizations.phase_ordering.search import coreset, value
from mlbridge_optimizations.phase_ordering.search.measurements import Table, tabulate
from mlbridge_optimizations.phase_ordering.search.search import SearchSettings, search


def test_a_search_finds_always_the_same(small_corpus: Path, tmp_path: Path) -> None:
    chosen = coreset.balanced(
        corpus.load(small_corpus).files("training", most=SMALL), 4, 0
    )
    assert {path.parent.name for path in chosen} == {"bzip2", "lua"}
    wanted, log = SearchSettings(evaluations=12, length=8), tmp_path / "search.jsonl"
    with Runners(STEPS, 2) as runners:
        first = search(runners, chosen, wanted, log)
        # If only the log's last line is truncated, nothing is measured again.
        log.write_text(log.read_text() + '{"module": "cut')
        before = log.read_text()
        assert search(runners, chosen, wanted, log) == first
        assert log.read_text() == before
    with Runners(STEPS, 1) as runners:
        assert search(runners, chosen, wanted) == first
    for best in first:
        assert list(best.ratios) == sorted(best.ratios)
    with SequenceRunner(replace(STEPS, reward="text-size")) as runner:
        sizes = runner.run(Path(first[0].module), first[0].sequences[0])
    assert sizes.ratio == pytest.approx(first[0].ratios[0], rel=0.01)


def test_a_search_goes_on_after_crashes(small_corpus: Path, tmp_path: Path) -> None:
    space = ActionSpace.load("oz")
    crash = Action("crash", "trigger-crash-module")
    replace(space, actions=(*space.actions[:4], crash)).save(tmp_path / "crash.json")
    options = replace(STEPS, actions=str(tmp_path / "crash.json"), steps=4)
    chosen = modules(small_corpus)[:2]
    with Runners(options, 2) as runners:
        found = search(runners, chosen, SearchSettings(evaluations=16, length=4))
    assert all(best.ratios[0] < 1.5 for best in found)
    orders: list[tuple[int, ...]] = [(4,), (4, 0), (4, 1), (4, 2), (4, 3), (0, 1)]
    table = tabulate(options, 2, chosen, orders)
    assert table.failures == [
        (name, order, "crash") for name in table.modules for order in orders[:5]
    ]
    assert (table.sizes[:, 5] < 2 * table.oz).all()
    np.testing.assert_array_equal(table.sizes[:, 0], 2 * table.oz)


def test_what_was_found_otherwise_is_not_used(
    small_corpus: Path, tmp_path: Path
) -> None:
    log, module = tmp_path / "search.jsonl", tmp_path / "bzip2" / "huffman.c.bc"
    module.parent.mkdir()
    shutil.copy(small_corpus / "bzip2" / "huffman.c.bc", module)
    asked = {"settings": {"length": 8}}
    found = {"sequences": [[0]], "ratios": [1.0]}
    Kept(log, STEPS, asked).add(module, found)
    assert Kept(log, STEPS, asked).load([module]) == {str(module): found}
    # Two spaces with the same name may have different actions.
    space = STEPS.space
    other = replace(space, actions=(replace(space.actions[0], pipeline="globaldce"),))
    other.save(tmp_path / "oz.json")
    plugin = tmp_path / "other.so"
    plugin.write_bytes(b"another build")
    for changed in (
        replace(STEPS, actions=str(tmp_path / "oz.json")),
        replace(STEPS, plugin=plugin),
    ):
        assert Kept(log, changed, asked).load([module]) == {}
    assert Kept(log, STEPS, {"settings": {"length": 9}}).load([module]) == {}
    shutil.copy(small_corpus / "bzip2" / "crctable.c.bc", module)
    assert Kept(log, STEPS, asked).load([module]) == {}


def test_a_table_is_of_its_space(small_corpus: Path, tmp_path: Path) -> None:
    log, chosen = tmp_path / "table.jsonl", modules(small_corpus)[:2]
    first = tabulate(STEPS, 1, chosen, [(0, 1, 2)], log)
    lines = records(log)
    again = tabulate(STEPS, 1, chosen, [(0, 1, 2)], log)
    assert records(log) == lines
    np.testing.assert_array_equal(again.sizes, first.sizes)
    # In another space, the same numbers mean other passes.
    other = tabulate(replace(STEPS, actions="odg"), 1, chosen, [(0, 1, 2)], log)
    assert len(records(log)) == 2 * len(lines)
    assert not np.array_equal(other.sizes, first.sizes)


def test_what_had_not_enough_time_is_tried_again(
    small_corpus: Path, tmp_path: Path
) -> None:
    log, (module, *_) = tmp_path / "table.jsonl", modules(small_corpus)
    wanted = [(0,), (0, 1), (0, 1, 2)]
    first = tabulate(STEPS, 1, [module], wanted, log)
    (line,) = records(log)
    # Change the size of the third sequence, to see that it is not measured again.
    _, second, third, _ = line["found"]
    line["found"] |= {second: "timeout", third: 12345}
    log.write_text(json.dumps(line))
    again = tabulate(STEPS, 1, [module], wanted, log)
    assert again.sizes.tolist() == [[*first.sizes[0, :2], 12345]]
    assert again.failures == []
    assert len(records(log)) == 2
    assert tabulate(STEPS, 1, [module], wanted, log).sizes[0, 2] == 12345
    assert len(records(log)) == 2


def test_a_core_set_is_of_sequences_that_go_together() -> None:
    # Alone, the third sequence is best. In addition to it, the second sequence saves
    # most, and the first saves nothing.
    table = table_of([[96, 95, 100], [97, 95, 100], [100, 99, 80]], ["a", "a", "b"])
    assert table.greedy(2) == [2, 1]
    assert table.greedy(1) == [2]
    # Sequences that add nothing follow.
    assert table.greedy(3) == table.greedy(9) == [2, 1, 0]
    # Sizes are summed for each program. All programs have the same weight.
    logs = [math.log(200 / 200), math.log(80 / 100)]
    assert table.score(table.sizes[:, 2]) == pytest.approx(sum(logs) / 2)


@pytest.mark.parametrize("action", [2, -1])
def test_a_core_set_is_of_actions_of_its_space(tmp_path: Path, action: int) -> None:
    space = ActionSpace("two", "", "", (Action("a", "dce"), Action("b", "adce")))
    CoreSet(space, ((0, 1), (1, action)), (1.0, 1.0), 2).save(tmp_path / "core.json")
    with pytest.raises(SchemaMismatch, match=rf"core\.json: .* 0 to 1 .* {action} "):
        CoreSet.load(tmp_path / "core.json")


def fit(rows: Any, table: Table, order: list[int], **options: Any) -> value.Fitted:
    origins = options.pop("origins", ())
    settings = value.ValueSettings(members=2, **{"epochs": 20, "hidden": 16, **options})
    return value.train(rows, table, order, {"histogram": 6}, settings, origins=origins)


def test_the_value_model_learns_which_sequence_suits_which_module() -> None:
    draw = np.random.default_rng(0)
    kinds = draw.integers(0, 2, 60)
    rows = draw.uniform(5, 10, (60, 6)).astype(np.float32)
    rows[:, 0] += 200 * kinds
    sizes = [[90.0, 99.0, 101.0] if kind else [99.0, 90.0, 101.0] for kind in kinds]
    table = table_of(sizes, [f"p{n % 4}" for n in range(60)])
    fitted = fit(rows, table, [1, 0, 2], epochs=100)
    assert fitted.check is not None
    assert fitted.check.epochs == fitted.epochs
    assert fitted.check.chosen == pytest.approx(0.90, abs=0.01)
    assert fitted.check.best == pytest.approx(0.90)
    assert fitted.checks[0].chosen > 0.93
    assert fitted.checks[-1].fixed > 0.93


@pytest.mark.parametrize("hidden", [3, 4])
def test_a_value_model_begins_with_the_best_fixed_sequence(hidden: int) -> None:
    rows = np.random.default_rng(0).uniform(0, 99, (12, 6)).astype(np.float32)
    sizes = [[95.0 + n % 3, 90.0 + n % 2, 99.0] for n in range(12)]
    table = table_of(sizes, ["a", "b", "c"] * 4)
    # The hidden layer may be as narrow as the number of sequences.
    fitted = fit(rows, table, [1, 0, 2], hidden=hidden)
    assert fitted.checks[0].chosen == fitted.checks[0].fixed


def test_a_program_is_compared_without_its_own_sequences() -> None:
    rows = np.random.default_rng(0).uniform(0, 99, (9, 6)).astype(np.float32)
    # For each program, the best sequence by far is the one found in this program.
    sizes = [[50.0 if k == n % 3 else 90.0 for k in range(3)] for n in range(9)]
    table = table_of([[*each, 95.0] for each in sizes], ["a", "b", "c"] * 3)

    def best(**known: Any) -> float:
        return fit(rows, table, [0, 1, 2], **known).checks[0].best

    origins = [frozenset("a"), frozenset("b"), frozenset("c"), frozenset[str]()]
    assert best() == pytest.approx(0.5)
    assert best(origins=origins) == pytest.approx(0.9)
    # A sequence counts for a program if it was also found in another program.
    assert 0.6 < best(origins=[frozenset("ab"), *origins[1:]]) < 0.8


def test_modules_to_search_are_large_rather_than_small() -> None:
    files = {Path(f"a/{n}.bc"): n for n in (10, 200, 400, 1000, 90_000)}
    files |= {Path(f"b/{n}.bc"): n for n in (299, 5000)}
    first = [coreset.balanced(files, 2, seed) for seed in range(200)]
    assert {path.parent.name for path in first[0]} == {"a", "b"}
    of_a = [files[path] for chosen in first for path in chosen if path.match("a/*")]
    assert set(of_a) == {400, 1000, 90_000}
    assert of_a.count(90_000) > 120
    assert all(Path("b/5000.bc") in chosen for chosen in first)
    assert sorted(coreset.balanced(files, 9, 0)) == sorted(files)
    # Very small modules come last.
    assert {files[path] for path in coreset.balanced(files, 9, 0)[4:]} == {10, 200, 299}
