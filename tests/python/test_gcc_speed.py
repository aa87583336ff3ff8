# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random policies of gcc's plug-in, and models that learn from a search."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from mlbridge import ModelRunner
from mlbridge.errors import InvalidArgument, Malformed, ModelError
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Module, Program
from mlbridge_optimizations.corpus.recipes import RECIPES
from mlbridge_optimizations.corpus.sources import unpack
from mlbridge_optimizations.gcc_speed.climbing import climb
from mlbridge_optimizations.gcc_speed.evaluate import STOCK, Ratio, best_fixed, mean
from mlbridge_optimizations.gcc_speed.fuzz import fuzz
from mlbridge_optimizations.gcc_speed.measure import (
    Build,
    Counted,
    names_of,
    read_counts,
)
from mlbridge_optimizations.gcc_speed.models import served
from mlbridge_optimizations.gcc_speed.search import (
    CALL_INSTRUCTIONS,
    Key,
    Searched,
    Searcher,
    Site,
    best_choices,
    search,
    search_loops,
    unroll_factor,
)
from programs import BUILD, FULL, IS_FULL, ROOT, run_cli

PLUGIN = BUILD / "compilers/gcc/mlbridge.so"

needs_plugin = pytest.mark.skipif(
    not PLUGIN.exists(), reason="the gcc plug-in is not built: needs gcc-12-plugin-dev"
)
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed"
)


def corpus_of(names: list[str], folder: Path) -> Corpus:
    """A corpus of programs whose recipes have no commands, without their bitcode."""
    corpus = Corpus(folder, "")
    for name, found in unpack(names, ROOT / "build/workloads").items():
        modules = tuple(
            Module("", str(source.relative_to(found.folder)), 1, 1, "")
            for source in found.sources
            if source.is_relative_to(found.folder)
        )
        flags = (*toolchain.UNOPTIMISED, *found.flags)
        about = (name, name, found.version, "training", flags, RECIPES[name].libraries)
        linked = Module("", "", 1, 1, "")
        corpus.programs[name] = Program(*about, str(found.folder), modules, linked, "")
    return corpus


@needs_plugin
def test_random_policies(tmp_path: Path) -> None:
    """No policy makes gcc fail or changes what a program prints."""
    names = ["bzip2", "lua", "minisat", "zlib"] if IS_FULL else ["bzip2"]
    corpus = corpus_of(names, tmp_path)
    rounds = list(fuzz(corpus, 100 if IS_FULL else 4, real=names, plugin=PLUGIN))
    assert [one.problem for one in rounds if one.problem] == []
    assert sum(one.requests for one in rounds) > 100
    again = list(fuzz(corpus, 1, real=names, plugin=PLUGIN))
    assert again == rounds[:1]


def test_the_split() -> None:
    names = {split: names_of(split) for split in ("training", "held-out")}
    assert len(names["training"]) == 20
    assert len(names["held-out"]) == 10
    assert {"gawk", "sqlite3", "zstd"} < set(names["held-out"])


CALLGRIND = """
events: Ir
fn=(1) main
10 5
cfn=(2) work'2
calls=3 20
+2 900

fn=(2)
20 900

totals: 905
"""


def test_counts() -> None:
    found = read_counts([CALLGRIND])
    assert found.instructions == 905
    assert found.functions == {"main": 5, "work": 900}
    assert found.calls == {("main", "work"): 3}


def site(number: int, size: int, frequency: float, gain: float | None) -> Site:
    features = dict.fromkeys(
        ("callee_basic_block_count", "callee_users", "caller_users", "call_time"), 2.0
    )
    features |= dict.fromkeys(("nr_ctant_params", "loop_depth", "callee_time"), 1.0)
    features |= dict.fromkeys(("callee_loop_depth", "callee_is_inline"), 0.0)
    features |= {"callee_is_local": 1.0, "caller_size": 100.0, "frequency": frequency}
    features |= {"callee_size": float(size), "cost_estimate": size - 5.0}
    key = "a.c", "inline", number
    if gain is None:
        return Site(key, ("f", "g"), features)
    calls = gain * 10**6 / CALL_INSTRUCTIONS
    return Site(key, ("f", "g"), features, calls, {1: gain}, {1: 6 * size})


