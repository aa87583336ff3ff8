# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code blocks of one page of the documentation, in order.

``python docs_page.py PAGE`` runs in the current folder, where the page's paths must be
valid. A block with ``title=FILE`` is written to that file. Blocks of ``sh`` and
``python`` are run. All ``python`` blocks share one namespace. ``c`` and ``cpp`` without
a title are compiled. ``json`` is parsed, and ``text`` and ``{directive}`` are ignored.
Comments before a block change this. A comment may occur several times:

    <!-- not run: REASON -->        the block is skipped
    <!-- in: FILE -->               the block is part of this file, which tests run
    <!-- before: COMMAND -->        a command that is run first
    <!-- given: DECLARATIONS -->    the declarations that a fragment of C or C++ needs
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^( *)```(\w*|\{\w+\}) *(?:title=(\S+))?$")
_COMMENT = re.compile(r"^ *<!-- (not run|in|before|given): (.*?) -->$")
_FILE_SCOPE = re.compile(r"^(class|struct|static|int main|extern|void|typedef)\b", re.M)
_COMPILERS = {"cpp": ["g++", "-std=c++17", "-x", "c++"], "c": ["gcc", "-std=c99"]}


@dataclass
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    title: str | None
    text: str
    notes: dict[str, list[str]] = field(default_factory=dict)
    """The comments before the block, by their first word."""


def blocks_of(page: Path) -> list[Block]:
    """Returns the code blocks of a page, in order.

    Raises:
        ValueError: a fence has no language, or is not closed.
    """
    blocks: list[Block] = []
    notes: dict[str, list[str]] = {}
    lines = enumerate(page.read_text().splitlines(), 1)
    for number, line in lines:
        if comment := _COMMENT.match(line):
            notes.setdefault(comment[1], []).append(comment[2])
        elif fence := _FENCE.match(line):
            indent, language, title = fence.groups()
            if not language:
                raise ValueError(f"{page}:{number}: a block without a language")
            text = []
            for _, content in lines:
                if content == f"{indent}```":
                    break
                text.append(content.removeprefix(indent))
            else:
                raise ValueError(f"{page}:{number}: a block without an end")
            source = "\n".join(text) + "\n"
            blocks.append(Block(number, language, title, source, notes))
            notes = {}
        elif line.strip():
            notes = {}
    return blocks


def check_part(block: Block, file: Path) -> None:
    """Checks that a file contains each line of a block, in the same order."""
    rest = [" ".join(line.split()) for line in file.read_text().splitlines()]
    for line in block.text.splitlines():
        wanted = " ".join(line.split())
        if wanted in ("", "..."):
            continue
        if wanted not in rest:
            raise ValueError(f"{file} does not have this line (any more): {wanted}")
        del rest[: rest.index(wanted) + 1]


def compile_fragment(block: Block) -> None:
    """Compiles a fragment of C or C++, as a file or as the body of a function."""
    includes = re.findall(r"^#.*\n", block.text, re.M)
    rest = re.sub(r"^#.*\n", "", block.text, flags=re.M)
    given = "\n".join(block.notes.get("given", []))
    more = re.findall(r"#include \S+", given)
    given = re.sub(r"#include \S+", "", given)
    if not _FILE_SCOPE.search(rest):
        rest = f"void page() {{\n{given}\n{rest}}}\n"
    else:
        rest = f"{given}\n{rest}"
    source = "\n".join([*more, *includes, rest])
    command = [
        *(*_COMPILERS[block.language], "-fsyntax-only", "-Wall", "-Wno-unused"),
        *("-Iinclude", "-I.", "-"),
    ]
    if block.language == "c":
        command[2:2] = ["-x", "c"]
    subprocess.run(command, input=source, text=True, check=True)


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Runs one block. Raises an exception if the block fails."""
    for command in block.notes.get("before", []):
        subprocess.run(["bash", "-euc", command], check=True)
    if "not run" in block.notes:
        return
    if parts := block.notes.get("in"):
        check_part(block, ROOT / parts[0])
    elif block.title:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(block.text)
    elif block.language == "sh":
        subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], check=True)
    elif block.language == "python":
        exec(compile(block.text, f"line {block.line}", "exec"), namespace)
    elif block.language in _COMPILERS:
        compile_fragment(block)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language != "text" and not block.language.startswith("{"):
        raise ValueError(f"a block of {block.language} needs a title or a reason")


def main(page: Path) -> None:
    """Runs a page."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    sys.path.insert(0, ".")
    for block in blocks_of(page):
        print(f"--- {page.name}:{block.line} ({block.language})", flush=True)
        run(block, namespace)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
