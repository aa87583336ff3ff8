# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates random C programs for differential tests with csmith.

The programs have defined behaviour, so no optimisation may change the checksums that
they print. They have their own split, because they are unsuitable for training.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlbridge.errors import CompilerFailed, Timeout
from mlbridge_optimizations.show import quiet

from . import toolchain
from .build import alone, compile_module, open_corpus
from .manifest import Corpus, Program
from .sources import PACKAGES, SCRIPTS

SECONDS = 3.0  # The time limit of an unoptimised run. Some programs never end.
_TRIES = 4  # The maximum attempts per program. 95 % of programs end in time.


def generate(
    folder: str | os.PathLike[str],
    count: int,
    seed: int,
    *,
    jobs: int | None = None,
    show: Callable[[int], None] = quiet,
) -> Corpus:
    """Adds ``count`` random programs to a corpus. Their seeds start at ``seed``.

    A program that crashes, runs for more than 3 s or cannot be compiled is replaced by
    a program with another seed. ``jobs`` programs are made in parallel, by default one
    per core. Raises CompilerFailed if csmith is missing or too few programs succeed.
    """
    into, packages = Path(folder).resolve(), PACKAGES.resolve()
    into.mkdir(parents=True, exist_ok=True)
    toolchain.run([SCRIPTS / "fetch-csmith", packages])
    made: list[Program] = []
    failures: list[str] = []

    def attempt(number: int) -> Program | None:
        try:
            return _make(number, packages / "csmith/usr", into, corpus)
        except (CompilerFailed, Timeout) as error:
            failures.append(f"csmith-{number}: {error}")
            return None

    workers = jobs or os.cpu_count() or 1
    with alone(into), ThreadPoolExecutor(workers) as pool:
        corpus = open_corpus(into)
        tried = 0
        while len(made) < count and tried < _TRIES * count + 10:
            # Keep the order of the seeds, so that the result is reproducible.
            wave = range(seed + tried, seed + tried + max(workers, count - len(made)))
            tried += len(wave)
            for program in pool.map(attempt, wave):
                if program is not None and len(made) < count:
                    made.append(program)
                    show(len(made))
        if len(made) < count:
            such = f", such as {failures[-1]}" if failures else ""
            raise CompilerFailed(
                f"expected {count} programs of csmith that compile and end within"
                f" {SECONDS:.0f} s, found {len(made)} in {tried} from seed {seed}{such}"
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
    with tempfile.TemporaryDirectory(prefix="mlbridge-csmith-") as temporary:
        folder = Path(temporary)
        # Run csmith in a temporary folder, because it writes a file there.
        command = (str(csmith / "bin/csmith"), "--seed", str(seed))
        text, _ = toolchain.run(command, folder=folder)
        (made / f"{name}.c").write_bytes(text)
        flags = (*toolchain.UNOPTIMISED, f"-I{csmith / 'include/csmith'}")
        module = compile_module(name, made, flags, f"{name}.c", into)
        version = text.split(b"csmith ", 1)[1].split(b"\n", 1)[0].decode()
        about = (name, "csmith", version, "generated", flags, (), str(made))
        key = hashlib.sha256(text).hexdigest()
        program = Program(*about, (module,), module, key)
        toolchain.executable(program, folder / name, "-O0")
        toolchain.run([folder / name], seconds=SECONDS)
    return program
