# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the training on core sets of sequences and of pipelines, at small scale."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from core_sets import (
    SMALL,
    core_settings,
    evaluated,
    modules,
    pipeline_of,
    records,
    table_of,
)
from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs.machine_code import text_size
from mlbridge.envs.session import Outcome
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations import corpus
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.phase_ordering.environment import runners
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace
from mlbridge_optimizations.phase_ordering.environment.compiler import (
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.environment.environment import TrainingEnv
from mlbridge_optimizations.phase_ordering.evaluation.evaluate import random_sequences
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet
from mlbridge_optimizations.phase_ordering.model.model import Model
from mlbridge_optimizations.phase_ordering.search import coreset
from mlbridge_optimizations.phase_ordering.search.evolve import EvolutionSettings
from mlbridge_optimizations.phase_ordering.search.search import SearchSettings
from programs import IS_FULL, run_cli


@pytest.fixture(scope="module")
def of_pipelines(
    small_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> coreset.Trained:
    settings = core_settings(small_corpus, tmp_path_factory.mktemp("pipelines"))
    evolution = EvolutionSettings(
        joint=12, together=2, beside=4, modules=2, race=1, evaluations=12, batch=6
    )
    return coreset.train(replace(settings, evolution=evolution))


def test_the_recipe_makes_a_model_that_picks_sequences(
    trained_core: coreset.Trained, small_corpus: Path
) -> None:
    assert trained_core.failures == []
    assert list(trained_core.core.ratios) == sorted(
        trained_core.core.ratios, reverse=True
    )
    model = Model(trained_core.model)
    assert (model.task.steps, model.features) == (1, ("histogram", "counts"))
    count = len(trained_core.core.sequences)
    assert len(model.task.actions.actions) == count
    assert CoreSet.load(trained_core.model.with_name("core.json")) == trained_core.core
    assert trained_core.core.length == 8
    options = EpisodeOptions(observation=model.features, reward="none")
    with SequenceRunner(options) as runner:
        for module in modules(small_corpus)[:3]:
            choices = model.choices(runner, module, 3, 0)
            sequences = [choice for choice in choices if isinstance(choice, tuple)]
            assert len(set(sequences)) == len(choices) == min(3, count)
            assert choices[:1] == model.choices(runner, module, 1, 7)
            # After the model's first choice, the core set follows in order.
            assert sequences[1:] == sorted(sequences[1:])
    assert trained_core.model.with_name("curve.png").is_file()


def test_the_same_recipe_makes_the_same_model(
    trained_core: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    if not IS_FULL:
        # A test above repeats a search, which takes long.
        for log in trained_core.model.parent.glob("*.jsonl"):
            shutil.copy(log, tmp_path)
    again = coreset.train(core_settings(small_corpus, tmp_path))
    assert again.core == trained_core.core
    assert again.fitted is not None
    assert trained_core.fitted is not None
    assert again.fitted.checks == trained_core.fitted.checks


def test_clang_asks_the_model(
    trained_core: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    as_in_clang(Model(trained_core.model), small_corpus, tmp_path, asked=1)


def test_looking_ahead(
    trained_core: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    core = trained_core.model.with_name("core.json")
    wanted = replace(core_settings(small_corpus, tmp_path / "out"), core=core, ahead=2)
    made = coreset.train(wanted)
    assert made.fitted is None
    assert made.foresight is not None
    # Models that have not seen the program need not beat the first sequence.
    assert made.foresight.best <= min(made.foresight.chosen, made.foresight.fixed)
    model = Model(made.model)
    assert model.task.lookahead == 2
    as_in_clang(model, small_corpus, tmp_path, asked=2)
    options = EpisodeOptions(str(tmp_path / "actions.json"), model.features, "none", 1)
    with SequenceRunner(options) as runner:
        module = modules(small_corpus)[0]
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


def as_in_clang(model: Model, small_corpus: Path, tmp_path: Path, asked: int) -> None:
    """Expects the same choice of the model in stock clang as in this process."""
    plugin = find_llvm_plugin()
    assert plugin is not None, "scripts/build release"
    space = tmp_path / "actions.json"
    model.task.actions.save(space)
    options = EpisodeOptions(str(space), model.features, "text-size", 1)
    asking = (f"phase-ordering=onnx:{model.path}", "on-error=fatal", "print-statistics")
    flags = toolchain.plugin_flags(plugin, *asking)
    with SequenceRunner(options) as runner:
        for module in modules(small_corpus)[:4]:
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


def test_a_core_set_of_pipelines(
    of_pipelines: coreset.Trained, small_corpus: Path
) -> None:
    core, file = of_pipelines.core, of_pipelines.model.with_name("core.json")
    assert CoreSet.load(file) == core
    assert core.sequences == tuple((n,) for n in range(len(core.actions.actions)))
    assert len({action.pipeline for action in core.actions.actions}) == len(core.ratios)
    assert core.ratios[-1] < 1
    model = Model(of_pipelines.model)
    assert [action.pipeline for action in model.task.actions.actions] == [
        action.pipeline for action in core.actions.actions
    ]
    # The baseline "one random sequence" draws actions of `oz`, not sequences of the
    # core set.
    found, oz = corpus.load(small_corpus), ActionSpace.load("oz")
    result, ways = evaluated(found, model, core, draws=1, most=700, programs=["lua"])
    assert ways["one random sequence"].chosen == [
        pipeline_of(oz, random_sequences(15, found.folder / file, (2, 15), 0)[0])
        for file in result.files
    ]
    assert set(ways["best fixed sequence"].chosen) == {core.actions.actions[0].pipeline}


def test_a_model_for_a_core_set_that_there_is(
    of_pipelines: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    known = of_pipelines.core
    there = replace(known, sequences=known.sequences[::-1])
    there.save(tmp_path / "there.json")
    said = run_cli(
        *("train", "phase-ordering-coreset", tmp_path / "there.json"),
        *("--corpus", small_corpus, "--out", tmp_path / "out", "--jobs", "2"),
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
    trained_core: coreset.Trained,
    small_corpus: Path,
    tmp_path: Path,
) -> None:
    known = of_pipelines.core.actions.actions
    of_pipelines.core.save(tmp_path / "there.json")
    arguments = [
        *("search", "phase-ordering-pipelines", "--corpus", small_corpus),
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
    trained_core.core.save(tmp_path / "other.json")
    with pytest.raises(InvalidArgument, match="expected a core set of whole ones"):
        run_cli(*arguments, "--core", tmp_path / "other.json")


def test_a_program_that_is_left_out_is_not_seen(
    small_corpus: Path, tmp_path: Path
) -> None:
    env = TrainingEnv(corpus=small_corpus, leave_out=["bzip2"])
    assert {path.parent.name for files in env.programs for path in files} == {"lua"}
    wanted = replace(
        core_settings(small_corpus, tmp_path),
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
    linked = corpus.load(small_corpus).folder / "linked" / "bzip2.bc"
    assert linked in seen["table.jsonl"]
    assert linked not in seen["search.jsonl"]
    # There is only one program, so cross-validation is impossible.
    assert made.fitted is not None
    assert made.fitted.check is None
    with pytest.raises(InvalidArgument, match="no program 'perl'"):
        coreset.train(replace(wanted, leave_out=["perl"]))
