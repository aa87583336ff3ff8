# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables that compare two compilations of a program, as text and as a page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from mlbridge_optimizations.corpus.toolchain import LLVM_CXXFILT, run

from .decisions import Decisions
from .explain import Compiled, Pair, pair_functions
from .settings import CLANG_OZ

WITH, CHANGE = "with flags", "change"
"""The titles of three columns: the two compilations, and their difference."""
LONGEST = 56
"""The longest name in a terminal, in characters."""

Cell = str | int | float


@dataclass(frozen=True)
class TableData:
    """A table. Its first rows are the most important ones."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    text: str = ""  # A sentence about the rows.

    def is_number(self, column: int) -> bool:
        """Returns whether a column has numbers."""
        return any(not isinstance(row[column], str) for row in self.rows)

    def cell(self, column: int, value: Cell) -> str:
        """Returns the text of a cell."""
        if isinstance(value, float):
            return f"{value:.4f}"
        if isinstance(value, int):
            sign = "+" if self.columns[column] == CHANGE and value else ""
            return f"{value:{sign},}"
        return value

    def in_terminal(self, most: int) -> Table:
        """Returns the first rows, with short names."""
        left = len(self.rows) - most
        more = f"{left:,} more rows are on the page" if left > 0 else None
        table = Table(title=self.title, title_justify="left", caption=more)
        for number, column in enumerate(self.columns):
            table.add_column(
                column, justify="right" if self.is_number(number) else "left"
            )
        for row in self.rows[:most]:
            cells = (self.cell(number, value) for number, value in enumerate(row))
            table.add_row(
                *(f"{c[: LONGEST - 1]}…" if len(c) > LONGEST else c for c in cells)
            )
        return table


def tables_of(
    before: Compiled, after: Compiled, decisions: Decisions
) -> list[TableData]:
    """Compares a compilation by clang -Oz with a compilation with flags."""
    pairs = pair_functions(before.functions, after.functions)
    pairs.sort(key=lambda pair: (-abs(pair.after - pair.before), pair.name))
    names = demangled(before, after)
    files = [
        (file, before.files.get(file, 0), after.files.get(file, 0))
        for file in {**before.files, **after.files}
    ]
    files.sort(key=lambda row: (-abs(row[2] - row[1]), row[0]))
    tables = [
        TableData(
            "Program",
            ("section", CLANG_OZ, WITH, CHANGE, "ratio"),
            [
                (name, old, new, new - old, new / old if old else 1.0)
                for name, old, new in (
                    (".text", before.sizes.text, after.sizes.text),
                    (".eh_frame", before.sizes.eh_frame, after.sizes.eh_frame),
                )
            ],
            "The sections of the linked program, in bytes.",
        ),
        TableData(
            "Files",
            ("file", CLANG_OZ, WITH, CHANGE, "pipeline"),
            [
                (file, old, new, new - old, after.passes.get(file, "-"))
                for file, old, new in files
            ],
            "The bytes that each file adds to the linked .text. If several files have"
            " copies of a function, the linker keeps one copy. The pipeline is the"
            " one with flags.",
        ),
        TableData(
            "Functions",
            ("function", "file", CLANG_OZ, WITH, CHANGE),
            [
                (names[name], file, old, new, new - old)
                for file, name, old, new in pairs
            ],
            "The bytes of each function in the linked program. 0 if the function is"
            " not in the program.",
        ),
        _calls(before, after, pairs, names, is_more_in_stock=True),
        _calls(before, after, pairs, names, is_more_in_stock=False),
        TableData(
            "Outlined functions",
            ("compilation", "function", "file", "bytes", "saved", "code from"),
            [
                (
                    title,
                    *(one.function.name, one.function.file),
                    compiled.functions.get(one.function, 0),
                    one.saved,
                    one.places,
                )
                for title, compiled in ((CLANG_OZ, before), (WITH, after))
                for one in sorted(compiled.outlined, key=lambda one: -one.saved)
            ],
            "The bytes are those in the linked program. The saved bytes are LLVM's"
            " estimate.",
        ),
    ]
    used = {*after.passes.values()} & decisions.pipelines.keys()
    pipelines = [(name, decisions.pipelines[name]) for name in sorted(used)]
    tables.append(TableData("Pipelines", ("pipeline", "passes"), pipelines))
    return [table for table in tables if table.rows]


def _calls(
    before: Compiled,
    after: Compiled,
    pairs: Sequence[Pair],
    names: Mapping[str, str],
    *,
    is_more_in_stock: bool,
) -> TableData:
    """Shows the calls that one of two compilations inlines more often."""
    changes: Counter[str] = Counter()
    for pair in pairs:
        changes[pair.name] += pair.after - pair.before
    more, less = (before, after) if is_more_in_stock else (after, before)
    calls = [call for call, count in more.inlined.items() if count > less.inlined[call]]
    calls.sort(key=lambda call: (-abs(changes[call.caller]), call))
    return TableData(
        f"Calls inlined more often {f'by {CLANG_OZ}' if is_more_in_stock else WITH}",
        ("call of", "in", "at", CLANG_OZ, WITH, "why not inlined", CHANGE),
        [
            (
                *(names[call.callee], names[call.caller], call.place),
                *(before.inlined[call], after.inlined[call]),
                less.reasons.get(call, "not considered"),
                changes[call.caller],
            )
            for call in calls
        ],
        "The numbers of inlined copies of each call, in all files. The change is in the"
        " linked bytes of the function that contains the call.",
    )


def demangled(*programs: Compiled) -> dict[str, str]:
    """Maps the names of all functions to their names in C++."""
    names = {one.name for program in programs for one in program.functions}
    for program in programs:
        for call in program.inlined:
            names |= {call.caller, call.callee}
    known = sorted(names)
    said, _ = run([LLVM_CXXFILT], text="\n".join(known))
    return dict(zip(known, said.decode().splitlines(), strict=True))
