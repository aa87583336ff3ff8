# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs print the same output with any policy as without optimisation.

Tests a sample of the real programs and of csmith's programs. With MLBRIDGE_TEST_FULL=1,
tests all programs with 50 random policies each.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mlbridge.errors import InvalidArgument, OSFailure
from mlbridge_optimizations import corpus
from mlbridge_optimizations.corpus import build, runs, toolchain
from mlbridge_optimizations.corpus.manifest import Program
from mlbridge_optimizations.phase_ordering.environment.actions import (
    Action,
    ActionSpace,
)
from mlbridge_optimizations.phase_ordering.environment.compiler import (
    EpisodeOptions,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.evaluation import outputs
from programs import FULL, IS_FULL, ROOT, run_cli

# The output is undefined: in optimised code, x + 1 is always greater than x.
OVERFLOW = """
#include <limits.h>
#include <stdio.h>
__attribute__((noinline)) int greater(int x) { return x + 1 > x; }
int main(void) { volatile int x = INT_MAX; printf("%d\\n", greater(x)); return 0; }
"""

FINE = """
#include <stdio.h>
static unsigned mix(unsigned x) { return x ^ (x << 13) ^ (x >> 7); }
int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 1000; i++) sum = mix(sum + i);
  printf("%u\\n", sum);
  return 0;
}
"""


def small_corpus(folder: Path, suffix: str = "c", /, **sources: str) -> corpus.Corpus:
    """Makes a corpus of programs of one file each, whose outputs are compared."""
    folder.mkdir(exist_ok=True)
    found = build.open_corpus(folder)
    flags = toolchain.UNOPTIMISED
    for name, source in sources.items():
        file = f"{name}.{suffix}"
        (folder / file).write_text(source)
        module = build.compile_module(name, folder, flags, file, folder)
        found.programs[name] = Program(
            *(name, "by hand", "1", "generated", flags, ()),
            *(str(folder), (module,), module, ""),
        )
    found.save()
    return found


def check(
    found: corpus.Corpus, folder: Path, count: int, *specs: str
) -> list[outputs.Outcome]:
    """Returns each program's outcome with models and `count` random policies."""
    settings = outputs.OutputsSettings(specs, count, 0, folder / "out")
    return outputs.check_outputs(found, list(found.programs.values()), settings)


def lines_of(log: Path) -> list[str]:
    return log.read_text().splitlines()


def test_a_random_policy_is_the_same_for_the_same_seed_and_file() -> None:
    space, numbers = outputs.every_action()
    assert sum(map(len, numbers.values())) == len(space.actions)
    seen = set()
    for name, actions in numbers.items():
        for seed in range(30):
            drawn = outputs.random_sequence(actions, seed, "a.bc")
            assert drawn == outputs.random_sequence(actions, seed, "a.bc")
            assert 1 <= len(drawn) <= len(actions)
            assert set(drawn) <= set(actions)
            seen.add((name, *drawn))
        for number, action in zip(actions, ActionSpace.load(name).actions, strict=True):
            assert space.actions[number] == action
    assert len(seen) > 85


def test_programs_of_csmith_by_random_policies_and_networks(tmp_path: Path) -> None:
    """Tests a random policy and a network for each space."""
    folder, out = tmp_path / "corpus", tmp_path / "out"
    count, policies = (3, 6) if IS_FULL else (1, 3)
    corpus.generate(folder, count, 1)
    models = [random_network(tmp_path, space) for space in outputs.SPACES]
    arguments = (
        *(
            "evaluate",
            "phase-ordering-outputs",
            *models,
            "--corpus",
            folder,
            "--jobs",
            "2",
        ),
        *("--split", "generated", "--random", policies, "--out", out),
    )
    run_cli(*arguments)
    lines = lines_of(out / "results.jsonl")
    found = [outputs.Outcome.parse(json.loads(line)["found"]) for line in lines]
    assert len(found) == count
    for outcome in found:
        assert outcome.policies == policies + 3
        assert outcome.executables > 3
        assert outcome.findings == outcome.failures == []
    # Known outcomes are not computed again.
    run_cli(*arguments)
    assert lines_of(out / "results.jsonl") == lines


def test_what_was_found_by_other_run_tests_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = small_corpus(tmp_path / "corpus", fine=FINE)
    log = tmp_path / "out/results.jsonl"
    for digest, lines in (("one", 1), ("another", 2), ("another", 2)):
        monkeypatch.setattr(outputs, "tests_digest", lambda _, digest=digest: digest)
        check(found, tmp_path, 1)
        assert len(lines_of(log)) == lines


def test_a_program_compiled_too_late_is_tried_again(tmp_path: Path) -> None:
    found = small_corpus(tmp_path / "corpus", fine=FINE)
    log = tmp_path / "out/results.jsonl"
    (first,) = check(found, tmp_path, 1)
    line = json.loads(log.read_text())
    late = outputs.Finding("random 0 (oz)", "timeout", "no end", "")
    line["found"]["failures"] = [vars(late)]
    log.write_text(json.dumps(line))
    assert check(found, tmp_path, 1) == [first]
    assert len(lines_of(log)) == 2


def test_a_spec_is_known_by_the_bytes_of_its_model(tmp_path: Path) -> None:
    file = tmp_path / "a model?.onnx"
    file.write_bytes(b"one")
    spec = f"onnx:{quote(str(file), safe='/')}?finite=1"
    before = outputs._identity(spec)
    assert before == outputs._identity(spec)
    file.write_bytes(b"another")
    assert before != outputs._identity(spec)
    for built_in in ("none", "builtin:phase_ordering_oz"):
        assert outputs._identity(built_in) == outputs._identity(built_in)


@pytest.mark.parametrize(
    "spec",
    [
        *("pipe:{}", "grpc://localhost:1", "record:{}|none", "onnx:label={}"),
        # Test relative paths, because clang runs in the folder of each program.
        *("tf:/tmp", "onnx:pyproject.toml"),
    ],
)
def test_a_model_of_unknown_bytes_is_asked_again(tmp_path: Path, spec: str) -> None:
    file = tmp_path / "file"
    file.touch()
    spec = spec.format(file)
    assert outputs._identity(spec) != outputs._identity(spec)


@pytest.mark.usefixtures("quick_runs")
def test_a_real_program_by_random_policies(tmp_path: Path) -> None:
    assert corpus.fetch(tmp_path / "corpus", programs=["bzip2"]).failed == {}
    (outcome,) = check(corpus.load(tmp_path / "corpus"), tmp_path, 2)
    assert (outcome.policies, outcome.executables) == (2, 2)
    assert outcome.findings == outcome.failures == []
    assert outcome.is_good


def random_network(folder: Path, space: str) -> Path:
    pytest.importorskip("torch", reason="needs scripts/make-venv train")
    import torch

    from mlbridge_optimizations.phase_ordering.model.export import export_model
    from mlbridge_optimizations.phase_ordering.model.model import Task
    from mlbridge_optimizations.phase_ordering.model.networks import Normalised, Scores

    torch.manual_seed(len(space))
    options = EpisodeOptions(space, ("histogram", "counts", "step", "actions"))
    normalised = Normalised(options.widths, options.steps)
    network = torch.nn.Sequential(
        torch.nn.Linear(normalised.out_features, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, options.choices),
    )
    task = Task(options.space, options.steps, False, tuple(options.widths))
    exported = export_model(
        Scores(normalised, network, "logits"),
        folder / f"{space}.onnx",
        options,
        task,
        seed=0,
        decide="argmax:logits",
    )
    return Path(exported.path)


def test_what_a_program_does_to_itself_is_no_policys_fault(tmp_path: Path) -> None:
    found = small_corpus(tmp_path / "corpus", fine=FINE, overflow=OVERFLOW)
    fine, overflow = check(found, tmp_path, 6)
    assert fine.is_good
    assert fine.findings == []
    assert overflow.is_good
    assert {finding.kind for finding in overflow.findings} == {outputs.OWN}
    for blamed in "by ASan and UBSan: ", "by stock clang -Oz: not as expected: out":
        assert blamed in overflow.findings[0].problem
    # All findings are the program's own fault. One example file is written.
    assert len(overflow.findings) > 1
    (shown,) = {finding.see for finding in overflow.findings}
    assert [str(made.parent) for made in tmp_path.glob("out/*/reproduce.sh")] == [shown]


def test_what_a_policy_did_is_found_and_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = small_corpus(tmp_path / "corpus", overflow=OVERFLOW)
    # Attribute the fault to the policy.
    monkeypatch.setattr(outputs._Trial, "_own_fault", lambda trial: "")
    said = run_cli(
        *(
            "evaluate",
            "phase-ordering-outputs",
            "--corpus",
            found.folder,
            "--random",
            "3",
        ),
        *("--program", "overflow", "--out", tmp_path / "out"),
        status=1,
    )
    assert "different: not as expected: out" in said
    scripts = sorted((tmp_path / "out").glob("overflow-*/reproduce.sh"))
    assert scripts
    for script in scripts:
        assert len(reproduce(script.parent)) == 1


def reproduce(folder: Path) -> list[str]:
    """Runs a finding's script and its program. Returns the actions."""
    subprocess.run([folder / "reproduce.sh"], check=True)
    assert subprocess.check_output([folder / "overflow"]) == b"1\n"
    about = json.loads((folder / "about.json").read_text())
    ((file, actions),) = about["actions"].items()
    assert file == "overflow/overflow.c.bc"
    return list(actions)


def test_what_cannot_be_reduced_in_time_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = small_corpus(tmp_path / "corpus", overflow=OVERFLOW)
    monkeypatch.setattr(outputs._Trial, "_own_fault", lambda trial: "")
    monkeypatch.setattr(outputs, "REDUCING_SECONDS", 0)
    (outcome,) = check(found, tmp_path, 6)
    space, numbers = outputs.every_action()
    assert outcome.findings
    for finding in outcome.findings:
        seed = int(finding.policy.split()[1])
        actions = numbers[outputs.SPACES[seed % len(outputs.SPACES)]]
        drawn = outputs.random_sequence(actions, seed, "overflow/overflow.c.bc")
        expected = [space.actions[a].name for a in drawn]
        assert reproduce(Path(finding.see)) == expected


def test_endless_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In optimised code, the loop is endless.
    source = """
    #include <stdio.h>
    __attribute__((noinline)) int more(int x) { return x + 1 > x; }
    int main(void) {
      volatile int x = 2147483647, n = 0;
      while (more(x)) n++;
      puts("done");
      return 0;
    }
    """
    found = small_corpus(tmp_path / "corpus", endless=source)
    monkeypatch.setattr(runs, "LEAST_SECONDS", 0.5)
    # Do not reduce, because each attempt would take equally long.
    monkeypatch.setattr(outputs, "REDUCING_SECONDS", 0)
    (outcome,) = check(found, tmp_path, 3)
    assert outcome.findings
    assert all("no end after" in finding.problem for finding in outcome.findings)


def test_after_ctrl_c_nothing_is_run_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = small_corpus(tmp_path / "corpus", overflow=OVERFLOW)
    space, numbers = outputs.every_action()
    space.save(tmp_path / "actions.json")
    options = EpisodeOptions(
        str(tmp_path / "actions.json"), ("step",), "none", len(space.actions)
    )
    run, done = runs.Tester.run, []
    with SequenceRunner(options) as runner:

        def run_and_interrupt(*arguments: Any) -> runs.Run:
            done.append(run(*arguments))
            runner.interrupt()
            return done[-1]

        monkeypatch.setattr(runs.Tester, "run", run_and_interrupt)
        wanted = outputs.OutputsSettings(("none",), 6, 0, tmp_path / "out")
        (program,) = found.programs.values()
        with (
            outputs._Trial(found, program, wanted, runner, numbers) as trial,
            pytest.raises(OSFailure, match="interrupted"),
        ):
            trial.run(outputs.Outcome(program.name))
    assert [each.passed for each in done] == [False]


def test_a_crash_of_the_compiler_is_told_of_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = ActionSpace("every", "", "", (Action("crash", "trigger-crash-module"),))
    numbers = dict.fromkeys(outputs.SPACES, range(1))
    monkeypatch.setattr(outputs, "every_action", lambda: (space, numbers))
    found = small_corpus(tmp_path / "corpus", fine=FINE)
    (outcome,) = check(found, tmp_path, 2)
    assert outcome.is_good
    assert [failure.kind for failure in outcome.failures] == ["crash", "crash"]
    assert "trigger-crash-module" in outcome.failures[0].see
    # Both policies fall back to stock -Oz.
    assert (outcome.policies, outcome.executables) == (2, 1)


def test_a_model_by_which_nothing_compiles_is_no_success(tmp_path: Path) -> None:
    found = small_corpus(tmp_path / "corpus", fine=FINE)
    said = run_cli(
        *(
            "evaluate",
            "phase-ordering-outputs",
            "onnx:/not/there.onnx",
            "--split",
            "generated",
        ),
        *("--corpus", found.folder, "--out", tmp_path / "out"),
        status=1,
    )
    assert "output: none" in said
    assert "/not/there.onnx" in said


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_the_command_of_a_finding_does_what_it_did(tmp_path: Path, suffix: str) -> None:
    # Only the optimised program's output differs from the expected output.
    found = small_corpus(tmp_path / "corpus", suffix, overflow=OVERFLOW)
    (outcome,) = check(found, tmp_path, 0, "none")
    (finding,) = outcome.findings
    assert "-mlbridge-phase-ordering=none" in finding.see
    subprocess.run(finding.see, shell=True, check=True)
    assert subprocess.check_output([tmp_path / "out/overflow"]) == b"1\n"


def test_something_has_to_be_asked_for() -> None:
    with pytest.raises(InvalidArgument, match="--random 50"):
        run_cli("evaluate", "phase-ordering-outputs")


@FULL
@pytest.mark.parametrize("split", [None, "generated"])
def test_everything_by_fifty_random_policies(split: str | None, tmp_path: Path) -> None:
    folder = ROOT / "build/corpus"
    assert corpus.fetch(folder).failed == {}
    found = corpus.generate(folder, 200, 1)
    programs = found.select(split)
    settings = outputs.OutputsSettings((), 50, 0, ROOT / "build/phase-ordering/outputs")
    outcomes = outputs.check_outputs(
        found, programs, settings, jobs=os.cpu_count() or 1
    )
    assert len(outcomes) == len(programs)
    assert [outcome for outcome in outcomes if not outcome.is_good] == []
