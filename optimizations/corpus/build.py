# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles Debian source packages to bitcode."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlbridge.errors import Error, InvalidArgument
from mlbridge_optimizations.show import ShowStage, quiet

from . import toolchain
from .manifest import LINKED, Corpus, Module, Program, is_cpp, load, sha256
from .recipes import RECIPES, split_of
from .sources import (
    PACKAGES,
    fetch_packages,
    filled,
    find_sources,
    places_of,
    version_of,
    write_headers,
)


@dataclass
class Fetched:
    """The result of a fetch."""

    corpus: Corpus  # Includes the programs of earlier fetches.
    made: list[str] = field(default_factory=list)  # Programs that were compiled.
    failed: dict[str, str] = field(default_factory=dict)  # Maps programs to reasons.


# A program that has no modules yet, and its sources by decreasing size.
_Prepared = tuple[Program, list[str]]


def fetch(
    folder: str | os.PathLike[str],
    *,
    programs: Sequence[str] | None = None,
    packages: Path | None = None,
    jobs: int | None = None,
    show: ShowStage = quiet,
) -> Fetched:
    """Makes a corpus, or adds missing programs to it.

    Programs that cannot be fetched or compiled are reported and left out. A program in
    the corpus is kept if its sources and the compiler are unchanged. Packages are
    fetched to ``packages``. Up to ``jobs`` compilers run in parallel, by default one
    per core. InvalidArgument is raised for an unknown program.
    """
    wanted = list(RECIPES) if programs is None else list(dict.fromkeys(programs))
    for name in wanted:
        if name not in RECIPES:
            raise InvalidArgument(f"no program '{name}', only {', '.join(RECIPES)}")
    into, packages = Path(folder).resolve(), (packages or PACKAGES).resolve()
    into.mkdir(parents=True, exist_ok=True)
    with alone(into), ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        fetched = Fetched(open_corpus(into))
        missing = fetch_packages([RECIPES[n].package for n in wanted], packages, show)
        preparing: dict[Future[_Prepared], str] = {}
        for name in wanted:
            if (package := RECIPES[name].package) in missing:
                fetched.failed[name] = missing[package]
            else:
                by = (name, packages, into, fetched.corpus)
                preparing[pool.submit(_prepare, *by)] = name
        _compile_all(preparing, into, fetched, pool, show)
    return fetched


def open_corpus(folder: Path) -> Corpus:
    """Reads a folder's corpus. Returns an empty corpus if another compiler made it."""
    compiler = toolchain.compiler_version()
    try:
        corpus = load(folder)
    except InvalidArgument:
        return Corpus(folder, compiler)
    return corpus if corpus.compiler == compiler else Corpus(folder, compiler)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Locks a folder. A second writer waits, and reuses the first one's programs."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare(name: str, packages: Path, into: Path, corpus: Corpus) -> _Prepared:
    """Runs the recipe's commands. Returns no sources if the program is up to date."""
    recipe = RECIPES[name]
    made = into / "made" / name
    places = places_of(recipe, packages, made)
    root = Path(filled(recipe.root, places))
    version = version_of(packages / recipe.package)
    flags = (
        *toolchain.UNOPTIMISED,
        # Remove folder names, so that the bitcode is the same in all folders.
        *(f"-ffile-prefix-map={path}=." for path in (made, root)),
        *(filled(flag, places) for flag in recipe.flags),
    )
    key = hashlib.sha256(repr((recipe, version, flags)).encode()).hexdigest()
    old = corpus.programs.get(name)
    if (
        old is not None
        and old.key == key
        and all((into / it.path).is_file() for it in (*old.modules, old.linked))
    ):
        return old, []
    shutil.rmtree(made, ignore_errors=True)
    write_headers(recipe, made)
    for command in recipe.commands:
        toolchain.run([filled(word, places) for word in command], folder=made)
    sources = find_sources(recipe, root)
    # Start with the largest source, so that all cores finish together.
    sources.sort(key=lambda source: (-(root / source).stat().st_size, source))
    about = (name, recipe.package, version, split_of(name), flags, recipe.libraries)
    return Program(*about, str(root), (), Module("", "", 0, 0, ""), key), sources


def _compile_all(
    preparing: dict[Future[_Prepared], str],
    into: Path,
    fetched: Fetched,
    pool: ThreadPoolExecutor,
    show: ShowStage,
) -> None:
    ready: list[_Prepared] = []
    for done, future in enumerate(as_completed(preparing), 1):
        show("Preparing", done, len(preparing))
        try:
            ready.append(future.result())
        except Error as error:
            fetched.failed[preparing[future]] = str(error)
    total, done = sum(len(sources) for _, sources in ready), 0
    compiling = [
        [
            pool.submit(compile_module, it.name, Path(it.root), it.flags, source, into)
            for source in sources
        ]
        for it, sources in ready
    ]
    for (it, _), units in zip(ready, compiling, strict=True):
        modules = []
        for unit in units:
            try:
                modules.append(unit.result())
            except Error as error:
                fetched.failed.setdefault(it.name, str(error))
            done += 1
            show("Compiling", done, total)
        if units and it.name not in fetched.failed:
            try:
                fetched.corpus.programs[it.name] = link_modules(it, modules, into)
                fetched.corpus.save()
                fetched.made.append(it.name)
            except Error as error:
                fetched.failed[it.name] = str(error)


def compile_module(
    program: str, root: Path, flags: Sequence[str], source: str, into: Path
) -> Module:
    """Compiles one source file to bitcode and counts its instructions."""
    target = into / program / f"{source.replace('/', '_')}.bc"
    target.parent.mkdir(exist_ok=True)
    compiler = toolchain.CLANGXX if is_cpp(source) else toolchain.CLANG
    flags = (*flags, "-emit-llvm", "-c")
    toolchain.run([compiler, *flags, source, "-o", target], folder=root)
    return describe(target, into, source)


def describe(path: Path, folder: Path, source: str = "") -> Module:
    """Returns the manifest's entry of a bitcode file."""
    name = str(path.relative_to(folder))
    return Module(name, source, *toolchain.size_of(path), sha256(path))


def link_modules(program: Program, modules: Sequence[Module], into: Path) -> Program:
    """Links a program's modules into one. Returns the program with all modules."""
    in_order = tuple(sorted(modules, key=lambda module: module.path))
    target = into / LINKED / f"{program.name}.bc"
    target.parent.mkdir(exist_ok=True)
    toolchain.link_bitcode([into / module.path for module in in_order], target)
    return replace(program, modules=in_order, linked=describe(target, into))
