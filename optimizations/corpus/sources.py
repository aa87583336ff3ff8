# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a recipe to source files, and to programs that others compile as they like."""

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
from mlbridge_optimizations.show import ShowStage

from .recipes import RECIPES, Recipe

SCRIPTS = Path(__file__).with_name("scripts")  # They ask Debian's archive.

# Where the demo, the tests and the benchmarks have theirs, too.
PACKAGES = Path("build/workloads")

FETCH_SECONDS = 1800.0  # For all packages together; apt has deadlines of its own.
_LAST = 5  # Lines of what a script that failed has said.


@dataclass(frozen=True)
class SourceProgram:
    """One program, unpacked and ready to be compiled."""

    name: str  # What people call it.
    version: str  # That of the Debian package.
    sources: tuple[Path, ...]  # The C files, one translation unit each, by path.
    # What its own build passes to the C compiler, without -O; they hold in every
    # folder.
    flags: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder that holds all the sources."""
        return self.sources[0].parent

    @property
    def largest_first(self) -> list[Path]:
        """The sources, so that no core is left with a large one at the end."""
        return sorted(self.sources, key=lambda path: (-path.stat().st_size, path))


# -DLUA_USE_LINUX is what Lua's own makefile says: the interpreter loads modules, too.
_AS_BUILT = {"-DLUA_USE_POSIX": "-DLUA_USE_LINUX"}


def unpack(names: Sequence[str], packages: Path = PACKAGES) -> dict[str, SourceProgram]:
    """Programs of the corpus for whoever compiles their sources otherwise than it does.

    They are those that need no commands before they are compiled.

    Args:
        names: of the programs.
        packages: where the packages' sources are, or go; what is there is kept.

    Raises:
        OSFailure: one cannot be had, with what the script said.
    """
    wanted = [RECIPES[name].package for name in names]
    for said in fetch_packages(wanted, packages).values():
        raise OSFailure(f"the programs' sources cannot be fetched: {said}")
    return {name: source_program(name, packages.resolve()) for name in names}


def source_program(name: str, packages: Path) -> SourceProgram:
    """A program whose package is unpacked below a folder."""
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
    """What the names in braces stand for in a recipe."""
    return {
        "tree": str(packages / recipe.package),
        "made": str(made),
        "packages": str(packages),
        "scripts": str(SCRIPTS),
    }


def find_sources(recipe: Recipe, root: Path) -> list[str]:
    """The files that a recipe compiles, relative to the root.

    Raises:
        OSFailure: there is none.
    """
    found = {
        str(path.relative_to(root))
        for pattern in recipe.sources
        for path in root.glob(pattern)
    }
    kept = [s for s in found if not any(fnmatch(s, w) for w in recipe.without)]
    if not kept:
        raise OSFailure(f"none of {', '.join(recipe.sources)} is in {root}")
    return kept


def write_headers(recipe: Recipe, made: Path) -> None:
    """Writes the headers that a recipe has the text of."""
    made.mkdir(parents=True, exist_ok=True)
    for header, text in recipe.headers.items():
        (made / header).write_text(text, encoding="utf-8")


def filled(text: str, places: Mapping[str, str]) -> str:
    """A text of a recipe, with the paths of its places."""
    for name, path in places.items():
        text = text.replace(f"{{{name}}}", path)
    return text


def version_of(tree: Path) -> str:
    """The version in the first line of debian/changelog: `bzip2 (1.0.8-5) ...`."""
    with (tree / "debian/changelog").open(encoding="utf-8") as changelog:
        return changelog.readline().split("(", 1)[1].split(")", 1)[0]


def fetch_packages(
    names: Sequence[str],
    packages: Path,
    show: ShowStage = lambda stage, done, total: None,
) -> dict[str, str]:
    """Unpacks source packages; returns those that could not be had, and why."""
    command = [str(SCRIPTS / "fetch-workloads"), str(packages), *names]
    show("Fetching sources", 0, len(names))
    done = sum((packages / name).is_dir() for name in names)
    show("Fetching sources", done, len(names))

    def came(_: str) -> None:
        nonlocal done
        done += 1
        show("Fetching sources", done, len(names))

    said = run_script(command, came, FETCH_SECONDS)
    missing = [name for name in names if not (packages / name).is_dir()]
    reason = f": {said}" if said else ""
    return dict.fromkeys(missing, f"Debian's archive did not give its package{reason}")


def run_script(
    command: Sequence[str], line: Callable[[str], None], seconds: float
) -> str:
    """Runs a script, and ends it with all that it has started.

    ``line`` is told each line that it prints. Returns the last that it said of what
    went wrong; nothing if it went well.
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
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()[-_LAST:]
        if is_late.is_set():
            said.append(f"no end after {seconds:.0f} s")
        elif process.returncode:
            said.append(f"status {process.returncode}")
        else:
            return ""
        return "\n".join(said)


def _end_group(process: subprocess.Popen[str]) -> None:
    """Ends what a script has started; while it is not reaped, its number is its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
