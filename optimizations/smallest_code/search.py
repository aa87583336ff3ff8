# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for inlining decisions that reduce a program's linked size.

Also compiles programs with such decisions, and measures their size.
"""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from mlbridge.errors import CompilerFailed
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.corpus.toolchain import OPT, mllvm, plugin_flags, run
from mlbridge_optimizations.corpus.user_build import Build, Link, Unit

from .decisions import Decisions
from .linking import bitcode_command, relink, split_flags

_PROGRESS = re.compile(
    r"trials=(\d+) seconds=([\d.]+) sites=(\d+) stock=(\d+) best=(\d+)"
)


@dataclass(frozen=True)
class Progress:
    """The state of a search. Sizes are the linked code in bytes."""

    trials: int
    seconds: float  # CPU time.
    sites: int  # Call sites about which the inliner may decide.
    stock: int
    best: int


def search(
    bitcode: Path,
    decisions: Path,
    *,
    plugin: Path,
    seconds: float,
    seed: int = 1,
    start: Path | None = None,
    flips: Path | None = None,
    pipelines: Path | None = None,
    is_shared: bool = False,
    show: Callable[[Progress], None] = lambda _: None,
) -> Progress | None:
    """Searches for decisions about a program's module, and writes them to a file.

    Returns the last state, or None if there was no time for a trial. ``start`` is a
    file of decisions to start with. ``flips`` receives each trial as a line of JSON:
    the reversed decisions, and the change of the size. ``pipelines`` is an action space
    in JSON, whose pipelines are tried in place of -Oz's pipeline. Raises CompilerFailed
    if opt fails. An exception of ``show``, or a signal, ends opt.
    """
    options = [f"size-output={decisions}", f"size-seconds={seconds}"]
    options += [f"size-seed={seed}", *([f"size-start={start}"] if start else [])]
    options += [f"size-flips={flips}"] if flips else []
    options += [f"size-pipelines={pipelines}"] if pipelines else []
    options += ["size-shared"] if is_shared else []
    command = [OPT, f"-load-pass-plugin={plugin}", "-passes=mlbridge-size-search"]
    command += [f"-mlbridge-{option}" for option in options]
    command += ["-disable-output", str(bitcode)]
    last, said = None, []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := _PROGRESS.search(line):
                    trials, spent, sites, stock, best = found.groups()
                    last = Progress(
                        int(trials), float(spent), int(sites), int(stock), int(best)
                    )
                    show(last)
                else:
                    said.append(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CompilerFailed(
            f"status {process.returncode} from: {shlex.join(command)}\n"
            + "".join(said)[-2000:].strip()
        )
    return last


def replay_flags(decisions: Path) -> list[str]:
    """Returns the flags with which stock clang replays decisions.

    The calls need locations, which -Rpass=^$ and -fdebug-info-for-profiling add.
    """
    return mllvm(
        [
            f"-cgscc-inline-replay={decisions.resolve()}",
            "-cgscc-inline-replay-scope=Module",
            "-cgscc-inline-replay-fallback=Original",
            "-cgscc-inline-replay-format=LineColumnDiscriminator",
        ]
    )


def plugin_replay_flags(decisions: Path, plugin: Path) -> list[str]:
    """Returns the flags with which clang and the plug-in replay decisions."""
    return plugin_flags(plugin, f"size=decisions:{decisions.resolve()}")


def flags_to_replay(decisions: Path, plugin: Path | None = None) -> list[str]:
    """Returns the flags with which clang replays decisions.

    Only decisions that stock clang cannot replay need the plug-in. The default is the
    file that `mlbridge doctor` finds. Raises InvalidArgument if there is no such file.
    """
    if Decisions.read(decisions).needs_plugin:
        return plugin_replay_flags(decisions, plugin_of(plugin))
    return replay_flags(decisions)


@dataclass(frozen=True)
class Sizes:
    """The sizes of sections of a linked program, in bytes."""

    text: int
    eh_frame: int

    @classmethod
    def of(cls, path: Path) -> "Sizes":
        """Reads the sizes of a file."""
        with path.open("rb") as file:
            elf = ELFFile(file)
            sections = [
                elf.get_section_by_name(name) for name in (".text", ".eh_frame")
            ]
            return cls(*(one.data_size if one else 0 for one in sections))


def compile_units(
    units: Mapping[Path, Unit],
    command: Callable[[Unit], Sequence[str]],
    folder: Path,
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> dict[Path, tuple[Path, str]]:
    """Compiles files of a program to objects in a folder.

    ``units`` maps the objects of earlier compiles to files. ``command`` returns clang's
    command for a file, without the option -o. Returns, for each earlier object, the new
    object and the output of clang. Raises CompilerFailed.
    """

    def compile_one(unit: Unit) -> tuple[Path, str]:
        made = folder / f"{unit.bitcode.stem}.o"
        _, said = run([*command(unit), "-w", "-o", str(made)], folder=unit.folder)
        advance()
        return made, said.decode(errors="replace")

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(units, pool.map(compile_one, units.values()), strict=True))


def rebuild_from_source(
    build: Build, link: Link, flags: Sequence[str], to: Path, jobs: int
) -> Sizes:
    """Compiles the sources of a program with further flags of clang, and links it."""
    return _rebuild(build, link, lambda unit: [*unit.command, *flags], to, jobs)


def rebuild(
    build: Build, link: Link, flags: Sequence[str], to: Path, jobs: int
) -> Sizes:
    """Compiles the bitcode of a program with further flags of clang, and links it.

    Flags that begin with ``-Wl,`` are for the linker.
    """
    others, link = split_flags(link, flags)
    return _rebuild(
        build, link, lambda unit: [*bitcode_command(unit), *others], to, jobs
    )


def _rebuild(
    build: Build,
    link: Link,
    command: Callable[[Unit], Sequence[str]],
    to: Path,
    jobs: int,
) -> Sizes:
    with tempfile.TemporaryDirectory(prefix="mlbridge-rebuild-") as folder:
        made = compile_units(build.linked(link), command, Path(folder), jobs)
        relink(build, link, {old: new for old, (new, _) in made.items()}, to)
    return Sizes.of(to)
