# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the page of a report: one HTML file that needs no network."""

import shlex
import tempfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlbridge_optimizations.page import write_page
from mlbridge_optimizations.plot import draw_bars, panels_of

from .measure import Result, Results
from .parts import PARTS
from .published import PAPER, figure_of, figures_of
from .runners import runner_table
from .schema import Part, Row, View
from .tables import PUBLISHED, PageTable, view_table

TEMPLATE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Image:
    """A picture of the page, as the URL of its data."""

    url: str
    text: str


@dataclass
class Section:
    """A part as the page shows it."""

    part: Part
    state: str = "not measured"
    seconds: float = 0.0
    measured: list[Result] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    tables: list[PageTable] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def duration(self) -> str:
        """The time that the steps took, in words."""
        return duration(self.seconds) if self.measured else ""


def duration(seconds: float) -> str:
    """Returns a duration in words, for example "1 h 5 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def command_text(words: Sequence[str]) -> str:
    """Returns a command as a user types it, without the paths of its results."""
    kept, hidden = list[str](), {"{json}", "{plot}", "{out}"}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word not in hidden and following not in hidden:
            kept.append(word.replace("{folder}", "build/report"))
    return shlex.join(kept)


def comparison(part: str, view: View, rows: Sequence[Row]) -> Image | None:
    """Draws the published figures of a view beside ours."""
    pairs = [
        (row, column, ours, found.value)
        for row in view.rows(rows)
        for column in view.columns
        if (found := figure_of(part, column.key, row)) is not None
        and isinstance(ours := column.value(row), int | float)
    ]
    if not pairs:
        return None
    titles = {column.title for _, column, _, _ in pairs}
    names, values = list[str](), list[float]()
    for row, column, ours, theirs in pairs:
        words = [one.cell(row) for one in view.columns if one.is_text]
        label = ", ".join([*words, *([column.title] if len(titles) > 1 else [])])
        names += [f"{label}: ours", f"{label}: {PUBLISHED}"]
        values += [float(ours), theirs]

    def draw(path: Path) -> None:
        with panels_of(path, size=(8, 1 + 0.35 * len(names))) as (panel,):
            label = "" if len(titles) > 1 else min(titles)
            colours = ["C0", "C7"] * len(pairs)
            draw_bars(panel, names, values, colours, "%.3g", label)

    return _drawn(draw, f"{view.caption}: our figures beside the published ones")


def _drawn(draw: Callable[[Path], None], text: str) -> Image:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plot.png")
        draw(path)
        return _image(path, text)


def _image(path: Path, text: str) -> Image:
    return Image(f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}", text)


def section_of(part: Part, results: Results, *, quick: bool) -> Section:
    """Returns the section of the page about a part."""
    section = Section(part)
    rows: dict[str, list[dict[str, Any]]] = {}
    for step in part.steps:
        section.commands.append(command_text(step.words(quick=quick)))
        found = results.of(step)
        if found is not None:
            section.measured.append(found)
            section.seconds += found.seconds
            rows[step.name] = found.rows
        if failure := results.failure(step):
            section.failures.append(f"{step.name}: {failure}")
    section.state = _state(section)
    if not quick:
        all_rows = [row for step_rows in rows.values() for row in step_rows]
        section.notes += [o.why for o in part.optional if o.is_missing(all_rows)]
    for view in part.views:
        view_rows = [row for name in view.steps for row in rows.get(name, ())]
        if table := view_table(part.name, view, view_rows):
            section.tables.append(table)
        if image := comparison(part.name, view, view_rows):
            section.images.append(image)
    text = f"{part.title}: the plot of the command"
    plots = [plot for step in part.steps for plot in results.plots(step)]
    section.images += [_image(plot, text) for plot in plots]
    section.published += _published(part)
    return section


def _state(section: Section) -> str:
    if section.part.not_done:
        return "not done"
    if not section.part.steps:
        return "described"
    if len(section.measured) == len(section.part.steps):
        return "measured"
    return "failed" if section.failures else "not measured"


def _published(part: Part) -> list[str]:
    """Returns a line for each source of published figures."""
    titles = {c.key: c.title for view in part.views for c in view.columns}
    by_source: dict[str, list[str]] = {}
    for figure in figures_of(part.name):
        of = ", ".join(map(str, figure.row.values())) or "row not stated"
        text = f"{of}: {titles.get(figure.key, figure.key)} {figure.value:g}"
        by_source.setdefault(figure.source, []).append(text)
    return [
        f"{'; '.join(texts)}. Source: {source}." for source, texts in by_source.items()
    ]


def write(results: Results, target: Path, *, quick: bool) -> list[Section]:
    """Writes the page from all results of a folder. Returns its sections."""
    sections = [section_of(part, results, quick=quick) for part in PARTS]
    found = results.of_parts(PARTS)
    for section in sections:
        if section.part.name == "runners":
            rows = {name: result.rows for name, result in found.items()}
            section.tables.append(runner_table(rows))
    machines: list[dict[str, str]] = []
    for result in found.values():
        if result.machine not in machines:
            machines.append(result.machine)
    write_page(
        target,
        TEMPLATE,
        command_text=command_text,
        sections=sections,
        machines=machines,
        commits=sorted({result.commit for result in found.values() if result.commit}),
        duration=duration(results.seconds(PARTS)),
        quick=quick,
        paper=PAPER,
    )
    return sections
