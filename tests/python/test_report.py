# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench report`. No test depends on its figures."""

import json
import re
import signal
import time
from base64 import b64decode
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="needs scripts/make-venv dev")

from bench_build import build_or_skip, refused, run_bench
from commands import check_command
from mlbridge import Malformed, ModelError
from mlbridge_benchmarks.report import machine, published
from mlbridge_benchmarks.report.measure import Result, Results, steps_of
from mlbridge_benchmarks.report.page import (
    command_text,
    comparison,
    duration,
    write,
)
from mlbridge_benchmarks.report.parts import PARTS
from mlbridge_benchmarks.report.runners import runner_table
from mlbridge_benchmarks.report.schema import MLBRIDGE, Step
from mlbridge_benchmarks.report.tables import view_table
from programs import CLI, PATIENCE, ROOT, Started, running, until

LINES = "integration-lines"
STEPS = {step.name: step for step in steps_of(PARTS)}


def report(folder: Path, *words: str) -> str:
    part = ("--part", LINES, "--quick", "--folder", str(folder))
    return " ".join(run_bench("report", *part, *words).split())


class Page(HTMLParser):
    """The elements of a page, whose tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_a_finished_part_is_not_measured_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    output = report(folder)
    assert f"Table 4 {LINES} measured" in output
    file = folder / f"{LINES}.json"
    first = json.loads(file.read_text())
    assert {row["api"] for row in first["rows"]} == {"C", "C++"}
    assert first["machine"]["cores"]
    text = (folder / "report.html").read_text()
    assert "LLVM: phase ordering" in text
    assert "This is a quick report" in text

    first["rows"][0]["integration"] = "kept"
    file.write_text(json.dumps(first))
    report(folder)
    assert json.loads(file.read_text())["rows"] == first["rows"]
    assert "kept" in (folder / "report.html").read_text()

    report(folder, "--again")
    assert "kept" not in file.read_text()
    assert not list(folder.glob(".step-*"))
    # A full report does not use the result of a quick report.
    results, step = Results(tmp_path), STEPS["overhead"]
    command = list(step.words(quick=True))
    (tmp_path / "overhead.json").write_text(json.dumps(first | {"command": command}))
    assert results.is_finished(step, quick=True)
    assert not results.is_finished(step, quick=False)


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    report(tmp_path)
    (tmp_path / "rtt.png").write_bytes(b"\x89PNG")
    sections = write(Results(tmp_path), tmp_path / "page.html", quick=True)
    page = Page((tmp_path / "page.html").read_text())
    images = 0
    for tag, values in page.attributes:
        assert tag not in ("link", "script", "iframe")
        if tag == "img":
            images += 1
            assert (values["src"] or "").startswith("data:image/png;base64,")
            assert values["alt"]
    assert images == 1
    ids = {values["id"] for _, values in page.attributes if "id" in values}
    assert ids == {part.name for part in PARTS}
    states = {section.part.name: section.state for section in sections}
    assert states[LINES] == "measured"
    assert states["pluto"] == "not done"
    assert states["overhead"] == "not measured"


def test_the_command_is_told_what_it_can_do(tmp_path: Path) -> None:
    assert "expected compile-time" in refused("report", "--part", "table-7")


def test_a_failure_is_shown_and_keeps_the_result(tmp_path: Path) -> None:
    results = Results(tmp_path)
    wrong = (MLBRIDGE, "bench", "rtt", "--lengths", "0", "--json", "{json}")
    step = Step("overhead", wrong)
    with pytest.raises(ModelError, match=r"status 2: .*--lengths"):
        results.run(step, {}, quick=False)
    assert results.of(step) is None
    (section,) = (
        one
        for one in write(results, tmp_path / "page.html", quick=False)
        if one.part.name == "overhead"
    )
    assert section.state == "failed"
    assert "--lengths" in (tmp_path / "page.html").read_text()

    results.run(Step("overhead", STEPS[LINES].command), {}, quick=False)
    assert results.failure(step) == ""
    kept = results.of(step)
    with pytest.raises(ModelError):
        results.run(step, {}, quick=False)
    assert results.of(step) == kept
    (tmp_path / "overhead.json").write_text("{}")
    with pytest.raises(Malformed, match=r"overhead\.json: .*delete it"):
        results.of(step)


def test_a_command_without_rows_is_timed(tmp_path: Path) -> None:
    results = Results(tmp_path)
    step = Step("doctor", (MLBRIDGE, "--version"), timed={"flow": "none"})
    results.run(step, {}, quick=False)
    found = results.of(step)
    assert found is not None
    (row,) = found.rows
    assert row["flow"] == "none"
    assert row["seconds"] == pytest.approx(found.seconds, abs=0.01)


def test_an_interrupted_report_ends_its_command(tmp_path: Path) -> None:
    build_or_skip()
    words = ("bench", "report", "--part", "rtt", "--folder", str(tmp_path))
    with Started(CLI, *words) as process:
        until(lambda: set(running(str(tmp_path))) - {process.pid})
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=2 * PATIENCE)
    assert process.returncode != 0
    until(lambda: not running(str(tmp_path)))
    assert not list(tmp_path.glob(".step-*"))
    assert not (tmp_path / "rtt.json").exists()


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_command_exists(step: Step, tmp_path: Path) -> None:
    for quick in (False, True):
        words = [word.format_map(Paths(tmp_path)) for word in step.words(quick=quick)]
        if words[0] == MLBRIDGE:
            check_command(words[1:])
        else:
            assert (ROOT / words[0]).is_file()
    assert "{" not in command_text(step.command)


class Paths(dict[str, str]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> str:
        return str(self._folder / name)


def test_parts_show_what_they_measure() -> None:
    for part in PARTS:
        names = {step.name for step in part.steps}
        assert all(set(view.steps) <= names for view in part.views)
        assert bool(part.steps) == bool(part.views)
    keys = {(part.name, c.key) for part in PARTS for v in part.views for c in v.columns}
    for figure in published.FIGURES:
        assert (figure.part, figure.key) in keys


def test_published_figures_are_beside_ours() -> None:
    """Uses made-up times."""
    (part,) = (part for part in PARTS if part.name == "compile-time")
    rows: list[dict[str, Any]] = [
        {"flow": flow, "seconds": 2.0, "faster": {"total": faster, "geomean": faster}}
        for flow, faster in (("original", 1.0), ("gRPC", 6.5), ("shm", 7.0))
    ]
    table = view_table(part.name, part.views[0], rows)
    assert table is not None
    assert table.titles == ["flow", "s", "times as fast", "published", "geomean"]
    assert table.rows[1] == ["gRPC", "2.00", "6.50", "4.4", "6.50"]
    assert table.rows[2][3] == "-"
    assert table.numbers == {1, 2, 3, 4}
    image = comparison(part.name, part.views[0], rows)
    assert image is not None
    assert b64decode(image.url.partition(",")[2]).startswith(b"\x89PNG")
    assert comparison(part.name, part.views[0], rows[::2]) is None
    assert view_table(part.name, part.views[0], []) is None


def test_rows_of_two_kinds_have_tables_of_their_own() -> None:
    """Uses made-up times."""
    (part,) = (part for part in PARTS if part.name == "rtt")
    served = {"runner": "pipe", "serdes": "json", "python": "fc", "us": {"500": 3.5}}
    inside = {"runner": "onnx", "model": "fc", "floats": "500", "us": 1.5}
    rows: list[dict[str, Any]] = [
        {**served, "placement": "two-cores"},
        {**inside, "floor_us": 1.25},
    ]
    tables = [view_table(part.name, view, rows) for view in part.views]
    cells = [table and table.rows for table in tables]
    assert cells == [
        [["pipe", "json", "fc", "3.50"]],
        None,
        [["onnx", "fc", "500", "1.25", "1.50"]],
    ]


def test_a_missing_row_is_explained(tmp_path: Path) -> None:
    """Uses made-up times."""
    results, step = Results(tmp_path), STEPS["compile-time"]

    def notes(*flows: str, quick: bool = False) -> list[str]:
        rows = [{"flow": flow, "seconds": 1.0} for flow in flows]
        result = Result(list(step.command), "2026-11-28T12:00", 1.0, 0, "", {}, rows)
        file = tmp_path / "compile-time.json"
        file.write_text(json.dumps(asdict(result)))
        sections = write(results, tmp_path / "page.html", quick=quick)
        by_name = {section.part.name: section for section in sections}
        assert by_name["rtt"].notes == [], "the part is not measured"
        return by_name["compile-time"].notes

    (note,) = notes("original", "onnx")
    assert "scripts/make-venv tf-aot" in note
    assert "TensorFlow 2.15 was not installed" in (tmp_path / "page.html").read_text()
    assert notes("original", "tf-aot") == []
    assert notes("original", quick=True) == []


def test_a_step_of_several_parts_counts_once(tmp_path: Path) -> None:
    assert sum(STEPS["corpus"] in part.steps for part in PARTS) > 1
    result = Result([], "2026-11-28T12:00", 90.0, 0, "", {}, [])
    (tmp_path / "corpus.json").write_text(json.dumps(asdict(result)))
    assert Results(tmp_path).seconds(PARTS) == 90
    write(Results(tmp_path), tmp_path / "page.html", quick=False)
    assert "together took 2 min." in (tmp_path / "page.html").read_text()


def test_the_table_of_runners() -> None:
    """Uses made-up times."""
    table = runner_table(
        {
            "rtt": [
                {
                    **{"runner": "pipe", "serdes": "bitstream", "python": "fc"},
                    "us": {"500": 3.5},
                },
                {"runner": "aot", "model": "fc", "floats": "500", "us": 0.12},
                {"runner": "tf-aot", "model": "fc", "floats": "500", "us": 0.33},
            ],
            "overhead": [{"source": "start-up", "clang": "+ aot", "added_cpu_ms": 1.6}],
        }
    )
    found = {row[0]: row[-2:] for row in table.rows}
    assert found["pipe:"] == ["3.50", ""]
    assert found["aot:"] == ["0.12", "1.60"]
    assert found["onnx:"] == ["", ""]
    assert found["TensorFlow AOT"] == ["0.33", ""]
    assert all(len(row) == len(table.titles) for row in table.rows)
    assert max(table.numbers) < len(table.titles)
    page = (ROOT / "docs/reference/model-specs.md").read_text()
    for row in table.rows:
        assert not row[0].endswith(":") or f"`{row[0]}" in page.replace("//", "")


def test_words() -> None:
    assert [duration(s) for s in (3, 61, 3660)] == ["3 s", "1 min", "1 h 1 min"]
    step = STEPS["gym"]
    assert command_text(step.words(quick=False)) == "mlbridge bench gym"
    quick = Step("x", ("x", "--steps", "9", "--all", "--out", "y"), ("--steps", "1"))
    assert quick.words(quick=True) == ("x", "--all", "--out", "y", "--steps", "1")
    assert re.fullmatch(r"[0-9a-f]{12}\+?|", machine.commit())
    about = machine.describe()
    assert about["cores"]
    assert about["python"]
    assert str(ROOT) not in str(about)