def loop(number: int, frequency: float, **features: float) -> Site:
    known = dict.fromkeys(("loads", "stores", "calls"), 0.0)
    known |= {"instructions": 10.0, "blocks": 2.0, "depth": 1.0, "iterations": -1.0}
    known |= {"has_trip_count": 1.0, "frequency": frequency}
    return Site(("a.c", "unroll", number), (f"f{number}",), known | features)


def test_the_best_choices_fit() -> None:
    sites = [site(0, 10, 1.0, 0.01), site(1, 10, 1.0, 0.02), site(2, 1, 1.0, -0.5)]
    assert best_choices(sites, 1000) == {one.key: 1 for one in sites[:2]}
    assert best_choices(sites, 70) == {sites[1].key: 1}
    assert best_choices(sites, 10) == {}


class KnownProgram(Searcher):
    """A program whose instructions and bytes are known for all choices."""

    def __init__(self, gains: dict[Key, dict[int, int]]) -> None:
        self.gains = gains
        names = [f"f{number}" for number in range(len(gains))]
        self.hot = dict.fromkeys(names, 0.1)
        self.counts, self.sizes = dict.fromkeys(names, 1000), dict.fromkeys(names, 100)
        self.base = Counted(1000 * len(names), self.counts)
        self.text = 100 * len(names)
        self.tried = 0

    def measured(self, choices: Mapping[Key, int]) -> tuple[dict[str, int], int]:
        counts = dict(self.counts)
        for key, choice in choices.items():
            counts[f"f{key[2]}"] -= self.gains[key].get(choice, 0)
        return counts, self.text

    def try_choices(self, choices: Mapping[Key, int]) -> tuple[Counted, Path]:
        self.tried += 1
        counts, _ = self.measured(choices)
        return Counted(sum(counts.values()), counts), Path()

    def ratios(self, choices: Mapping[Key, int]) -> tuple[float, float]:
        counts, text = self.measured(choices)
        return sum(counts.values()) / self.base.instructions, text / self.text


def test_hill_climbing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search finds each loop's best factor, whatever factors other loops have."""
    keys: list[Key] = [("a.c", "unroll", number) for number in range(12)]
    gains = {key: {2: 10, 4: 5 * key[2], 8: -10} for key in keys}
    program = KnownProgram(gains)
    sizes = dict(program.sizes)
    monkeypatch.setattr(
        "mlbridge_optimizations.gcc_speed.climbing.function_sizes", lambda _: sizes
    )
    sites = [Site(key, (f"f{key[2]}",), {}) for key in keys]
    found = Searched("p", program.base.instructions, program.text, sites)
    choices = climb(program, found, 60)
    assert choices == {key: 4 if key[2] > 2 else 2 for key in keys}
    assert found.ratio == program.ratios(choices)[0] < 1
    assert program.tried <= 61
    assert all(one.gains for one in sites)


def test_the_best_fixed_setting() -> None:
    found = [Ratio("a", "-O3", 0.8, 1.2), Ratio("a", "unroll 4", 0.97, 1.02)]
    found += [Ratio("a", "unroll 8", 0.98, 1.01), Ratio("a", "model: both", 0.5, 1.0)]
    assert best_fixed(found) == "unroll 4"
    assert best_fixed(found[:1]) == STOCK


def test_means_of_programs_with_a_time() -> None:
    found = [Ratio("a", "-O3", 0.8, 1.2, 0.5), Ratio("b", "-O3", 0.8, 1.2, 0.0)]
    assert mean(found, "-O3", "time") == pytest.approx(0.5)
    assert math.isnan(mean(found[1:], "-O3", "time"))


