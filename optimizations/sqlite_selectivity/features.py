# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks SQLite's extension for the features of statements."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mlbridge
from mlbridge.built import CHECKOUT, PREFIXES
from mlbridge.errors import CompilerFailed, Unsupported
from mlbridge_optimizations.built import built_of

from .tables import literal

Rows = dict[str, NDArray[Any]]
"""The features of n terms, each with a first extent of n."""

HEADER = "MLBridgeSQLite.h"


def find_extension(given: Path | None = None) -> Path:
    """Returns SQLite's extension. Raises InvalidArgument if it does not exist."""
    return built_of(
        given, "mlbridge_sqlite.so", option="--extension", package="libsqlite3-dev"
    )


def find_header() -> Path:
    """Returns the folder of MLBridgeSQLite.h. Raises Unsupported if it is missing."""
    folders = [CHECKOUT / "compilers/sqlite", *(Path(p, "include") for p in PREFIXES)]
    for folder in folders:
        if (folder / HEADER).is_file():
            return folder
    raise Unsupported(f"found no {HEADER}: install the extension with its header")


def features_of(
    database: Path, extension: Path, statements: Sequence[str]
) -> list[Rows | None]:
    """Returns the features of each statement, or None if it has no terms.

    The stock shell `sqlite3` loads the extension. Raises CompilerFailed if the shell
    fails.
    """
    shell = shutil.which("sqlite3")
    if shell is None:
        raise Unsupported("found no program sqlite3: apt-get install sqlite3")
    asked: list[Rows] = []

    def collect(features: Mapping[str, Any]) -> NDArray[np.float32]:
        asked.append({name: np.array(value) for name, value in features.items()})
        return np.full(len(features["tables"]), 0.5, np.float32)

    lines = [
        f"select mlbridge_rewrite({text}) <> {text};"
        for text in map(literal, statements)
    ]
    # The shell removes the quotes and the backslashes.
    library = re.sub(r'(["\\])', r"\\\1", str(extension))
    # The settings in ~/.sqliterc could change the output.
    options = ("-init", os.devnull, "-readonly", "-bail", "-batch")
    with tempfile.TemporaryDirectory(prefix="mlbridge-") as folder:
        spec = f"shm:{folder}/features"
        with mlbridge.serving(collect, spec):
            done = subprocess.run(
                [shell, *options, database.resolve()],
                input="\n".join([f'.load "{library}"', *lines]),
                env={**os.environ, "MLBRIDGE_SQLITE_MODEL": spec},
                capture_output=True,
                text=True,
                timeout=60 + len(lines) / 10,
                check=False,
            )
    answers = done.stdout.split()
    if done.returncode or done.stderr or len(answers) != len(statements):
        raise CompilerFailed(
            f"sqlite3 with {extension} failed: {done.stderr.strip() or answers[-3:]}"
        )
    found = iter(asked)
    return [next(found) if answer == "1" else None for answer in answers]


def joined(parts: Sequence[Rows]) -> Rows:
    """Returns the features of all terms as if they were of one statement.

    Terms of different parts restrict different tables.
    """
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    counts = [len(part["tables"]) for part in parts]
    found["tables"] = np.repeat(np.arange(len(parts), dtype=np.int32), counts)
    return found
