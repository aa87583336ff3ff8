# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All parts of the training and evaluation of phase ordering, at small scale."""

import hashlib
import json
import math
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from gymnasium import spaces

import aot_models
from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs import CompilerEnv
from mlbridge.envs.machine_code import text_size
from mlbridge.envs.session import Outcome
from mlbridge.errors import InvalidArgument, SchemaMismatch, Timeout, Unsupported
from mlbridge_optimizations import corpus
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.optimization import NoSettings, Optimization
from mlbridge_optimizations.phase_ordering.environment import environment, runners
from mlbridge_optimizations.phase_ordering.environment.actions import (
    Action,
    ActionSpace,
)
from mlbridge_optimizations.phase_ordering.environment.compiler import (
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.environment.environment import TrainingEnv
from mlbridge_optimizations.phase_ordering.environment.kept import Kept
from mlbridge_optimizations.phase_ordering.environment.measure import oz_size
from mlbridge_optimizations.phase_ordering.environment.runners import Runners
from mlbridge_optimizations.phase_ordering.evaluation.evaluate import (
    Evaluation,
    EvaluationSettings,
    Way,
    evaluate,
    random_sequences,
)
from mlbridge_optimizations.phase_ordering.evaluation.programs import run_programs
from mlbridge_optimizations.phase_ordering.evaluation.report import Statistics
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet
from mlbridge_optimizations.phase_ordering.model.model import Model, Task
from mlbridge_optimizations.phase_ordering.optimization import (
    OPTIMIZATION,
    PhaseOrderingSettings,
)
from mlbridge_optimizations.phase_ordering.search import coreset, value
from mlbridge_optimizations.phase_ordering.search.evolve import EvolutionSettings
from mlbridge_optimizations.phase_ordering.search.measurements import Table, tabulate
from mlbridge_optimizations.phase_ordering.search.search import SearchSettings, search
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.experiment import MODEL, Experiment
from mlbridge_optimizations.training.settings import TrainingSettings
from programs import FULL, IS_FULL, run_cli

SMALL = 1500
"""The number of instructions of the largest module that most tests use."""
STEPS = EpisodeOptions(observation=("step",), reward="none", steps=8)


def records(log: Path) -> list[Any]:
    """Returns the values of a .jsonl file."""
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two programs, both for training."""
    into = tmp_path_factory.mktemp("whole")
    assert corpus.fetch(into, programs=["bzip2", "lua"]).failed == {}
    return into


@pytest.fixture(scope="module")
def folder(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus's small files and one larger file. In the full run, all files."""
    if IS_FULL:
        return whole
    into, found = tmp_path_factory.mktemp("corpus"), corpus.load(whole)
    for name in (*found.programs, "linked"):
        (into / name).symlink_to(whole / name)
    for name, program in found.programs.items():
        modules = program.modules
        few = (m for m in modules if m.instructions < 1100 or "bzip2.c" in m.path)
        found.programs[name] = replace(program, modules=tuple(few))
    replace(found, folder=into).save()
    return into


@pytest.fixture
def experiment(folder: Path, tmp_path: Path) -> Experiment:
    environment = PhaseOrderingSettings(
        folder, observation="histogram,step", episode=4, max_instructions=SMALL
    )
    settings = TrainingSettings(
        tmp_path / "out", steps=96, rollout=32, every=40, hidden="16"
    )
    return Experiment(OPTIMIZATION, environment, settings)


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> coreset.Trained:
    return coreset.train(core_settings(folder, tmp_path_factory.mktemp("core")))


def core_settings(folder: Path, out: Path) -> coreset.CoreSetSettings:
    return coreset.CoreSetSettings(
        folder,
        out,
        count=4,
        searched=6 if IS_FULL else 4,
        most=SMALL,
        search=SearchSettings(evaluations=12, length=8),
        value=value.ValueSettings(epochs=40, members=2, hidden=16),
        jobs=2,
    )


@pytest.fixture(scope="module")
def of_pipelines(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> coreset.Trained:
    settings = core_settings(folder, tmp_path_factory.mktemp("pipelines"))
    evolution = EvolutionSettings(
        joint=12, together=2, beside=4, modules=2, race=1, evaluations=12, batch=6
    )
    return coreset.train(replace(settings, evolution=evolution))


def modules(folder: Path) -> list[Path]:
    return list(corpus.load(folder).modules("training", most=SMALL))


# Search, core set, value model


def test_a_search_finds_always_the_same(folder: Path, tmp_path: Path) -> None:
    chosen = coreset.balanced(corpus.load(folder).files("training", most=SMALL), 4, 0)
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


def test_a_search_goes_on_after_crashes(folder: Path, tmp_path: Path) -> None:
    space = ActionSpace.load("oz")
    crash = Action("crash", "trigger-crash-module")
    replace(space, actions=(*space.actions[:4], crash)).save(tmp_path / "crash.json")
    options = replace(STEPS, actions=str(tmp_path / "crash.json"), steps=4)
    chosen = modules(folder)[:2]
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


def test_what_was_found_otherwise_is_not_used(folder: Path, tmp_path: Path) -> None:
    log, module = tmp_path / "search.jsonl", tmp_path / "bzip2" / "huffman.c.bc"
    module.parent.mkdir()
    shutil.copy(folder / "bzip2" / "huffman.c.bc", module)
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
    shutil.copy(folder / "bzip2" / "crctable.c.bc", module)
    assert Kept(log, STEPS, asked).load([module]) == {}


def test_a_table_is_of_its_space(folder: Path, tmp_path: Path) -> None:
    log, chosen = tmp_path / "table.jsonl", modules(folder)[:2]
    first = tabulate(STEPS, 1, chosen, [(0, 1, 2)], log)
    lines = records(log)
    again = tabulate(STEPS, 1, chosen, [(0, 1, 2)], log)
    assert records(log) == lines
    np.testing.assert_array_equal(again.sizes, first.sizes)
    # In another space, the same numbers mean other passes.
    other = tabulate(replace(STEPS, actions="odg"), 1, chosen, [(0, 1, 2)], log)
    assert len(records(log)) == 2 * len(lines)
    assert not np.array_equal(other.sizes, first.sizes)


def test_what_had_not_enough_time_is_tried_again(folder: Path, tmp_path: Path) -> None:
    log, (module, *_) = tmp_path / "table.jsonl", modules(folder)
    wanted = [(0,), (0, 1), (0, 1, 2)]
    first = tabulate(STEPS, 1, [module], wanted, log)
    (line,) = records(log)
    # Change the size of the third, to see that it is not measured again.
    _, second, third, _ = line["found"]
    line["found"] |= {second: "timeout", third: 12345}
    log.write_text(json.dumps(line))
    again = tabulate(STEPS, 1, [module], wanted, log)
    assert again.sizes.tolist() == [[*first.sizes[0, :2], 12345]]
    assert again.failures == []
    assert len(records(log)) == 2
    assert tabulate(STEPS, 1, [module], wanted, log).sizes[0, 2] == 12345
    assert len(records(log)) == 2


def table_of(sizes: list[list[float]], programs: list[str]) -> Table:
    array = np.array(sizes)
    orders: list[tuple[int, ...]] = [(n,) for n in range(array.shape[1])]
    names = [f"{p}/{n}.bc" for n, p in enumerate(programs)]
    return Table(names, programs, orders, array, np.full(len(sizes), 100.0))


def test_a_core_set_is_of_sequences_that_go_together() -> None:
    # The third is the best alone. After it, the second adds most, the first nothing.
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
    # A sequence counts if another program has it, too.
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


def test_the_recipe_makes_a_model_that_picks_sequences(
    trained: coreset.Trained, folder: Path
) -> None:
    assert trained.failures == []
    assert list(trained.core.ratios) == sorted(trained.core.ratios, reverse=True)
    model = Model(trained.model)
    assert (model.task.steps, model.features) == (1, ("histogram", "counts"))
    count = len(trained.core.sequences)
    assert len(model.task.actions.actions) == count
    assert CoreSet.load(trained.model.with_name("core.json")) == trained.core
    assert trained.core.length == 8
    options = EpisodeOptions(observation=model.features, reward="none")
    with SequenceRunner(options) as runner:
        for module in modules(folder)[:3]:
            choices = model.choices(runner, module, 3, 0)
            sequences = [choice for choice in choices if isinstance(choice, tuple)]
            assert len(set(sequences)) == len(choices) == min(3, count)
            assert choices[:1] == model.choices(runner, module, 1, 7)
            # After the model's first choice, the core set follows in order.
            assert sequences[1:] == sorted(sequences[1:])
    assert trained.model.with_name("curve.png").is_file()


def test_the_same_recipe_makes_the_same_model(
    trained: coreset.Trained, folder: Path, tmp_path: Path
) -> None:
    if not IS_FULL:
        # A test above repeats a search, which takes long.
        for log in trained.model.parent.glob("*.jsonl"):
            shutil.copy(log, tmp_path)
    again = coreset.train(core_settings(folder, tmp_path))
    assert again.core == trained.core
    assert again.fitted is not None
    assert trained.fitted is not None
    assert again.fitted.checks == trained.fitted.checks


def test_clang_asks_the_model(
    trained: coreset.Trained, folder: Path, tmp_path: Path
) -> None:
    as_in_clang(Model(trained.model), folder, tmp_path, asked=1)


def test_looking_ahead(trained: coreset.Trained, folder: Path, tmp_path: Path) -> None:
    core = trained.model.with_name("core.json")
    wanted = replace(core_settings(folder, tmp_path / "out"), core=core, ahead=2)
    made = coreset.train(wanted)
    assert made.fitted is None
    assert made.foresight is not None
    # Models that have not seen the program need not beat the first sequence.
    assert made.foresight.best <= min(made.foresight.chosen, made.foresight.fixed)
    model = Model(made.model)
    assert model.task.lookahead == 2
    as_in_clang(model, folder, tmp_path, asked=2)
    options = EpisodeOptions(str(tmp_path / "actions.json"), model.features, "none", 1)
    with SequenceRunner(options) as runner:
        module = modules(folder)[0]
        choices = model.choices(runner, module, 3, 0)
        assert choices[:1] == model.choices(runner, module, 1, 7)
        assert choices[0] in ((0,), (1,))
        assert choices[1:] == [n for n in ((0,), (1,), (2,)) if n != choices[0]][:2]
    for ahead in 1, 99:
        with pytest.raises(InvalidArgument, match="expected 2 to"):
            coreset.train(replace(wanted, ahead=ahead))


def test_looking_ahead_survives_what_a_compiler_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {}

    class Compiler:
        """A compiler that crashes on the second sequence, which seems the best."""

        def __init__(self, options: EpisodeOptions, *, timeout: float) -> None:
            self.widths = options.widths
            found["timeout"] = timeout

        def reset(self, module: Path) -> Outcome:
            if module.name == "gone":
                raise ModuleFailed("it crashed, too")
            return Outcome({})

        def step(self, module: Path, sequence: list[int]) -> Outcome:
            if sequence == [1]:
                raise SequenceFailed("it crashed")
            rows = {n: np.ones(w, np.float32) for n, w in self.widths.items()}
            rows["histogram"] *= 5 - sequence[0]
            return Outcome(rows)

        def close(self) -> None: ...

    def export(network: Any, *_: Any, **__: Any) -> None:
        found["weights"] = network.weights

    monkeypatch.setattr(runners, "SequenceRunner", Compiler)
    monkeypatch.setattr(coreset, "export_model", export)
    monkeypatch.setattr(coreset, "_plot", lambda *_: None)
    core = CoreSet(ActionSpace.load("oz"), ((0,), (1,), (2,)), (1.0, 1.0, 1.0), 1)
    table = table_of([[90, 200, 80]] * 3, ["a", "b", "c"])
    table.modules = ["one", "two", "gone"]
    settings = replace(core_settings(tmp_path, tmp_path), ahead=3, timeout=7)
    foresight = coreset._train_to_look_ahead(
        settings, core, table, range(3), lambda stage, done, total: None
    )
    assert found["timeout"] == 7
    assert np.isfinite(found["weights"].numpy()).all()
    assert 0.8 < foresight.chosen < 0.9, "of the third but for what has no outcome"


def evaluated(
    found: corpus.Corpus, model: Model, core: CoreSet, **settings: Any
) -> tuple[Evaluation, dict[str, Way]]:
    """Returns an evaluation with two tries, and its ways by name."""
    wanted = EvaluationSettings(2, levels=(), **settings)
    result = evaluate(found, None, model, core, wanted)
    return result, {way.name: way for way in result.ways}


def as_in_clang(model: Model, folder: Path, tmp_path: Path, asked: int) -> None:
    """Expects that the model makes the same choice in stock clang as here."""
    plugin = find_llvm_plugin()
    assert plugin is not None, "scripts/build release"
    space = tmp_path / "actions.json"
    model.task.actions.save(space)
    options = EpisodeOptions(str(space), model.features, "text-size", 1)
    asking = (f"phase-ordering=onnx:{model.path}", "on-error=fatal", "print-statistics")
    flags = toolchain.plugin_flags(plugin, *asking)
    with SequenceRunner(options) as runner:
        for module in modules(folder)[:4]:
            (alone,) = model.choices(runner, module, 1, 0)
            assert isinstance(alone, tuple)
            (choice,) = alone
            expected = runner.run(module, [choice]).last
            target = tmp_path / "out.o"
            bitcode = ["-w", "-x", "ir", "-c", str(module), "-o", str(target)]
            _, said = toolchain.run([toolchain.CLANG, "-Oz", *flags, *bitcode])
            name = model.task.actions.actions[choice].name
            assert f"asked={asked} actions=1 [{name}]" in said.decode()
            # Ties in code generation may change sizes: see phase-ordering-training.md.
            size = text_size(target.read_bytes(), "out.o")
            assert size == pytest.approx(expected, rel=0.01)


def test_a_core_set_of_pipelines(of_pipelines: coreset.Trained, folder: Path) -> None:
    core, file = of_pipelines.core, of_pipelines.model.with_name("core.json")
    assert CoreSet.load(file) == core
    assert core.sequences == tuple((n,) for n in range(len(core.actions.actions)))
    assert len({action.pipeline for action in core.actions.actions}) == len(core.ratios)
    assert core.ratios[-1] < 1
    model = Model(of_pipelines.model)
    assert [action.pipeline for action in model.task.actions.actions] == [
        action.pipeline for action in core.actions.actions
    ]
    # The random sequences of the comparison consist of actions.
    found, oz = corpus.load(folder), ActionSpace.load("oz")
    result, ways = evaluated(found, model, core, draws=1, most=700, programs=["lua"])
    assert ways["one random sequence"].chosen == [
        pipeline_of(oz, random_sequences(15, found.folder / file, (2, 15), 0)[0])
        for file in result.files
    ]
    assert set(ways["best fixed sequence"].chosen) == {core.actions.actions[0].pipeline}


def test_a_model_for_a_core_set_that_there_is(
    of_pipelines: coreset.Trained, folder: Path, tmp_path: Path
) -> None:
    known = of_pipelines.core
    there = replace(known, sequences=known.sequences[::-1])
    there.save(tmp_path / "there.json")
    said = run_cli(
        *("train", "phase-ordering-coreset", tmp_path / "there.json"),
        *("--corpus", folder, "--out", tmp_path / "out", "--jobs", "2"),
    )
    assert "Searched" not in said
    assert "Optimistic" in " ".join(said.split())
    made = CoreSet.load(tmp_path / "out" / "core.json")
    assert replace(made, ratios=()) == replace(there, ratios=())
    # The order changes the first ratio, but not the last.
    assert made.ratios[0] >= known.ratios[0]
    assert made.ratios[-1] == pytest.approx(known.ratios[-1])
    space = Model(tmp_path / "out" / "model.onnx").task.actions
    expected = [pipeline_of(there.actions, order) for order in there.sequences]
    assert [action.pipeline for action in space.actions] == expected


def test_a_search_begins_with_a_core_set(
    of_pipelines: coreset.Trained,
    trained: coreset.Trained,
    folder: Path,
    tmp_path: Path,
) -> None:
    known = of_pipelines.core.actions.actions
    of_pipelines.core.save(tmp_path / "there.json")
    arguments = [
        *("search", "phase-ordering-pipelines", "--corpus", folder),
        *("--joint-modules", "2", "--joint-evaluations", "8", "--together", "2"),
        *("--beside-evaluations", "2", "--searched", "0", "--jobs", "2"),
        *("--out", tmp_path / "out", "--max-instructions", SMALL),
    ]
    assert "Searched" not in run_cli(*arguments, "--core", tmp_path / "there.json")
    pool = ActionSpace.load(str(tmp_path / "out" / "pool.json")).actions
    assert {action.pipeline for action in known} <= {one.pipeline for one in pool}
    assert pool[0].name == "-Oz"
    # The result is at least as good as the given core set.
    made = CoreSet.load(tmp_path / "out" / "core.json")
    assert made.ratios[0] <= of_pipelines.core.ratios[0]
    trained.core.save(tmp_path / "other.json")
    with pytest.raises(InvalidArgument, match="expected a core set of whole ones"):
        run_cli(*arguments, "--core", tmp_path / "other.json")


POLICY = ("train", "phase-ordering")
ACTIONS = ("search", "phase-ordering-actions")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((*POLICY, "--engine", "best"), "no algorithm 'ppo' of 'best'"),
        ((*POLICY, "--algo", "appo"), "rllib: ppo, dqn, appo"),
        ((*POLICY, "--hidden", "12,x"), "--hidden: expected sizes of layers"),
        ((*POLICY, "--address", "here:1"), "for --engine rllib"),
        ((*POLICY, "--resume", "--tune", "2"), "leave that"),
        ((*POLICY, "--observation", "histogram,colour"), "found 'colour'"),
        ((*POLICY, "--observation", "embedding"), "need each other"),
        ((*POLICY, "--actions", "nothing"), "action space 'nothing'"),
        ((*ACTIONS, "--observation", "embedding"), "need each other"),
        ((*ACTIONS, "--observation", "step"), "before the first action"),
        ((*ACTIONS, "--observation", "counts", "--ahead", "2"), "leave it"),
        ((*ACTIONS, "--actions", "nothing"), "action space 'nothing'"),
    ],
)
def test_what_is_asked_for_is_checked_first(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    folders = ("--corpus", tmp_path / "none", "--out", tmp_path / "out")
    with pytest.raises(InvalidArgument, match=problem):
        run_cli(*arguments, *folders)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((*POLICY, "--count", "50"), "--count"),
        ((*ACTIONS, "--learning-rate", "0.1"), "--learning-rate"),
        ((*ACTIONS, "--joint-modules", "9"), "--joint-modules"),
        (("search", "phase-ordering-pipelines", "--episode", "9"), "--episode"),
    ],
)
def test_what_a_command_has_no_use_for_is_none_of_its_options(
    arguments: tuple[str, ...], option: str
) -> None:
    said = run_cli(*arguments, status=2)
    assert f"No such option: {option}" in " ".join(said.split())


