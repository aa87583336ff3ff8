# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares two compilations of a program: inlining, outlining, passes and sizes.

clang's optimisation records contain the inlined calls and the outlined functions. The
linker's map contains the sizes of all functions and files in the linked program.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mlbridge.errors import Malformed
from mlbridge_optimizations.corpus.toolchain import mllvm
from mlbridge_optimizations.corpus.user_build import Unit

from .decisions import Decisions
from .linking import (
    BuiltProgram,
    Sizes,
    bitcode_command,
    compile_units,
    relink,
    source_of,
    split_flags,
)

RECORD = (
    "-fsave-optimization-record=yaml",
    "-foptimization-record-passes=^(inline|inline-ml|machine-outliner)$",
)

_IN_MAP = re.compile(r" *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ ( *)(.*)")
_INPUT = re.compile(r"(?:.*\()?([^()]*)\)?:\([^()]*\)")
_CHOSEN = re.compile(
    r"^mlbridge-phase-ordering: .* actions=\d+ \[(.*?)\]", re.MULTILINE
)


class Call(NamedTuple):
    """A call in a function, perhaps after the inlining of other calls."""

    caller: str
    callee: str
    place: str  # The position in the source: file:line:column.


class Function(NamedTuple):
    """A function of a linked program."""

    file: str
    name: str


class Remark(NamedTuple):
    """A remark of clang."""

    is_passed: bool
    by: str  # The pass.
    function: str
    place: str
    values: tuple[tuple[str, str], ...]  # The parts of the message by name.


class Outlined(NamedTuple):
    """A function that LLVM's machine outliner has made."""

    function: Function
    saved: int  # LLVM's estimate of the bytes that it saves in the file.
    places: str  # The positions of the outlined code.


@dataclass
class Compiled:
    """A program that was compiled with some flags."""

    sizes: Sizes
    inlined: Counter[Call] = field(default_factory=Counter)
    reasons: dict[Call, str] = field(default_factory=dict)  # Why it was not inlined.
    outlined: list[Outlined] = field(default_factory=list)
    passes: dict[str, str] = field(default_factory=dict)  # Maps files to pipelines.
    files: dict[str, int] = field(default_factory=dict)  # The linked .text by file.
    functions: dict[Function, int] = field(default_factory=dict)  # Linked bytes.

    def add(self, file: str, remark: Remark) -> None:
        """Adds a remark about a file."""
        # Keep the first value of each name.
        by_name = dict(reversed(remark.values))
        call = Call(remark.function, by_name.get("Callee", ""), remark.place)
        if remark.by == "machine-outliner" and remark.is_passed:
            at = (text for name, text in remark.values if name.startswith("StartLoc"))
            made = Function(file, remark.function)
            saved = int(by_name.get("OutliningBenefit", 0))
            self.outlined.append(Outlined(made, saved, ", ".join(at)))
        elif remark.by == "inline-ml" and not remark.is_passed:
            self.reasons[call] = "the model decided"
        elif remark.is_passed:
            self.inlined[call] += 1
        else:
            text = "".join(text for _, text in remark.values)
            self.reasons[call] = text.partition(" because ")[2].strip()


# This loader leaves scalars as text. Its parser, in C, takes 1 s for 5 MB.
class _Loader(yaml.CBaseLoader):  # type: ignore[misc]
    pass


def _construct(loader: Any, kind: str, node: Any) -> tuple[str, dict[str, Any]]:
    return kind, loader.construct_mapping(node, deep=True)


_Loader.add_multi_constructor("!", _construct)


def read_remarks(path: Path) -> list[Remark]:
    """Parses an optimisation record, which is a file of YAML documents.

    Raises Malformed if a document is no remark.
    """
    try:
        text = path.read_text("utf-8", "replace")
        return [_remark(*document) for document in yaml.load_all(text, _Loader)]
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise Malformed(f"{path}: expected remarks of clang: {error!r}") from error


def _remark(kind: str, fields: Mapping[str, Any]) -> Remark:
    place = fields.get("DebugLoc")
    return Remark(
        kind == "Passed",
        fields["Pass"],
        fields.get("Function", ""),
        f"{place['File']}:{place['Line']}:{place['Column']}" if place else "",
        # An argument may also have a position.
        tuple(next(iter(one.items())) for one in fields.get("Args", ())),
    )


