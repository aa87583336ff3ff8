# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the source files of a recipe, and unpacks programs for demos and benchmarks."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from mlbridge.errors import OSFailure
from mlbridge_optimizations.show import ShowStage, quiet

from .recipes import RECIPES, Recipe

SCRIPTS = Path(__file__).with_name("scripts")  # The scripts that download from Debian.

PACKAGES = Path("build/workloads")  # Also used by the demo and benchmarks.

FETCH_SECONDS = 1800.0  # The time limit for all packages together.
_LAST = 5  # Errors quote this number of lines of a script's stderr.


@dataclass(frozen=True)
class SourceProgram:
    """One program, which is unpacked and can be compiled."""

    name: str
    version: str  # The version of the Debian package.
    sources: tuple[Path, ...]  # The C files, sorted by path.
    flags: tuple[str, ...]  # Flags without -O and without relative paths.

    @property
    def folder(self) -> Path:
        """The folder of all sources."""
        return self.sources[0].parent

    @property
    def largest_first(self) -> list[Path]:
        """The sources by decreasing size, so that all cores finish together."""
        return sorted(self.sources, key=lambda path: (-path.stat().st_size, path))


# Lua's own makefile uses -DLUA_USE_LINUX, with which Lua can load modules.
_AS_BUILT = {"-DLUA_USE_POSIX": "-DLUA_USE_LINUX"}


def unpack(names: Sequence[str], packages: Path = PACKAGES) -> dict[str, SourceProgram]:
    """Fetches programs, which can then be compiled.

    The recipe of each program must have no `commands`, because this function does not
    run them. The commands would generate files that the program needs. Raises OSFailure
    on failure.
    """
    wanted = [RECIPES[name].package for name in names]
    for problem in fetch_packages(wanted, packages).values():
        raise OSFailure(f"the programs' sources cannot be fetched: {problem}")
    return {name: source_program(name, packages.resolve()) for name in names}


def source_program(name: str, packages: Path) -> SourceProgram:
    """Returns a program whose package has been unpacked in a folder."""
    recipe, made = RECIPES[name], packages / "generated"
    places = places_of(recipe, packages, made)
    root = Path(filled(recipe.root, places))
    write_headers(recipe, made)
    flags = [filled(_AS_BUILT.get(flag, flag), places) for flag in recipe.flags]
    return SourceProgram(
        name,
        version_of(packages / recipe.package),
        tuple(sorted(root / source for source in find_sources(recipe, root))),
        tuple(f"-I{root / flag[2:]}" if flag[:2] == "-I" else flag for flag in flags),
    )


def places_of(recipe: Recipe, packages: Path, made: Path) -> dict[str, str]:
    """Maps a recipe's words in braces, such as ``tree``, to their replacements."""
    tree, made_, all_ = map(str, (packages / recipe.package, made, packages))
    return {"tree": tree, "made": made_, "packages": all_, "scripts": str(SCRIPTS)}


def find_sources(recipe: Recipe, root: Path) -> list[str]:
    """Finds a recipe's files, relative to the root. Raises OSFailure if none exists."""
    paths = {path for pattern in recipe.sources for path in root.glob(pattern)}
    found = [str(path.relative_to(root)) for path in paths]
    kept = [s for s in found if not any(fnmatch(s, w) for w in recipe.without)]
    if not kept:
        raise OSFailure(f"none of {', '.join(recipe.sources)} is in {root}")
    return kept


def write_headers(recipe: Recipe, made: Path) -> None:
    """Writes the headers of a recipe."""
    made.mkdir(parents=True, exist_ok=True)
    for header, text in recipe.headers.items():
        (made / header).write_text(text, encoding="utf-8")


def filled(text: str, places: Mapping[str, str]) -> str:
    """Replaces each ``{name}`` in a recipe's text with the path ``places[name]``."""
    for name, path in places.items():
        text = text.replace(f"{{{name}}}", path)
    return text


def version_of(tree: Path) -> str:
    """Reads the version in the first line of debian/changelog: `bzip2 (1.0.8-5)`."""
    with (tree / "debian/changelog").open(encoding="utf-8") as changelog:
        return changelog.readline().split("(", 1)[1].split(")", 1)[0]


def fetch_packages(
    names: Sequence[str], packages: Path, show: ShowStage = quiet
) -> dict[str, str]:
    """Unpacks source packages. Returns the reason for each package that is missing."""
    command = [str(SCRIPTS / "fetch-workloads"), str(packages), *names]

    def show_done(_: str = "") -> None:
        done = sum((packages / name).is_dir() for name in names)
        show("Fetching sources", done, len(names))

    show_done()
    problem = run_script(command, show_done, FETCH_SECONDS)
    missing = [name for name in names if not (packages / name).is_dir()]
    reason = f": {problem}" if problem else ""
    return dict.fromkeys(missing, f"cannot fetch its package from Debian{reason}")


def run_script(
    command: Sequence[str], line: Callable[[str], None], seconds: float
) -> str:
    """Runs a script. Returns the end of its stderr if it fails, or else "".

    Passes each line of stdout to ``line``. A timeout kills the script's children too.
    """
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            _end_group(process)

        late = threading.Timer(seconds, stop)
        late.daemon = True
        late.start()
        try:
            assert process.stdout is not None
            for printed in process.stdout:
                line(printed)
            process.wait()
        finally:
            late.cancel()
            _end_group(process)
        if not (is_late.is_set() or process.returncode):
            return ""
        why = f"no end after {seconds:.0f} s"
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().splitlines()[-_LAST:]
        return "\n".join(
            [*last, why if is_late.is_set() else f"status {process.returncode}"]
        )


def _end_group(process: subprocess.Popen[str]) -> None:
    """Kills a script's process group, unless the script has been reaped."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