def test_packages_are_looked_for_first() -> None:
    need("this", ("json", "numpy"))
    with pytest.raises(Unsupported, match=r"no_such_p.*'\./optimizations\[train\]'"):
        need("this", ("json", "no_such_package"))


# Policies


def curve_of(experiment: Experiment) -> Curve:
    """Checks the files of a training, and returns its curve."""
    out = experiment.settings.out
    curve = Curve(OPTIMIZATION.metric).load(out / "curve.csv")
    assert curve.steps
    assert all(0.5 < ratio < 5 for ratio in curve.values)
    for name in ("curve.png", "settings.json", "tensorboard"):
        assert (out / name).exists(), name
    return curve


@pytest.mark.parametrize("algo", ["ppo", "a2c", "dqn"])
def test_sb3_trains_and_exports(experiment: Experiment, algo: str) -> None:
    experiment = experiment.changed(algo=algo, workers=2)
    exported = policy.train(experiment)[MODEL]
    curve_of(experiment)
    model = Model(exported.path)
    assert model.task.steps == 4
    assert exported.decide == f"argmax:{'q_values' if algo == 'dqn' else 'logits'}"
    about = json.loads(exported.path.with_name("settings.json").read_text())
    assert about["algo"] == algo
    options = EpisodeOptions(observation=model.features, reward="none", steps=4)
    with SequenceRunner(options) as runner:
        module = modules(experiment.environment.corpus)[0]
        sequences = model.choices(runner, module, 3, seed=1)
        assert sequences == model.choices(runner, module, 3, seed=1)
    for sequence in sequences:
        assert not isinstance(sequence, SequenceFailed)
        assert len(sequence) == 4


