# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Identifiers and file names use the field's words, for example listener, not door."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_for_filename
from pygments.token import Name

ROOT = Path(__file__).resolve().parents[2]
WORD = re.compile(
    "(door|lobby|reception|meeting|met|lookout|guest|newcomer|arrival|entrance|leaver"
    "|asker|mailbox)s?"
)
PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
SUFFIXES = (".c", ".cpp", ".h", ".proto", ".cmake", ".py", ".pyi")


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the identifiers in a source file, each with its line."""
    if not path.name.endswith((*SUFFIXES, "CMakeLists.txt")):
        return
    text = path.read_text()
    # Parse only files that contain one of the words. Comments may contain them.
    if not any(map(has_word, set(NAME.findall(text)))):
        return
    line = 1
    lexer = get_lexer_for_filename(path.name, stripnl=False)
    for kind, token in lexer.get_tokens(text):
        if kind in Name:
            yield from ((line, name) for name in NAME.findall(token))
        line += token.count("\n")


def has_word(name: str) -> bool:
    return any(WORD.fullmatch(part.lower()) for part in PART.findall(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GRPCDoor", True),
        ("TheDoors", True),
        ("is_met_again", True),
        ("IsMetAgain", True),
        ("GUEST", True),
        ("Doorbell", False),
        ("Metadata", False),
        ("in_place", False),
    ],
)
def test_parts_of_names(name: str, expected: bool) -> None:
    assert has_word(name) == expected


def test_names() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    found = []
    for file in listed.stdout.rstrip("\0").split("\0"):
        if file.startswith("tests/golden/") or not (ROOT / file).is_file():
            continue
        if has_word(file):
            found.append(f"{file}: the file's name")
        found += [
            f"{file}:{line}: {name}"
            for line, name in names(ROOT / file)
            if has_word(name)
        ]
    assert not found, "\n".join(found)
