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

from .measure import Result, Results, steps_of
from .parts import PARTS, Part, Row, View
from .published import PAPER, figure_of, figures_of
from .runners import runner_table

TEMPLATE = Path(__file__).with_name("page.html")
PUBLISHED = "published"


@dataclass(frozen=True)
class Shown:
    """A table of the page. `numbers` are the indices of columns to align right."""

    caption: str
    titles: list[str]
    rows: list[list[str]]
    numbers: set[int]


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
    tables: list[Shown] = field(default_factory=list)
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


def shown(part: str, view: View, rows: Sequence[Row]) -> Shown | None:
    """Returns a view's table. A column of published figures follows our column."""
    wanted = view.rows(rows)
    # Other rows of the same step may have other columns.
    columns = [
        c for c in view.columns if any(c.value(row) is not None for row in wanted)
    ]
    if not wanted or view.columns[0] not in columns:
        return None
    titles, numbers, cells = list[str](), set[int](), [list[str]() for _ in wanted]

    def add(title: str, values: Sequence[str], *, is_text: bool) -> None:
        if not is_text:
            numbers.add(len(titles))
        titles.append(title)
        for row, value in zip(cells, values, strict=True):
            row.append(value)

    for column in columns:
        add(column.title, [column.cell(row) for row in wanted], is_text=column.is_text)
        found = [figure_of(part, column.key, row) for row in wanted]
        if any(found):
            values = [f"{one.value:g}" if one else "-" for one in found]
            add(PUBLISHED, values, is_text=False)
    return Shown(view.caption, titles, cells, numbers)


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
    if part.not_done:
        section.state = "not done"
    elif not part.steps:
        section.state = "described"
    elif len(section.measured) == len(part.steps):
        section.state = "measured"
    elif section.failures:
        section.state = "failed"
    every = [row for each in rows.values() for row in each]
    if not quick:
        section.notes += [o.why for o in part.optional if o.is_missing(every)]
    for view in part.views:
        each = [row for name in view.steps for row in rows.get(name, ())]
        if table := shown(part.name, view, each):
            section.tables.append(table)
        if image := comparison(part.name, view, each):
            section.images.append(image)
    for step in part.steps:
        for plot in results.plots(step):
            section.images.append(
                _image(plot, f"{part.title}: the plot of the command")
            )
    titles = {c.key: c.title for view in part.views for c in view.columns}
    by_source: dict[str, list[str]] = {}
    for figure in figures_of(part.name):
        of = ", ".join(map(str, figure.row.values())) or "row not stated"
        text = f"{of}: {titles.get(figure.key, figure.key)} {figure.value:g}"
        by_source.setdefault(figure.source, []).append(text)
    for source, texts in by_source.items():
        section.published.append(f"{'; '.join(texts)}. Source: {source}.")
    return section


def write(results: Results, target: Path, *, quick: bool) -> list[Section]:
    """Writes the page from all results of a folder. Returns its sections."""
    sections = [section_of(part, results, quick=quick) for part in PARTS]
    found = {step.name: results.of(step) for step in steps_of(PARTS)}
    every = [result for result in found.values() if result is not None]
    rows = {name: result.rows for name, result in found.items() if result is not None}
    for section in sections:
        if section.part.name == "runners":
            section.tables.append(Shown(*runner_table(rows)))
    machines: list[dict[str, str]] = []
    for result in every:
        if result.machine not in machines:
            machines.append(result.machine)
    write_page(
        target,
        TEMPLATE,
        command_text=command_text,
        sections=sections,
        machines=machines,
        commits=sorted({result.commit for result in every if result.commit}),
        duration=duration(
            sum({r.started + str(r.command): r.seconds for r in every}.values())
        ),
        quick=quick,
        paper=PAPER,
    )
    return sections
