# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains, evaluates and exports an optimisation that a user describes in a file."""

import inspect
import json
import os
import re
import sys
from dataclasses import make_dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import fmean
from types import NoneType
from typing import Any, get_args
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
import typer

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from gymnasium import spaces
from typer.testing import CliRunner

import mlbridge
import mlbridge_optimizations
from mlbridge import envs
from mlbridge.cli import app
from mlbridge.errors import Error, InvalidArgument, Malformed, Unsupported
from mlbridge.files import locked
from mlbridge_optimizations import Metric, Optimization, registry
from mlbridge_optimizations.commands import evaluate, explain, groups, progress, search
from mlbridge_optimizations.commands import train as train_
from mlbridge_optimizations.evaluation.episodes import compare
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.phase_ordering.model.model import Model
from mlbridge_optimizations.registry import known, of_file
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings
from programs import BUILD, CLI, FULL, ROOT, reply_of, run_cli, run_python

PROGRAM = BUILD / "examples/environment/spills"
EXAMPLE = ROOT / "examples/environment/spills.py"
pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="needs scripts/build release"
)

SPILLS = f'''
"""Decides which live range is spilled, with the compiler of examples/environment."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from gymnasium import spaces
from torch import nn
from typer import Option

from mlbridge.envs import CompilerEnv
from mlbridge_optimizations import Optimization


@dataclass(frozen=True)
class Settings:
    """Options of the command line."""

    registers: Annotated[int, Option(help="Number of registers.")] = 4


class Ranges(nn.Module):
    """An encoder that applies the same layer to each live range."""

    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(3, 8)
        self.out_features = 8 * space.shape[0] // 3

    def forward(self, row):
        return self.layer(row.unflatten(1, (-1, 3))).relu().flatten(1)


def make_env(settings, worker):
    return CompilerEnv(
        ["{PROGRAM}", f"--registers={{settings.registers}}", "--classes=1"],
        "shm",
        observation_space=spaces.Box(
            0, 2, (3 * (settings.registers + 1),), np.float32
        ),
        action_space=spaces.Discrete(settings.registers + 1),
        worker=worker,
    )


OPTIMIZATION = Optimization(
    "spills",
    "Which live range is spilled.",
    make_env,
    Settings,
    encoder=lambda settings, space: Ranges(space),
    baselines={{
        "the cheapest": lambda settings: lambda row: int(np.argmin(row[1::3])),
        "the longest": lambda settings: lambda row: 0,
    }},
)
'''


@pytest.fixture(scope="module")
def spills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with spills.py, and with the training's files in out."""
    folder = tmp_path_factory.mktemp("spills")
    (folder / "spills.py").write_text(SPILLS)
    run_cli(
        *("train", folder / "spills.py", "--out", folder / "out"),
        *("--steps", 6000, "--registers", 3, "--hidden", 32),
        *("--learning-rate", "3e-3", "--gamma", 0.9, "--seed", 1),
    )
    return folder


def run(*arguments: object) -> str:
    """Returns the output of a command, which runs in its own process."""
    return run_python(CLI, *map(str, arguments), check=True, timeout=600).stdout


def first_and_last(curve: Path, share: int) -> tuple[float, float]:
    """Returns the mean returns of the first and the last 1/share of a training."""
    returns = Curve().load(curve).returns
    count = len(returns) // share
    return fmean(returns[:count]), fmean(returns[-count:])


def test_it_learns(spills: Path) -> None:
    begin, end = first_and_last(spills / "out/curve.csv", 10)
    # The training gains at least a third of the possible gain. The optimum is -1.
    assert end - begin > (-1 - begin) / 3, (begin, end)
    settings = json.loads((spills / "out/settings.json").read_text())
    assert settings["environment"] == {"registers": 3}
    assert settings["optimization"] == "spills"
    assert settings["learning_rate"] == 3e-3
    model = onnx.load(spills / "out/model.onnx")
    entries = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(entries["mlbridge.training"])["seed"] == 1


def test_it_is_evaluated(spills: Path) -> None:
    figures = spills / "figures.json"
    said = run_cli(
        *("evaluate", spills / "spills.py", spills / "out/model.onnx"),
        *("--registers", 3, "--episodes", 60, "--json", figures),
    )
    found = json.loads(figures.read_text())["episodes"]
    assert list(found) == ["model", "the cheapest", "the longest", "at random"]
    assert "in 60 episodes (higher is better)" in " ".join(said.split())
    for name, values in found.items():
        assert len(values) == 60
        assert f"Episodes, {name} " in said
        assert f"│ {name} " in said
    means = {name: sum(values) / 60 for name, values in found.items()}
    assert means["model"] > means["at random"]
    assert means["model"] >= means["the longest"]


