# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The name of the distribution, and the stubs that it contains.

`mlbridge` on PyPI is another project. If a text told users to install it, they would
run foreign code.
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
from programs import ROOT, run_program

OLD = ROOT / "tests/packaging/old_distribution.py"

INSTALLS = re.compile(
    r"""\b(?:install|add|download|wheel)\b   # of pip, uv, pipx, conda, poetry, ...
        [^\n`]*?                             # options, other packages
        [\s'"]mlbridge(?:\[[^\n\]]*\])?      # the name, perhaps with extras
        (?=$|[\s'"`,;:.)=<>~!])(?!\.\w)""",
    re.VERBOSE | re.MULTILINE,
)
EXTRAS = re.compile(r"\bmlbridge\[[a-z]+(?:,[a-z]+)*\]")


@pytest.mark.parametrize(
    ("text", "says_so"),
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
def test_what_is_looked_for(text: str, says_so: bool) -> None:
    assert says_to_install(text) == says_so


def says_to_install(line: str) -> bool:
    """True if a line says to install a distribution `mlbridge`."""
    is_command = any(tool in line for tool in ("pip", "uv ", "conda", "poetry"))
    installs = is_command and INSTALLS.search(line.partition("]': ")[0])
    return bool(EXTRAS.search(line) or installs)


def test_no_text_tells_to_install_it() -> None:
    command = "git ls-files --cached --others --exclude-standard -z"
    listed = run_program(command.split(), cwd=ROOT, check=True).stdout
    found = {}
    for path in {ROOT / name for name in listed.split("\0")} - {Path(__file__), OLD}:
        if path.is_file():
            text = path.read_text(errors="replace")
            if lines := [*filter(says_to_install, text.splitlines())]:
                found[path] = lines
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
    # The hint names the running Python, not the first `pip` on the PATH.
    install = f"{shlex.quote(sys.executable)} -m pip install '{folder}[{extra}]'"
    assert extras.how_to_install(extra, folder).startswith(install)


def test_the_old_distribution_is_removed(tmp_path: Path) -> None:
    """scripts/install-python-package removes the old distribution first."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install = ["-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    run(sys.executable, OLD, tmp_path / "wheels")
    (wheel,) = (tmp_path / "wheels").iterdir()
    run(python, *install, wheel)
    assert run(python, "-c", "import mlbridge; print(mlbridge.old)") == "True\n"
    script = ROOT / "scripts/remove-old-distribution"
    assert "Removing the distribution mlbridge" in run(script, python)
    assert run(python, "-m", "pip", "list", "--format=freeze").count("mlbridge") == 0
    look = "from importlib.util import find_spec; print(find_spec('mlbridge'))"
    assert run(python, "-c", look) == "None\n"
    assert run(script, python) == "", "the distribution was removed before"


def run(*command: str | Path) -> str:
    return run_program(command, timeout=120, check=True).stdout


def test_stubs_are_up_to_date() -> None:
    """To update them: ``python -m nanobind.stubgen -m mlbridge._core -o FILE``."""
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(_core, quiet=True)
    generator.put(_core)
    stub = ROOT / "python/mlbridge/_core.pyi"
    assert stub.read_text() == generator.get()
