# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Identifiers and file names use the field's words: listener and peer, not door."""

import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORD = re.compile(
    "(door|lobby|reception|meeting|met|lookout|guest|newcomer|arrival|entrance|leaver"
    "|asker|mailbox)s?"
)
PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# Comments, strings and numbers.
NO_NAMES = {
    "c": re.compile(
        r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"'
        r"|\b\d[\w'.]*|'(?:\\.|[^'\\\n])*'"
    ),
    "cmake": re.compile(r'"(?:\\(?:.|\n)|[^"\\])*"|#[^\n]*'),
}
LANGUAGES = dict.fromkeys((".c", ".cpp", ".h", ".proto"), "c") | {".cmake": "cmake"}


def names(path: Path) -> Iterator[tuple[int, str]]:
    """The identifiers in a source file, each with its line."""
    language = LANGUAGES.get(path.suffix)
    if path.name == "CMakeLists.txt":
        language = "cmake"
    if language:
        code = NO_NAMES[language].sub(
            lambda match: " " + "\n" * match[0].count("\n"), path.read_text()
        )
        for number, line in enumerate(code.splitlines(), 1):
            yield from ((number, name) for name in NAME.findall(line))
    elif path.suffix in (".py", ".pyi") or is_python_program(path):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.NAME:
                    yield token.start[0], token.string


def is_python_program(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and b"python" in first


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