def test_an_evolution_strategy_learns(spills: Path) -> None:
    out = spills / "evolved"
    run_cli(
        *("train", spills / "spills.py", "--out", out, "--algo", "ars"),
        *("--steps", 6000, "--registers", 3, "--hidden", 16, "--seed", 1),
    )
    begin, end = first_and_last(out / "curve.csv", 5)
    assert end > begin + 0.05, (begin, end)
    assert (out / "model.onnx").is_file()


def test_it_is_exported(spills: Path) -> None:
    models = spills / "out/model.onnx", spills / "again.onnx"
    # Export in another process, which cannot import the optimisation's file.
    run("export", spills / "out/checkpoint.zip", "--to", models[1])
    names = [[i.name for i in onnx.load(path).graph.input] for path in models]
    assert names[0] == names[1]
    (name,) = names[0]
    row = np.full(12, 0.5, np.float32)
    first, again = (str(reply_of(f"onnx:{path}", {name: row})) for path in models)
    assert first == again


@pytest.mark.parametrize(
    ("engine", "algo", "agents", "steps"),
    [
        pytest.param("sb3", "ppo", 1, 1000, marks=FULL),
        ("rllib", "ppo", 2, 500),
        pytest.param("rllib", "appo", 2, 1000, marks=FULL),
    ],
)
def test_graphs_of_changing_size(
    tmp_path: Path, engine: str, algo: str, agents: int, steps: int
) -> None:
    out, graphs = tmp_path / "out", ("--graph", "--registers", 3, "--classes", agents)
    run(
        *("train", EXAMPLE, "--out", out, *graphs),
        *("--engine", engine, "--algo", algo, "--steps", steps, "--gamma", 0.9),
        *("--learning-rate", "3e-3", "--seed", 1, "--rollout", 256),
    )
    names = ["model"] if agents == 1 else ["float", "int"]
    assert sorted(path.stem for path in out.glob("*.onnx")) == names
    for name in names:
        inputs = onnx.load(out / f"{name}.onnx").graph.input
        shapes = {
            i.name: [d.dim_value or d.dim_param for d in i.type.tensor_type.shape.dim]
            for i in inputs
        }
        assert shapes == {
            "action_mask": ["N", "graph.nodes"],
            "graph.nodes": ["N", "graph.nodes", 3],
            "graph.edges": ["N", "graph.edges", 1],
            "graph.edge_links": ["N", "graph.edges", 2],
        }
    figures, again = tmp_path / "figures.json", tmp_path / "again.onnx"
    run_cli("evaluate", EXAMPLE, out, *graphs, "--episodes", 40, "--json", figures)
    found = json.loads(figures.read_text())["episodes"]
    assert fmean(found["model"]) > fmean(found["at random"]), "it has learned something"
    source = ["checkpoint.zip"] if agents == 1 else ["checkpoint", "--module", "int"]
    run("export", out / source[0], *source[1:], "--to", again)
    seen = {
        "action_mask": np.array([1, 1, 0, 1, 0], np.int8),
        "graph.nodes": np.linspace(0, 1, 15, dtype=np.float32).reshape(5, 3),
        "graph.edges": np.ones((2, 1), np.float32),
        "graph.edge_links": np.array([[0, 1], [4, 2]], np.int64),
    }
    first, second = (
        reply_of(f"onnx:{path}?decide=outputs", seen)["logits"]
        for path in (out / f"{names[-1]}.onnx", again)
    )
    np.testing.assert_array_equal(first, second)
    assert first.size == 5


def test_its_options_are_shown(spills: Path) -> None:
    said = run_cli("train", spills / "spills.py", "--help")
    for text in ("which live range is spilled", "--registers", "--algo", "--tune"):
        assert text in said


def test_one_that_is_not_there() -> None:
    said = run_cli("train", "phase-orderin", status=2)
    assert "loop-distribution" in said
    assert "phase-ordering" in said
    assert "./mine.py" in said


