# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""csmith: random C programs without undefined behaviour, for differential tests.

What one prints is a checksum of its variables: however it is optimised, it must stay
the same. They are no programs to learn from, and are in no split but their own.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlbridge.errors import CompilerFailed, Timeout

from . import toolchain
from .build import alone, compile_module, open_corpus
from .manifest import Corpus, Program
from .sources import PACKAGES, SCRIPTS

SECONDS = 3.0  # One that runs longer without optimisation is no test: some never end.
_TRIES = 4  # Programs to look at for each that is wanted; 19 of 20 come to an end.


def generate(
    folder: str | os.PathLike[str],
    count: int,
    seed: int,
    *,
    packages: Path | None = None,
    jobs: int | None = None,
    show: Callable[[int], None] = lambda done: None,
) -> Corpus:
    """Adds random programs to a corpus, those of the seeds from ``seed`` on.

    Args:
        folder: of the corpus; it need not be one yet.
        count: how many; one that does not compile, crashes, or does not end within 3 s
            is left out, and another seed's taken.
        seed: of the first.
        packages: where csmith is, or goes.
        jobs: how many at once; as many as there are cores.
        show: is told how many there are.

    Raises:
        CompilerFailed: csmith cannot be had, or too few of its programs end.
    """
    into, packages = Path(folder).resolve(), (packages or PACKAGES).resolve()
    into.mkdir(parents=True, exist_ok=True)
    toolchain.run([SCRIPTS / "fetch-csmith", packages])
    csmith = packages / "csmith/usr"
    with alone(into):
        return _add(into, count, seed, csmith, jobs or os.cpu_count() or 1, show)


def _add(
    into: Path,
    count: int,
    seed: int,
    csmith: Path,
    workers: int,
    show: Callable[[int], None],
) -> Corpus:
    corpus = open_corpus(into)
    made: list[Program] = []
    failures: list[str] = []

    def attempt(number: int) -> Program | None:
        try:
            return _make(number, csmith, into, corpus)
        except (CompilerFailed, Timeout) as error:
            # One that does not compile, or crashes, is no test: another is taken.
            failures.append(f"csmith-{number}: {error}")
            return None

    with ThreadPoolExecutor(workers) as pool:
        tried = 0
        while len(made) < count and tried < _TRIES * count + 10:
            # Always in the order of the seeds: the same programs for the same seed.
            wave = range(seed + tried, seed + tried + max(workers, count - len(made)))
            tried += len(wave)
            for program in pool.map(attempt, wave):
                if program is not None and len(made) < count:
                    made.append(program)
                    show(len(made))
    if len(made) < count:
        such = f", such as {failures[-1]}" if failures else ""
        raise CompilerFailed(
            f"of {tried} programs of csmith from seed {seed} on, {len(made)} compile, "
            f"and end within {SECONDS:.0f} s; {count} were wanted{such}"
        )
    corpus.programs.update({program.name: program for program in made})
    corpus.save()
    return corpus


def _make(seed: int, csmith: Path, into: Path, corpus: Corpus) -> Program:
    name = f"csmith-{seed}"
    if name in corpus.programs:
        return corpus.programs[name]
    made = into / "made/csmith"
    made.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mlbridge-csmith-") as folder:
        # It leaves a file where it runs.
        text, _ = toolchain.run(
            [csmith / "bin/csmith", "--seed", str(seed)], folder=Path(folder)
        )
    (made / f"{name}.c").write_bytes(text)
    flags = (*toolchain.UNOPTIMISED, f"-I{csmith / 'include/csmith'}")
    module = compile_module(name, made, flags, f"{name}.c", into)
    key = hashlib.sha256(text).hexdigest()
    program = Program(
        name,
        "csmith",
        text.split(b"csmith ", 1)[1].split(b"\n", 1)[0].decode(),
        "generated",
        flags,
        (),
        str(made),
        (module,),
        module,
        key,
    )
    with tempfile.TemporaryDirectory(prefix="mlbridge-csmith-") as folder:
        executable = Path(folder, name)
        toolchain.executable(program, executable, "-O0")
        toolchain.run([executable], seconds=SECONDS)
    return program
