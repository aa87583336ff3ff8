# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package is called where it is installed, and the stubs that come with it.

On PyPI, the name that one imports is another project's. Whoever is told to install that
runs its code.
"""

import importlib.metadata
import re
import shlex
import sys
import venv
from pathlib import Path

import pytest

import mlbridge
from mlbridge import _core, extras
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
OLD = ROOT / "tests/packaging/old_distribution.py"

INSTALLS = re.compile(
    r"""\b(?:install|add|download|wheel)\b   # of pip, uv, pipx, conda, poetry, ...
        [^\n`]*?                             # options, other packages
        [\s'"]mlbridge(?:\[[^\n\]]*\])?      # it, perhaps with extras
        (?=$|[\s'"`,;:.)=<>~!])(?!\.\w)""",
    re.VERBOSE | re.MULTILINE,
)
EXTRAS = re.compile(r"\bmlbridge\[[a-z]+(?:,[a-z]+)*\]")

THESE = [Path(__file__), OLD]


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("pip install mlbridge", True),
        ("`pip install 'mlbridge[compile]'`", True),
        ("python -m pip install -U numpy mlbridge==1", True),
        ("uv add mlbridge", True),
        ("pip install '.[compile]': mlbridge compile", False),
        ("pip install ml-compiler-bridge", False),
        ("make install PREFIX=/opt/mlbridge", False),
    ],
)
def test_what_is_looked_for(text: str, is_told: bool) -> None:
    assert bool(offers(text)) == is_told


def offers(text: str) -> list[str]:
    """The lines that tell to install a distribution `mlbridge`."""
    return [
        line
        for line in text.splitlines()
        if EXTRAS.search(line)
        or (
            ("pip" in line or "uv " in line or "conda" in line or "poetry" in line)
            and INSTALLS.search(line.partition("]': ")[0])
        )
    ]


def test_no_text_tells_to_install_it() -> None:
    listed = run_program(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
    ).stdout
    found = {}
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or path in THESE or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if lines := offers(text):
            found[name] = lines
    assert found == {}


def test_what_is_installed() -> None:
    assert importlib.metadata.version(extras.DISTRIBUTION) == mlbridge.__version__
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("mlbridge")


@pytest.mark.parametrize(
    ("extra", "folder"),
    [("compile", "."), ("export", "."), ("envs", "."), ("train", "./optimizations")],
)
def test_the_extras_that_messages_name(extra: str, folder: str) -> None:
    more = "" if folder == "." else "-optimizations"
    metadata = importlib.metadata.metadata(extras.DISTRIBUTION + more)
    assert extra in (metadata.get_all("Provides-Extra") or [])
    # In the Python that complains, and not in the one that has `pip` on the PATH.
    install = f"{shlex.quote(sys.executable)} -m pip install '{folder}[{extra}]'"
    assert extras.how_to_install(extra, folder).startswith(install)


def test_the_old_distribution_is_removed(tmp_path: Path) -> None:
    """As scripts/install-python-package does before it installs the new one."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv/bin/python")
    install = ["-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    run(sys.executable, str(OLD), str(tmp_path / "wheels"))
    (wheel,) = (tmp_path / "wheels").iterdir()
    run(python, *install, str(wheel))
    assert run(python, "-c", "import mlbridge; print(mlbridge.old)") == "True\n"
    script = str(ROOT / "scripts/remove-old-distribution")
    assert "Removing the distribution mlbridge" in run(script, python)
    assert run(python, "-m", "pip", "list", "--format=freeze").count("mlbridge") == 0
    look = "from importlib.util import find_spec; print(find_spec('mlbridge'))"
    assert run(python, "-c", look) == "None\n"
    assert run(script, python) == "", "there is nothing left to remove"


def run(*command: str) -> str:
    done = run_program(command, timeout=120, check=True)
    return done.stdout


STUB = Path(__file__).parents[2] / "python" / "mlbridge" / "_core.pyi"


def test_stubs_are_up_to_date() -> None:
    """Else: ``python -m nanobind.stubgen -m mlbridge._core -o <the file>``."""
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(_core, quiet=True)
    generator.put(_core)
    assert STUB.read_text() == generator.get()