def test_others_that_are_broken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Broken optimisations are skipped with a warning."""
    group = "mlbridge.optimizations"
    twice = "mlbridge_optimizations.phase_ordering.optimization:OPTIMIZATION"
    points = [
        EntryPoint("gone", "no_such_module:OPTIMIZATION", group),
        EntryPoint("list", "builtins:list", group),
        EntryPoint("again", twice, group),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert list(known()) == [
        "gcc-speed",
        "loop-distribution",
        "mlir-tiling",
        "phase-ordering",
        "polyhedral-tiling",
        "register-allocation",
        "smallest-code",
        "sqlite-selectivity",
    ]
    said = " ".join(caplog.messages)
    for why in ("No module named", "expected an Optimization", "a second phase-order"):
        assert why in said


def test_a_command_of_another_optimisation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first optimisation keeps its command."""
    found = {
        name: Optimization[Any](name, name, commands={f"search {command}": print})
        for name, command in (("a-b", "a-b"), ("a", "a-b"))
    }
    monkeypatch.setattr(groups, "known", lambda: found)
    group: Any = typer.main.get_group(search.app)
    assert list(group.known) == ["a-b"]
    assert caplog.messages == ["a second search a-b, of a, is left out"]


def test_broken_environments_of_other_distributions(tmp_path: Path) -> None:
    (tmp_path / "exiting.py").write_text("raise SystemExit(3)")
    about = tmp_path / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: others\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[mlbridge.environments]\ngone = no_such_module:register\nexits = exiting:x\n"
    )
    code = "import gymnasium, mlbridge.envs; gymnasium.spec('mlbridge/MLGOInliner-v0')"
    done = run_python(code, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    for why in ("gone (no_such_module:register) is left out: Modul", "SystemExit: 3"):
        assert why in done.stderr


@pytest.mark.parametrize("name", ["", "../x", "mine.py", "--help", "a b"])
def test_names_that_no_command_has(name: str) -> None:
    with pytest.raises(InvalidArgument, match="expected letters, digits, hyphens"):
        Optimization[Any](name, "")


def test_metrics_with_the_name_of_another_column() -> None:
    for name in ("steps", "return"):
        with pytest.raises(InvalidArgument, match="have another column of that name"):
            Metric(name, of=lambda total, info: 2 * total)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"baselines": {"model": Mock()}}, "baseline 'model': another row"),
        ({"baselines": {"b": lambda _: lambda _: 1 // 0}}, "'b': its choice failed: Z"),
        ({"metric": Metric("m", of=lambda _, info: info["m"])}, "'m' failed: KeyError"),
        ({"metric": Metric("m", of=lambda *_: sys.exit(0))}, "'m' failed: SystemExit"),
        ({"metric": Metric("m", of=lambda *_: Mock())}, "'m' failed: TypeError"),
    ],
)
def test_evaluations_that_fail(
    spills: Path, change: dict[str, Any], problem: str
) -> None:
    described = of_file(spills / "spills.py")
    settings = described.settings(registers=3)
    with pytest.raises(InvalidArgument, match=problem):
        compare(replace(described, **change), settings, spills / "out", 1, 0)


def test_a_model_that_is_a_fifo(spills: Path, tmp_path: Path) -> None:
    os.mkfifo(fifo := tmp_path / "model.onnx")
    described = of_file(spills / "spills.py")
    with pytest.raises(InvalidArgument, match="found a FIFO"):
        compare(described, described.settings(registers=3), fifo, 1, 0)
    with pytest.raises(InvalidArgument, match="found a FIFO"):
        Model(fifo)


def test_a_training_without_a_complete_episode(spills: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = train(spills / "spills.py", out, "--steps", "4", "--rollout", "4")
    assert result.exit_code == 0, result.output
    assert "; no episode is complete" in " ".join(result.output.split())
    assert not (out / "curve.png").exists()


def test_results_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    write_json(tmp_path / "new/results.json", [1])
    assert json.loads((tmp_path / "new/results.json").read_text()) == [1]


@pytest.mark.parametrize(
    ("name", "package", "how"),
    [
        ("CompilerEnv", "gymnasium", "'.[envs]'"),
        ("CompilerVecEnv", "stable_baselines3", "'./optimizations[train]'"),
        ("MultiAgentCompilerEnv", "ray", "'./optimizations[train]'"),
    ],
)
def test_environments_whose_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, how: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unsupported, match=f"envs.{name} needs .* {package}") as raised:
        getattr(envs, name)
    assert f"pip install {how}" in str(raised.value)
    assert envs.EnvironmentChannel.__module__ == "mlbridge.envs.channel"


def test_a_folder_that_another_training_writes_to(spills: Path, tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(Error, match="is used by another process"):
        run_cli("train", spills / "spills.py", "--out", tmp_path)


@FULL
def test_what_an_environment_raises_in_a_worker_of_rllib(
    spills: Path, tmp_path: Path
) -> None:
    text = (spills / "spills.py").read_text()
    broken = tmp_path / "broken.py"
    broken.write_text(text.replace(str(PROGRAM), "/bin/false"))
    with pytest.raises(mlbridge.PeerClosed, match=r"false \(process"):
        run_cli("train", broken, "--engine", "rllib", "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("1 / 0", Malformed, "ZeroDivisionError"),
        ("x = 1", InvalidArgument, "Optimization in the variable OPTIMIZATION, found"),
    ],
)
def test_a_file_that_describes_none(
    tmp_path: Path, text: str, error: type[Exception], problem: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(error, match=problem):
        of_file(tmp_path / "mine.py")
    with pytest.raises(InvalidArgument, match="there is no file"):
        of_file(tmp_path / "none.py")
    (tmp_path / "data").write_text(text)
    (tmp_path / "link.py").symlink_to("data")
    with pytest.raises(error, match=problem):
        of_file(tmp_path / "link.py")
    # Use another folder, because Python and Ray's workers now search mine.py's folder.
    other = tmp_path / "other/json.py"
    other.parent.mkdir()
    other.write_text(text)
    with pytest.raises(InvalidArgument, match="hide the module 'json' of Python"):
        of_file(other)


def test_a_file_that_describes_several(tmp_path: Path) -> None:
    mine = tmp_path / "several.py"
    text = "from mlbridge_optimizations import Optimization\n"
    mine.write_text(text + "A = Optimization('a', '')\nB = Optimization('b', '')\n")
    with pytest.raises(InvalidArgument, match="OPTIMIZATION, found one in A, B"):
        of_file(mine)
    mine = tmp_path / "derived.py"
    mine.write_text(text + "BASE = Optimization('a', '')\nOPTIMIZATION = BASE\n")
    assert of_file(mine).name == "a"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("    Settings,\n", "    4,\n"), "expected a dataclass of options"),
        (("registers: A", "steps: A"), "TrainingSettings has an option of that name"),
        (
            ("worker):\n", "worker):\n    return\n"),
            "expected a gymnasium.Env with",
        ),
        ((), "--learning-rate: expected a number above 0"),
    ],
)
def test_descriptions_that_cannot_be_trained(
    spills: Path, tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    text = (spills / "spills.py").read_text()
    rate = "0.1" if change else "-1"
    if change:
        assert change[0] in text
        text = text.replace(*change)
    (tmp_path / "mine.py").write_text(text)
    options = ("--out", tmp_path / "out", "--learning-rate", rate)
    with pytest.raises(InvalidArgument, match=problem):
        run_cli("train", tmp_path / "mine.py", *options)


def test_an_observation_without_dimensions(tmp_path: Path) -> None:
    by = Optimization[Any]("x", "", Mock())
    experiment = Experiment(by, None, TrainingSettings(out=tmp_path))
    scalars = spaces.Dict({"a": spaces.Box(0, 1, (1,)), "b": spaces.Box(0, 1, ())})
    with pytest.raises(InvalidArgument, match=r"'b' of shape \(\): make it \(1,\)"):
        experiment.networks(scalars, spaces.Discrete(2))


def test_a_training_whose_files_are_damaged(spills: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train = ["train", spills / "spills.py", "--out", out, "--steps", 16, "--rollout", 8]
    run_cli(*train)
    for name, damage, problem in (
        ("checkpoint.zip", b"PK\3\4", r"checkpoint\.zip: "),
        ("curve.csv", b"steps,return\n1,x\n", r"curve\.csv, line 2: "),
        ("settings.json", b"[]", r"settings\.json: expected an object"),
    ):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(damage)
        with pytest.raises(Malformed, match=problem):
            run_cli(*train, "--resume")
        (out / name).write_bytes(whole)


def train(described: Path, out: Path, *arguments: str) -> Any:
    """Trains briefly in this process."""
    more = ("--out", str(out), "--steps", "16", "--rollout", "8", *arguments)
    return CliRunner().invoke(app, ["train", str(described), *more])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--gamma", "5"), "--gamma"),
        (("--entropy", "-1"), "--entropy"),
        (("--entropy", "inf"), "--entropy: expected a number of 0 or more, found inf"),
    ],
)
def test_settings_out_of_range(
    spills: Path, tmp_path: Path, arguments: tuple[str, str], problem: str
) -> None:
    result = train(spills / "spills.py", tmp_path, *arguments)
    assert isinstance(result.exception, (SystemExit, InvalidArgument))
    assert problem in f"{result.output} {result.exception}"
    with pytest.raises(InvalidArgument, match="--gamma: expected a number from 0 to 1"):
        TrainingSettings(tmp_path, gamma=5)


