# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation's code runs, and the targets of its links exist."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import docs_page
from mlbridge.options import as_click
from mlbridge_optimizations.commands import evaluate, explain, search, train

ROOT = docs_page.ROOT
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
SLOW = re.compile(r"<!-- slow: (.*?) -->")
FULL = bool(os.environ.get("MLBRIDGE_TEST_FULL"))


def markdown() -> list[str]:
    """Returns all Markdown files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


@pytest.mark.parametrize("name", NAMES)
def test_code(name: str, tmp_path: Path) -> None:
    page = ROOT / name
    if (slow := SLOW.search(page.read_text())) and not FULL:
        pytest.skip(f"{slow[1]}; make test-full runs this page")
    # Run the page in a temporary folder that has links to the checkout's files.
    for entry in ROOT.iterdir():
        if entry.name not in (".git", "x.c"):
            (tmp_path / entry.name).symlink_to(entry)
    log = tmp_path / "page.log"
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
        "HOME": str(home),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, docs_page.__file__, page],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(3600 if FULL else 240)
    finally:
        # Also end the servers that the page has started in the background.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, log.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_indented_code(name: str) -> None:
    text = re.sub(
        r"^( *)```.*?^\1```$", "", (ROOT / name).read_text(), flags=re.S | re.M
    )
    assert not re.search(r"^\n    \S", text, re.M), "fence it, and name its language"


@pytest.mark.parametrize("name", markdown())
def test_links(name: str) -> None:
    """The files and headings that links name exist."""
    page = ROOT / name
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if heading:
            assert heading in headings(target), link


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page's headings in the form of GitHub and MyST."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


def test_c_functions() -> None:
    """The header declares the functions that the C API's page names.

    test_code compares the types, because the page declares functions again.
    """
    page = (ROOT / "docs/reference/c-api.md").read_text()
    names = sorted(set(re.findall(r"\bmlbridge[A-Z]\w+", page)))
    source = "\n".join(
        [
            '#include "MLCompilerBridge-C/MLCompilerBridge.h"',
            "void page(void) {",
            *(f"(void){name};" for name in names),
            "}",
        ]
    )
    subprocess.run(
        ["gcc", "-std=c99", "-fsyntax-only", "-Iinclude", "-x", "c", "-"],
        input=source,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert len(names) > 40


def test_commands() -> None:
    """The options of commands exist, also on pages whose code is slow."""
    groups = {
        "evaluate": get_command(evaluate.app),
        "explain": get_command(explain.app),
        "search": get_command(search.app),
        "train": get_command(train.app),
    }
    count = 0
    for name in markdown():
        text = (ROOT / name).read_text().replace("\\\n", " ")
        for line in re.findall(
            r"^ *mlbridge ((?:evaluate|explain|search|train) .*)", text, re.M
        ):
            verb, command, *words = shlex.split(
                line.replace("$S", "--times FILE"), comments=True
            )
            if command.endswith(".py"):
                continue
            known: Any = groups[verb]
            made = as_click(command, known.known[command])
            count += 1
            # Files that earlier commands make are missing here. Any other failure is an
            # error.
            try:
                made.make_context(command, [word for word in words if word != "&"])
            except Exception as error:
                assert "does not exist" in str(error), f"{name}: {line}: {error}"
    assert count > 50