def test_with_one_worker_the_same_seed_gives_the_same_curve(
    experiment: Experiment, tmp_path: Path
) -> None:
    curves = []
    for number, seed in enumerate((1, 1, 2)):
        wanted = experiment.changed(seed=seed, out=tmp_path / str(number), steps=64)
        curve = policy.learn(wanted).curve
        curves.append((curve.steps, curve.returns, curve.values))
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_training_goes_on_where_it_was(experiment: Experiment, algo: str) -> None:
    experiment = experiment.changed(algo=algo)
    with pytest.raises(InvalidArgument, match="to resume from"):
        policy.learn(experiment, resume=True)
    policy.learn(experiment.changed(steps=64))
    curve = policy.learn(experiment.changed(steps=128), resume=True).curve
    assert curve.steps[0] <= 8
    assert curve.steps == sorted(set(curve.steps))
    assert curve.steps[-1] >= 124


def test_a_training_goes_on_with_its_own_settings(experiment: Experiment) -> None:
    experiment.save()
    experiment.changed(steps=999, every=9).check()
    replace(experiment, environment=replace(experiment.environment)).check()
    other = replace(
        experiment.changed(seed=5),
        environment=replace(experiment.environment, episode=9),
    )
    with pytest.raises(InvalidArgument, match="seed: 0 then, 5 now") as caught:
        policy.learn(other, resume=True)
    assert "environment" in str(caught.value)
    assert "steps: 96" not in str(caught.value)
    # Replace the settings that `--tune` has found.
    tuned = experiment.changed(hidden="7,7", gamma=0.5, learning_rate=1e-3)
    tuned.save()
    assert experiment.as_begun(["hidden", "gamma", "learning_rate"]) == tuned