@pytest.mark.parametrize(
    ("change", "engine", "problem"),
    [
        (("worker):\n", "worker):\n    1 / 0\n"), "sb3", "make_env of 'spills' failed"),
        (("lambda settings, space:", "lambda space:"), "sb3", "encoder of 'spills'"),
        (("    baselines", "    model_file=1,\n    baselines"), "sb3", "model_file of"),
        (("worker):\n", "worker):\n    return 1\n"), "rllib", "found a int"),
        (("worker):\n", "worker):\n    return Env()\n"), "sb3", "found a Env"),
        (("registers: A", "other: 'B' = 0\n    registers: A"), "sb3", "NameError"),
        (("registers: A", "steps: A"), "sb3", "mine.py: Settings.steps"),
    ],
)
def test_descriptions_that_fail(
    spills: Path, tmp_path: Path, change: tuple[str, str], engine: str, problem: str
) -> None:
    text = (spills / "spills.py").read_text().replace("import numpy", IMPORT, 1)
    assert change[0] in text
    (tmp_path / "mine.py").write_text(text.replace(*change))
    result = train(tmp_path / "mine.py", tmp_path / "out", "--engine", engine)
    assert isinstance(result.exception, InvalidArgument), result.output
    assert problem in str(result.exception)


IMPORT = "from gymnasium import Env\nimport numpy"