def read_map(text: str) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Parses lld's map. Returns the bytes of .text of objects, and of their functions.

    If a function has several names, the first in alphabetical order is used.
    """
    objects: Counter[str] = Counter()
    names: dict[tuple[str, str], tuple[str, int]] = {}
    is_text, inside = False, ""
    for line in text.splitlines()[1:]:
        found = _IN_MAP.fullmatch(line)
        if not found:
            continue
        address, size, indent, what = found.groups()
        if not indent:
            is_text = what == ".text"
        elif is_text and len(indent) == 8:
            named = _INPUT.fullmatch(what)
            inside = Path(named[1] if named else what).name
            objects[inside] += int(size, 16)
        elif is_text and int(size, 16):
            key, new = (inside, address), (what, int(size, 16))
            names[key] = min(new, names.get(key, new))
    return dict(objects), {(at, name): size for (at, _), (name, size) in names.items()}


def compile_with(
    program: BuiltProgram,
    flags: Sequence[str],
    decisions: Decisions,
    folder: Path,
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> Compiled:
    """Compiles and links a program with further flags of clang, and reads the results.

    ``decisions`` are the decisions that the flags replay. The result has the names of
    their pipelines. ``folder`` receives the objects and the program. Raises
    CompilerFailed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    others, link = split_flags(program.link, flags)
    if any("-mlbridge-phase-ordering=" in word for word in others):
        others += mllvm(["-mlbridge-print-statistics"])
    units = program.build.linked(link)

    def command_of(unit: Unit) -> list[str]:
        record = f"-foptimization-record-file={folder / unit.bitcode.stem}.yaml"
        return [*bitcode_command(unit), *RECORD, record, *others]

    made = compile_units(units, command_of, folder, jobs, advance)
    linked, listing = folder / program.name, folder / "program.map"
    link = replace(link, command=(*link.command, f"-Wl,-Map={listing},--no-demangle"))
    objects = {old: new for old, (new, _) in made.items()}
    relink(program.build, link, objects, linked)

    found = Compiled(Sizes.of(linked))
    files = {}  # Source files by the names of their objects.
    for old, (path, said) in made.items():
        unit = units[old]
        file = os.path.relpath(unit.folder / source_of(unit), link.folder)
        files[path.name] = file
        for remark in read_remarks(path.with_suffix(".yaml")):
            found.add(file, remark)
        chosen = _CHOSEN.search(said)
        found.passes[file] = (
            chosen[1] if chosen else decisions.of(source_of(unit)).pipeline
        )
        found.files[file] = 0
    sizes, functions = read_map(listing.read_text("utf-8", "replace"))
    for name, size in sizes.items():
        file = files.get(name, name)
        found.files[file] = found.files.get(file, 0) + size
    for (name, function), size in functions.items():
        found.functions[Function(files.get(name, name), function)] = size
    return found


def name_callees(one: Compiled, other: Compiled) -> None:
    """Names the callees that a record leaves without a name.

    LLVM omits the names of some functions that it has already deleted. If exactly one
    call in the other compilation has the same caller and place, that call's callee is
    the name.
    """
    known: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for call in (*other.inlined, *other.reasons):
        known[call.caller, call.place].add(call.callee)
    for call in [call for call in one.inlined if not call.callee]:
        names = known[call.caller, call.place] - {""}
        name = names.pop() if len(names) == 1 else "unknown"
        one.inlined[call._replace(callee=name)] += one.inlined.pop(call)


class Pair(NamedTuple):
    """The bytes of a function in two programs. 0 if it is not in the program."""

    file: str
    name: str
    before: int
    after: int


def pair_functions(
    before: Mapping[Function, int], after: Mapping[Function, int]
) -> list[Pair]:
    """Pairs the functions of two programs.

    The linker may keep another copy of a merged function, from another file. Therefore,
    functions in different files are paired by their name, if each program has only one
    function with this name.
    """
    local = {
        name
        for functions in (before, after)
        for name, count in Counter(one.name for one in functions).items()
        if count > 1
    }
    pairs: dict[tuple[str, str], Pair] = {}
    for (file, name), size in before.items():
        pairs[name, file if name in local else ""] = Pair(file, name, size, 0)
    for (file, name), size in after.items():
        key = name, file if name in local else ""
        old = pairs.get(key, Pair(file, name, 0, 0))
        files = " → ".join(dict.fromkeys((old.file, file)))
        pairs[key] = old._replace(file=files, after=size)
    return list(pairs.values())