@needs_plugin
def test_models_that_fail_are_not_measured(tmp_path: Path) -> None:
    """Otherwise, stock gcc's code would count as the model's code."""
    build = Build(corpus_of(["zlib"], tmp_path).program("zlib"), tmp_path)
    flags = [f"-fplugin={PLUGIN}", f"-fplugin-arg-mlbridge-inline=onnx:{tmp_path}/gone"]
    with pytest.raises(ModelError, match=r"trees\.c: .*gcc decides"):
        build.compile("trees.c", tmp_path / "x.o", flags)


SITE = {
    "key": ["a.c", "unroll", 0],
    "functions": ["f"],
    "features": dict.fromkeys(
        (
            *("instructions", "blocks", "depth", "iterations", "loads", "stores"),
            *("calls", "has_trip_count", "frequency"),
        ),
        1.0,
    ),
    "calls": 0,
    "gains": {"4": 0.1},
    "growths": {"4": 20},
}
SEARCH = {"program": "a", "instructions": 10, "text": 10, "sites": [SITE]}
"""A line of a file of searches."""


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(SEARCH)[:-9],
        "[1, 2]",
        "",
        json.dumps({"program": "a"}),
        json.dumps({**SEARCH, "size_": 1}),
        json.dumps({**SEARCH, "sites": [{"key": ["a.c", "unroll", 0]}]}),
        json.dumps({**SEARCH, "sites": [{**SITE, "features": {"depth": 1.0}}]}),
        json.dumps({**SEARCH, "sites": [{**SITE, "calls": float("inf")}]}),
        json.dumps({**SEARCH, "sites": [{**SITE, "gains": {"four": 0.1}}]}),
        json.dumps({**SEARCH, "sites": [{**SITE, "gains": {"4": float("nan")}}]}),
        json.dumps({**SEARCH, "sites": [{**SITE, "key": ["a.c", "other", 0]}]}),
        b"\xff",
    ],
)
def test_damaged_searches(line: str | bytes, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    damaged = line if isinstance(line, bytes) else line.encode()
    file = tmp_path / "training-searches.jsonl"
    file.write_bytes(json.dumps(SEARCH).encode() + b"\n" + damaged + b"\n")
    with pytest.raises(Malformed, match=r"training-searches\.jsonl, line 2: "):
        run_cli("train", "gcc-speed", "--folder", tmp_path)


def test_the_commands(tmp_path: Path) -> None:
    for command, option in (
        ("search gcc-speed-decisions", "--compiles"),
        ("train gcc-speed", "--price"),
        ("evaluate gcc-speed", "--rounds"),
    ):
        assert option in run_cli(*command.split(), "--help")
    folder = ["--folder", tmp_path]
    with pytest.raises(InvalidArgument, match="expected searches, found none"):
        run_cli("train", "gcc-speed", *folder)
    with pytest.raises(
        InvalidArgument, match=r"found no such file; .*gcc-12-plugin-dev"
    ):
        run_cli("search", "gcc-speed-decisions", "--plugin", "gone.so", *folder)


@FULL
@needs_plugin
@needs_valgrind
def test_an_evaluation(tmp_path: Path) -> None:
    """The models are compared in gcc, and the programs' outputs stay the same."""
    pytest.importorskip("torch")
    from mlbridge_optimizations.gcc_speed.learning import write_search

    corpus_of(["zlib"], tmp_path).save()
    never = [site(number, 10, 1.0, -0.01) for number in range(9)]
    write_search(
        Searched("p", 10**6, 10**5, never), tmp_path / "training-searches.jsonl"
    )
    folder = ["--folder", tmp_path]
    options = ["--corpus", tmp_path, "--program", "zlib", "--split", "training"]
    options += ["--no-fixed", "--plugin", PLUGIN]
    with pytest.raises(InvalidArgument, match="train first"):
        run_cli("evaluate", "gcc-speed", *folder, *options)
    with pytest.raises(InvalidArgument, match="expected training programs"):
        run_cli("evaluate", "gcc-speed", *folder, *options, "--program", "zstd")
    run_cli("train", "gcc-speed", *folder)
    ratios = tmp_path / "ratios.json"
    options += ["--json", ratios]
    printed = run_cli("evaluate", "gcc-speed", *folder, *options)
    assert "model: inline" in printed
    found = {one["row"]: one for one in json.loads(ratios.read_text())}
    assert found["model: inline"]["instructions"] == pytest.approx(1.0, abs=0.02)
    assert found["model: inline"]["text"] == pytest.approx(1.0, abs=0.2)


TYPES = {"int64_t": np.int64, "int32_t": np.int32, "float": np.float32}


def replies(model: Path, sites: list[Site]) -> list[int]:
    from mlbridge_optimizations.gcc_speed.learning import FEATURES

    found = []
    with ModelRunner(f"onnx:{model}") as runner:
        for one in sites:
            kinds = FEATURES[one.key[1]].items()
            given = {k: np.array([one.features[k]], TYPES[kind]) for k, kind in kinds}
            found.append(int(runner.evaluate(given)["decision"][0]))
    return found


def test_a_model_learns_from_a_search(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from mlbridge_optimizations.gcc_speed.learning import (
        read_searches,
        write_model,
        write_search,
    )

    hot = [site(n, 10 + n % 7, 9.0 + n % 5, 0.001) for n in range(20)]
    cold = [site(20 + n, 80 + n % 9, 0.1, None) for n in range(60)]
    file = tmp_path / "searches.jsonl"
    write_search(Searched("p", 10**6, 10**5, []), file)  # The last search counts.
    write_search(Searched("p", 10**6, 10**5, [*hot, *cold]), file)
    searches = read_searches(file)
    assert searches == [Searched("p", 10**6, 10**5, [*hot, *cold])]
    model = tmp_path / "inline.onnx"
    rule, effects = write_model([*searches, *searches], "inline", 0.3, model)
    assert list(rule.limits) == [1, 12]
    assert [gain for gain, _ in effects] == pytest.approx([0.02, 0.02])
    assert replies(model, [hot[3], cold[3]]) == [1, 2]


def test_a_model_unrolls_as_the_search_does(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from mlbridge_optimizations.gcc_speed.learning import write_model

    hot = [loop(0, 8.0), loop(1, 8.0, iterations=7), loop(2, 8.0, blocks=5)]
    for one in hot:
        one.gains = {unroll_factor(one): 0.01}
    others = [
        loop(3, 8.0, has_trip_count=0),
        loop(4, 8.0, calls=1),
        loop(5, 8.0, blocks=7),
        loop(6, 8.0, instructions=41),
    ]
    assert [unroll_factor(one) for one in hot + others] == [4, 8, 4, 0, 0, 0, 0]
    cold = [loop(7 + number, 0.1, instructions=30) for number in range(20)]
    searched = Searched("p", 10**6, 10**5, [*hot, *others, *cold])
    model = tmp_path / "unroll.onnx"
    write_model([searched], "unroll", 0.15, model)
    assert replies(model, [*hot, *others, cold[0]]) == [4, 8, 4, 0, 0, 0, 0, 0]


def test_loops_of_a_function_divide_its_savings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loops = [loop(0, 3.0), loop(0, 1.0, iterations=2, instructions=15.0)]
    loops[1].key = "a.c", "unroll", 1
    program = KnownProgram({one.key: {} for one in loops})
    monkeypatch.setattr(
        "mlbridge_optimizations.gcc_speed.search.function_sizes", lambda _: {"f0": 220}
    )
    monkeypatch.setattr(
        program, "try_choices", lambda _: (Counted(1600, {"f0": 600}), Path())
    )
    search_loops(program, loops)
    assert [one.gains for one in loops] == [{4: pytest.approx(0.15)}, {3: 0.05}]
    assert [one.growths for one in loops] == [{4: 60}, {3: 60}]


@FULL
@needs_plugin
@needs_valgrind
def test_a_search(tmp_path: Path) -> None:
    program = corpus_of(["zlib"], tmp_path).program("zlib")
    with served() as server:
        found = search(Searcher(program, tmp_path / "zlib", PLUGIN, server))
    assert found.choices > 0
    assert found.ratio < 0.995
    assert found.size < 1.05
