# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts reject wrong arguments before they build or remove anything."""

import os
from pathlib import Path

import pytest

from programs import BUILD, ROOT, run_program


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["build"], "usage: scripts/build PRESET"),
        (["build", "nothing"], '"release"'),
        (["fuzz", "nothing"], "tests/fuzz has no fuzzer 'nothing'"),
        (["fuzz", "--seconds", "x"], "--seconds: expected a number, found 'x'"),
        (["fuzz", "--runs"], "--runs: expected a number, found ''"),
        (["fuzz", "--minutes", "1"], "there is no option --minutes, only --total"),
        (["lint", "clang_tidy"], "there is no check 'clang_tidy', only clang-format"),
        (["make-venv", "dev", "nothing"], "there is no set 'nothing', only "),
        (["test", "nothing"], "no step nothing; there are: headers"),
    ],
)
def test_wrong_arguments(command: list[str], problem: str, tmp_path: Path) -> None:
    environment = {**os.environ, "VENV": str(tmp_path / "venv")}
    done = run_program([ROOT / "scripts" / command[0], *command[1:]], env=environment)
    assert done.returncode == 2, done.stdout
    assert problem in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_virtual_environment(tmp_path: Path) -> None:
    """Only a virtual environment is removed, to make it again."""
    (tmp_path / "file").write_text("mine")
    environment = {**os.environ, "VENV": str(tmp_path)}
    done = run_program([ROOT / "scripts/make-venv", "dev"], env=environment)
    assert done.returncode == 1
    assert "is no virtual environment" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("GRPC=maybe", "MLBRIDGE_ENABLE_GRPC: expected ON, OFF or AUTO, found 'mayb"),
        ("TVM=ON", "MLBRIDGE_ENABLE_TVM=ON, but what it needs was not found. The"),
    ],
)
def test_wrong_build_options(option: str, problem: str, tmp_path: Path) -> None:
    done = run_program(
        [
            *("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja"),
            "-DCMAKE_DISABLE_FIND_PACKAGE_TVM=ON",
            f"-DMLBRIDGE_ENABLE_{option}",
        ]
    )
    assert done.returncode == 1
    assert problem in " ".join(done.stderr.split())


@pytest.mark.skipif(
    not (BUILD / "CMakeCache.txt").exists(), reason="needs scripts/build release"
)
def test_an_installation_with_a_strict_umask(tmp_path: Path) -> None:
    """All users can read the installed files."""
    tmp_path.chmod(0o755)
    prefix = tmp_path / "prefix"
    install = ["make", "--old-file=build", "install", f"PREFIX={prefix}"]
    run_program(install, cwd=ROOT, umask=0o077, check=True)
    hidden = [path for path in prefix.rglob("*") if not path.stat().st_mode & 0o004]
    assert hidden == []
