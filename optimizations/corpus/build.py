# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a Debian source package to bitcode."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mlbridge.errors import Error, InvalidArgument
from mlbridge_optimizations.show import ShowStage

from . import toolchain
from .manifest import LINKED, Corpus, Module, Program, is_cpp, load, sha256
from .recipes import RECIPES, Recipe, split_of
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
    """What came of a fetch."""

    corpus: Corpus  # With what was there before, too.
    # The programs that were compiled now.
    made: list[str] = field(default_factory=list)
    # Why there is nothing of some, by name.
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Prepared:
    name: str
    recipe: Recipe
    root: Path
    version: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    key: str


def fetch(
    folder: str | os.PathLike[str],
    *,
    programs: Sequence[str] | None = None,
    packages: Path | None = None,
    jobs: int | None = None,
    show: ShowStage = lambda stage, done, total: None,
) -> Fetched:
    """Makes a corpus, or what is missing in it.

    A program that cannot be had, or does not compile, is told of and left out. What is
    there, from the same sources by the same compiler, is left alone; a fetch that was
    cut short goes on with the program that it was at.

    Args:
        folder: for the corpus.
        programs: their names; all by default.
        packages: where the packages' sources are, or go.
        jobs: how many compilers at once; as many as there are cores.
        show: is told how far it is.

    Raises:
        InvalidArgument: there is no such program.
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
        preparing: dict[str, Future[_Prepared]] = {}
        for name in wanted:
            if RECIPES[name].package in missing:
                fetched.failed[name] = missing[RECIPES[name].package]
            else:
                preparing[name] = pool.submit(
                    _prepare, name, packages, into, fetched.corpus
                )
        _compile_all(preparing, into, fetched, pool, show)
    return fetched


def open_corpus(folder: Path) -> Corpus:
    """What a folder has; nothing, where another compiler made it."""
    compiler = toolchain.compiler_version()
    try:
        corpus = load(folder)
    except InvalidArgument:
        return Corpus(folder, compiler)
    return corpus if corpus.compiler == compiler else Corpus(folder, compiler)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two writers of one folder: the second waits, and finds what the first made."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare(name: str, packages: Path, into: Path, corpus: Corpus) -> _Prepared:
    """Runs what the recipe asks for before the first file is compiled."""
    recipe = RECIPES[name]
    made = into / "made" / name
    places = places_of(recipe, packages, made)
    root = Path(filled(recipe.root, places))
    version = version_of(packages / recipe.package)
    flags = (
        *toolchain.UNOPTIMISED,
        # The same bytes, wherever the folders are.
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
        return _Prepared(name, recipe, root, version, (), flags, key)

    shutil.rmtree(made, ignore_errors=True)
    write_headers(recipe, made)
    for command in recipe.commands:
        toolchain.run([filled(word, places) for word in command], folder=made)
    kept = find_sources(recipe, root)
    # The largest first: no core should be left with one at the end.
    kept.sort(key=lambda source: (-(root / source).stat().st_size, source))
    return _Prepared(name, recipe, root, version, tuple(kept), flags, key)


def _compile_all(
    preparing: dict[str, Future[_Prepared]],
    into: Path,
    fetched: Fetched,
    pool: ThreadPoolExecutor,
    show: ShowStage,
) -> None:
    """Compiles programs as they get ready, and notes each when it is whole."""
    prepared: list[_Prepared] = []
    for done, future in enumerate(as_completed(preparing.values()), 1):
        show("Preparing", done, len(preparing))
        name = next(name for name, it in preparing.items() if it is future)
        try:
            prepared.append(future.result())
        except Error as error:
            fetched.failed[name] = str(error)
    ready = [it for it in prepared if it.sources]
    total, done = sum(len(it.sources) for it in ready), 0
    compiling = {
        it.name: [
            pool.submit(compile_module, it.name, it.root, it.flags, source, into)
            for source in it.sources
        ]
        for it in ready
    }
    for it in ready:
        modules = []
        for unit in compiling[it.name]:
            try:
                modules.append(unit.result())
            except Error as error:
                fetched.failed.setdefault(it.name, str(error))
            done += 1
            show("Compiling", done, total)
        if it.name in fetched.failed:
            continue
        try:
            fetched.corpus.programs[it.name] = _linked(it, modules, into)
        except Error as error:
            fetched.failed[it.name] = str(error)
            continue
        fetched.corpus.save()
        fetched.made.append(it.name)


def compile_module(
    program: str, root: Path, flags: Sequence[str], source: str, into: Path
) -> Module:
    """Compiles one source file to bitcode, and counts what is in it."""
    target = into / program / f"{source.replace('/', '_')}.bc"
    target.parent.mkdir(exist_ok=True)
    compiler = toolchain.CLANGXX if is_cpp(source) else toolchain.CLANG
    toolchain.run(
        [compiler, *flags, "-emit-llvm", "-c", source, "-o", target], folder=root
    )
    return describe(target, into, source)


def describe(path: Path, folder: Path, source: str = "") -> Module:
    """The manifest's entry of a bitcode file."""
    functions, instructions = toolchain.size_of(path)
    return Module(
        str(path.relative_to(folder)), source, functions, instructions, sha256(path)
    )


def _linked(it: _Prepared, modules: Sequence[Module], into: Path) -> Program:
    in_order = sorted(modules, key=lambda module: module.path)
    target = into / LINKED / f"{it.name}.bc"
    target.parent.mkdir(exist_ok=True)
    toolchain.link_bitcode([into / module.path for module in in_order], target)
    return Program(
        it.name,
        it.recipe.package,
        it.version,
        split_of(it.name),
        it.flags,
        it.recipe.libraries,
        str(it.root),
        tuple(in_order),
        describe(target, into),
        it.key,
    )