def test_a_training_remembers_its_modules(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = experiment.make_env()
    files = [file for program in env.programs for file in program]
    assert len(files) > 8
    assert env.options.kept_programs == len(files)
    assert f"-mlbridge-phase-ordering-programs={len(files)}" in env.options.command()
    size = sum(file.stat().st_size for file in files)
    monkeypatch.setattr(environment, "KEPT_BITCODE", size // 4)
    assert experiment.make_env().options.kept_programs == len(files) // 4
    three = replace(experiment.environment, kept_programs=3)
    env = replace(experiment, environment=three).make_env()
    assert env.options.kept_programs == 3


@pytest.mark.parametrize(
    ("engine", "algo", "actions"),
    [
        ("rllib", "ppo", spaces.Box(0, 1, (2,))),
        ("sb3", "ars", spaces.Box(0, 1, (2,))),
        ("sb3", "ars", spaces.MultiDiscrete([2, 3])),
    ],
)
def test_what_could_not_be_exported_is_not_learned(
    tmp_path: Path, engine: str, algo: str, actions: spaces.Space[Any]
) -> None:
    def make_env(settings: NoSettings, worker: int) -> CompilerEnv:
        return CompilerEnv(["none"], observation_space=seen, action_space=actions)

    seen = spaces.Box(0, 1, (3,))
    settings = TrainingSettings(tmp_path, engine=engine, algo=algo, steps=1)
    wanted = Experiment(Optimization("tea", "", make_env), NoSettings(), settings)
    refused = f"{algo} of {engine} .* --engine sb3 --algo ppo or a2c"
    with pytest.raises(Unsupported, match=refused):
        wanted.networks(seen, actions)
    if engine == "sb3":
        with pytest.raises(Unsupported, match=refused):
            policy.train(wanted)
    wanted.changed(engine="sb3", algo="a2c").networks(seen, actions)


@pytest.fixture
def rllib() -> Any:
    pytest.importorskip("ray", reason="needs scripts/make-venv train")
    return import_module("mlbridge_optimizations.training.rllib")


@pytest.fixture
def ray_here(rllib: Any) -> Iterator[None]:
    with rllib.cluster(3, None):
        yield


RAY = pytest.mark.filterwarnings("ignore")
"""Ray and RLlib emit warnings about themselves."""


# test_training.py checks that RLlib learns, with the example's compiler.
@RAY
@FULL
@pytest.mark.parametrize("algo", ["ppo", "dqn", "appo"])
def test_rllib_makes_a_model(experiment: Experiment, ray_here: None, algo: str) -> None:
    experiment = experiment.changed(engine="rllib", algo=algo, steps=64)
    exported = policy.train(experiment)[MODEL]
    curve = curve_of(experiment)
    assert Model(exported.path).task.steps == 4
    # Training resumes, and ignores a checkpoint whose writing was interrupted.
    out = experiment.settings.out
    for is_cut_off in (False, True):
        if is_cut_off:
            (out / "checkpoint.new").mkdir()
            (out / "checkpoint").rename(out / "checkpoint.old")
        more = experiment.changed(steps=curve.steps[-1] + 16)
        longer = policy.learn(more, resume=True).curve
        assert longer.steps[: len(curve.steps)] == curve.steps
        assert longer.steps[-1] > curve.steps[-1]
        curve = longer
    assert sorted(path.name for path in out.glob("checkpoint*")) == ["checkpoint"]


def learn_by(rllib: Any, algorithm: Any, experiment: Experiment, steps: int) -> None:
    """Runs our loop around RLlib with a fake algorithm."""
    settings = experiment.settings
    checkpoint = rllib._Checkpoint(settings.out / "checkpoint")
    rllib._learn(algorithm, settings, Curve(), steps, checkpoint, lambda *_: None)


@pytest.mark.parametrize("hangs", [True, False])
def test_rllib_gives_up_where_no_action_comes(
    experiment: Experiment, rllib: Any, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    class Stalled:
        """Acts like RLlib with hung compilers: waits, or returns the same count."""

        ended = threading.Event()

        def train(self) -> dict[str, Any]:
            if hangs:
                self.ended.wait(60)
            return {"env_runners": {"num_env_steps_sampled_lifetime": 7}}

    monkeypatch.setattr(rllib, "STALLED", 0.3)
    start = time.monotonic()
    with pytest.raises(Timeout, match="after 7 actions: no compiler gets as far"):
        learn_by(rllib, Stalled(), experiment, 7)
    assert time.monotonic() - start < 30
    Stalled.ended.set()


def test_an_error_in_an_iteration_is_raised(experiment: Experiment, rllib: Any) -> None:
    broken = Mock(train=Mock(side_effect=TimeoutError("of its own")))
    with pytest.raises(TimeoutError, match="of its own"):
        learn_by(rllib, broken, experiment, 0)


@FULL
@RAY
def test_rllib_on_a_cluster_of_two_nodes(experiment: Experiment) -> None:
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    nodes: Any = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20},
    )
    try:
        nodes.add_node(num_cpus=2, object_store_memory=100 << 20)
        wanted = experiment.changed(engine="rllib", algo="ppo", workers=2)
        policy.learn(wanted, address=nodes.address)
        curve_of(wanted)
    finally:
        nodes.shutdown()


# Evaluation


def test_statistics_are_by_program_and_paired() -> None:
    draw = np.random.default_rng(0)
    oz = draw.uniform(1_000, 100_000, 40).round()
    programs = ["a"] * 30 + ["b"] * 10
    noise = draw.uniform(0.9, 1.05, 40)
    ways = [
        Way("model, alone", 1, 0, oz * noise * 0.99),
        Way("best fixed sequence", 1, 0, oz * noise),
        Way("one random sequence", 1, 0, oz * draw.permutation(noise)),
    ]
    statistics = Statistics(Evaluation(["x"] * 40, programs, oz, ways))
    ratio = {p: 0.99 * (oz * noise)[s].sum() / oz[s].sum() for p, s in SLICES.items()}
    assert statistics.by_program(ways[0]) == pytest.approx(ratio)
    interval = statistics.interval(ways[0])
    assert interval.mean == pytest.approx(math.sqrt(ratio["a"] * ratio["b"]))
    assert interval.low < interval.mean < interval.high
    # The ways differ by 1 %, which only the paired comparison shows.
    assert interval.high > statistics.interval(ways[1]).low
    assert statistics.difference(ways[0], ways[1]) == pytest.approx((0.99, 0.99))
    said = statistics.pairs()
    assert said[0].endswith(", smaller")
    assert said[1].endswith("not clearly different")


SLICES = {"a": slice(0, 30), "b": slice(30, 40)}


def test_the_evaluation_on_the_command_line(
    trained: coreset.Trained, folder: Path, tmp_path: Path
) -> None:
    most = SMALL if IS_FULL else 1000
    out, plot = tmp_path / "found.json", tmp_path / "found.png"
    run_cli(
        *("evaluate", "phase-ordering", trained.model, "--corpus", folder),
        *("--split", "training", "--max-instructions", most, "--tries", "3"),
        *("--json", out, "--plot", plot, "--jobs", "2"),
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(out.read_text())
    assert found["failures"] == []
    root = corpus.load(folder).folder
    assert found["oz"] == [oz_size(root / file) for file in found["files"]]
    ways = {way["name"]: way for way in found["ways"]}
    assert ways["model, alone"]["objects_emitted_to_decide"] == 0
    alone = {
        "model, alone": "model, best of 3",
        "best fixed sequence": "3 fixed sequences",
        "one random sequence": "random, best of 3",
    }
    for name in alone.values():
        assert ways[name]["objects_emitted_to_decide"] == 4
        # -Oz is one of the candidates.
        pairs = zip(ways[name]["sizes"], found["oz"], strict=True)
        assert all(size <= oz for size, oz in pairs)
    # The best of three is at most as large as the first alone.
    for one, several in alone.items():
        pairs = zip(ways[one]["sizes"], ways[several]["sizes"], strict=True)
        assert all(few >= many for few, many in pairs)
    assert ways["clang -O2"]["geomean"]["mean"] > 1.1
    inside = ways["clang -Oz, in the plug-in"]["geomean"]["mean"]
    assert inside == pytest.approx(1, abs=0.01)
    # The sizes equal those from which the core set was chosen, also on larger modules.
    lines = records(trained.model.with_name("table.jsonl"))
    table = {Path(line["module"]): line for line in lines}
    assert len(table) > len(found["files"])
    pipeline = trained.core.actions.joined(trained.core.sequences[0])
    name = hashlib.sha256(pipeline.encode()).hexdigest()[:24]
    assert ways["best fixed sequence"]["sizes"] == [
        table[root / file]["found"][name] for file in found["files"]
    ]


class _Crashing(Model):
    """A policy with given actions, some of which crash the compiler."""

    def __init__(self, space: ActionSpace, taken: tuple[int, ...]) -> None:
        self.task = Task(space, len(taken), stop=False, observation=("step",))
        self.features = ("step",)
        self.taken = taken

    def scores(self, features: dict[str, Any]) -> NDArray[np.float64]:
        action = self.taken[int(features["step"][0])]
        return np.where(np.arange(len(self.task.actions.actions)) == action, 50.0, 0.0)


@pytest.mark.usefixtures("quick_runs")
def test_a_rollout_that_crashes_is_oz(trained: coreset.Trained, whole: Path) -> None:
    found, base = corpus.load(whole), trained.core.actions
    crash = Action("crash", "trigger-crash-module")
    space = replace(base, actions=(*base.actions[:3], crash))
    core = CoreSet(space, ((0, 1, 2), (3,)), (1.0, 1.0), 2)
    programs = ["bzip2", "lua"] if IS_FULL else ["bzip2"]
    settings: Any = {"draws": 2, "most": 5000, "programs": programs}
    result, ways = evaluated(found, _Crashing(space, (0, 3)), core, **settings)
    assert len(result.files) > 2
    for name in ("model, alone", "model, best of 2"):
        assert ways[name].chosen == [None] * len(result.files)
        np.testing.assert_array_equal(ways[name].sizes, result.oz)
    # The fixed sequence that does not crash counts if it beats -Oz.
    fixed = {None, pipeline_of(space, (0, 1, 2))}
    assert set(ways["2 fixed sequences"].chosen) <= fixed
    assert {failure.kind for failure in result.failures} == {"crash"}
    assert {failure.file for failure in result.failures} == set(result.files)
    rolled = pipeline_of(space, (0, 3))
    assert rolled in {failure.pipeline for failure in result.failures}
    # Programs that fell back to -Oz are not compiled by our pipeline.
    runs = run_programs(found, result, ways["model, alone"], space.prologue, repeat=1)
    assert set(runs) == set(result.programs)
    assert all(run.passed for both in runs.values() for run in both)


def pipeline_of(space: ActionSpace, order: tuple[int, ...]) -> str:
    return ",".join(space.actions[action].pipeline for action in order)


def test_without_a_core_set_only_chance_is_compared_with(
    trained: coreset.Trained, folder: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "model.onnx", tmp_path / "found.json"
    model.write_bytes(trained.model.read_bytes())
    arguments = (
        *("evaluate", "phase-ordering", model, "--corpus", folder),
        *("--program", "lua", "--max-instructions", "700", "--tries", "2"),
        *("--json", out),
    )
    assert "core.json" in run_cli(*arguments)
    found = json.loads(out.read_text())
    assert set(found["programs"]) == {"lua"}
    assert [way["name"] for way in found["ways"] if "clang" not in way["name"]] == [
        *("model, alone", "one random sequence"),
        *("model, best of 2", "random, best of 2"),
    ]
    assert [way["draws"] for way in found["ways"]][:2] == [1, 5]
    for wrong in (("--core", tmp_path / "no.json"), ("--program", "perl")):
        with pytest.raises(InvalidArgument):
            run_cli(*arguments, *wrong)


def test_a_program_that_is_left_out_is_not_seen(folder: Path, tmp_path: Path) -> None:
    env = TrainingEnv(corpus=folder, leave_out=["bzip2"])
    assert {path.parent.name for files in env.programs for path in files} == {"lua"}
    wanted = replace(
        core_settings(folder, tmp_path),
        leave_out=["lua"],
        search=SearchSettings(evaluations=2, length=2),
        searched=1,
        linked=True,
    )
    made = coreset.train(wanted)
    seen = {}
    for name in "search.jsonl", "table.jsonl":
        seen[name] = [Path(line["module"]) for line in records(tmp_path / name)]
        assert {program_of(path) for path in seen[name]} == {"bzip2"}
    # Sequences are tried on the linked program, which is not searched.
    linked = corpus.load(folder).folder / "linked" / "bzip2.bc"
    assert linked in seen["table.jsonl"]
    assert linked not in seen["search.jsonl"]
    # There is only one program, so cross-validation is impossible.
    assert made.fitted is not None
    assert made.fitted.check is None
    with pytest.raises(InvalidArgument, match="no program 'perl'"):
        coreset.train(replace(wanted, leave_out=["perl"]))


@pytest.mark.usefixtures("quick_runs")
def test_programs_do_what_they_did(trained: coreset.Trained, whole: Path) -> None:
    said = run_cli(
        *("evaluate", "phase-ordering", trained.model, "--corpus", whole),
        *("--split", "training", "--max-instructions", SMALL, "--tries", "1"),
        *("--rounds", "1", "--program", "lua" if IS_FULL else "bzip2"),
    )
    assert "User time" in said


def test_other_models_are_refused(tmp_path: Path) -> None:
    onnx.save(aot_models.mlp(), tmp_path / "other.onnx")
    with pytest.raises(SchemaMismatch, match="mlbridge train phase-ordering"):
        Model(tmp_path / "other.onnx")