def test_a_baseline_that_fails(spills: Path, tmp_path: Path) -> None:
    text = (spills / "spills.py").read_text()
    text = text.replace("lambda settings: lambda row: 0", "lambda settings: 1 / 0")
    (tmp_path / "mine.py").write_text(text)
    model = str(spills / "out/model.onnx")
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "mine.py"), model])
    assert isinstance(result.exception, InvalidArgument)
    why = "baseline 'the longest' failed: ZeroDivisionError: division by zero (/"
    assert why in str(result.exception)


def test_a_file_that_hides_a_package(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("")
    with pytest.raises(InvalidArgument, match=r"the module 'numpy' of /.*rename"):
        of_file(tmp_path / "numpy.py")


def test_names() -> None:
    """An optimisation, its folder and its commands share a name."""
    folders = Path(mlbridge_optimizations.__file__).parent
    for name, described in known().items():
        assert (folders / name.replace("-", "_") / "optimization.py").is_file()
        for words in described.commands:
            assert re.fullmatch(
                rf"(evaluate|explain|search|train) {name}(-[a-z-]+)?", words
            )


def test_options_have_one_meaning() -> None:
    """An option takes values of the same type in all commands."""
    found: dict[str, dict[object, str]] = {}
    for group in (evaluate.app, explain.app, search.app, train_.app):
        made: Any = typer.main.get_command(group)
        for name, command in made.known.items():
            for field, one in inspect.signature(command).parameters.items():
                kind, option = get_args(one.annotation) or (None, None)
                if isinstance(option, typer.models.OptionInfo):
                    # Typer stores the first word of an option as its default.
                    words = (option.default, *(option.param_decls or ()))
                    word = next((w for w in words if str(w).startswith("--")), field)
                    types = (t for t in get_args(kind) if t is not NoneType)
                    kind = next(types, kind) if NoneType in get_args(kind) else kind
                    found.setdefault(str(word).strip("-"), {})[kind] = name
    assert {"program", "times"} <= found.keys()
    assert not {word: kinds for word, kinds in found.items() if len(kinds) > 1}


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [
        ("search loop-distribution-times --out a.jsonl", "--level", "L1 L3"),
        ("search polyhedral-tiling-times --out a.jsonl", "--kernel", "training none"),
        ("evaluate sqlite-selectivity", "--workload", "films,retail"),
        ("evaluate sqlite-selectivity", "--workload", "films none"),
    ],
)
def test_repeated_options(
    command: str,
    option: str,
    names: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each value must be a name, also if the option is given twice."""
    monkeypatch.chdir(tmp_path)
    given = [word for name in names.split() for word in (option, name)]
    with pytest.raises(InvalidArgument, match=f"{option}: .* found") as caught:
        run_cli(*command.split(), *given)
    assert str(caught.value).endswith(repr(names.split()[-1]))
    assert list(tmp_path.rglob("*.*")) == []


def test_a_command_of_another_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    named = Optimization[Any]("spills", "", commands={"evaluate outputs": print})
    monkeypatch.setattr(groups, "known", lambda: {"spills": named})
    result = CliRunner().invoke(app, ["evaluate", "nothing"])
    assert result.exit_code == 2
    why = "command 'evaluate outputs': expected VERB spills or VERB spills-WHAT"
    assert why in " ".join(caplog.messages)


def test_options_of_others_that_clash(
    spills: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mine: Any = make_dataclass("Mine", [("steps", int, 1)])
    described = replace(of_file(spills / "spills.py"), settings=mine)
    monkeypatch.setattr(groups, "known", lambda: {"spills": described})
    result = CliRunner().invoke(app, ["train", "nothing"])
    assert result.exit_code == 2
    assert "spills is left out: Mine.steps: " in " ".join(caplog.messages)


def test_a_finished_training_is_kept(spills: Path, tmp_path: Path) -> None:
    assert train(spills / "spills.py", tmp_path).exit_code == 0
    refused = train(spills / "spills.py", tmp_path, "--seed", "1")
    assert isinstance(refused.exception, InvalidArgument)
    assert "finished training (model.onnx)" in str(refused.exception)
    assert train(spills / "spills.py", tmp_path, "--resume").exit_code == 0
    assert (
        train(spills / "spills.py", tmp_path, "--seed", "1", "--force").exit_code == 0
    )
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert (settings["seed"], settings["learning_rate"]) == (1, 5e-4)


def test_files_of_a_training_that_cannot_be_resumed(
    spills: Path, tmp_path: Path
) -> None:
    described, dqn = spills / "spills.py", ("--algo", "dqn")
    result = train(described, tmp_path, "--resume")
    assert isinstance(result.exception, InvalidArgument)
    assert "settings.json to resume from" in str(result.exception)
    assert train(described, tmp_path, *dqn).exit_code == 0
    for name, damage, problem in (
        ("settings.json", b'{"gamma": "x"}', "settings.json: "),
        ("settings.json", b"\xff", "settings.json: expected JSON"),
        ("replay.pkl", None, "replay.pkl: FileNotFoundError"),
    ):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        if damage is not None:
            (tmp_path / name).write_bytes(damage)
        result = train(described, tmp_path, *dqn, "--resume")
        assert isinstance(result.exception, Malformed), result.output
        assert problem in str(result.exception)
        (tmp_path / name).write_bytes(whole)


@pytest.mark.parametrize("by", ["the command", "the library"])
def test_without_ray(
    spills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    module = "mlbridge_optimizations.training.rllib"
    monkeypatch.delitem(sys.modules, module, raising=False)
    if by == "the command":
        result = train(spills / "spills.py", tmp_path, "--engine", "rllib")
        assert isinstance(result.exception, Unsupported)
        assert "pip install './optimizations[train]'" in str(result.exception)
    else:
        with pytest.raises(Unsupported, match=r"ray.*'\./optimizations\[train\]'"):
            import_module(module)


def test_progress_in_lines(
    spills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total counts all actions, which are a multiple of the rollout."""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    result = train(spills / "spills.py", tmp_path, "--steps", "20")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if " of 24, " in line]
    assert [line.partition(" of ")[0].split()[-1] for line in lines][-2:] == [
        "23",
        "24",
    ]
    assert not [line for line in result.output.splitlines() if " of 20, " in line]


def test_help_says_what_options_are() -> None:
    result = CliRunner().invoke(app, ["train", "phase-ordering", "--help"])
    for text in ("Corpus folder.", "Random seed.", "--force"):
        assert text in result.output
