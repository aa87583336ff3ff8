# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an exported model's file says of itself: see docs/model-metadata.md."""

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def _commit() -> str | None:
    """The commit of the current folder, marked where files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _command() -> str:
    """As one types it here: where Python and this folder are is of no use elsewhere."""
    _, *words = sys.orig_argv
    if words and Path(words[0]).absolute().parent == _SCRIPTS:
        words[0] = Path(words[0]).name
    else:
        words.insert(0, "python")
    return shlex.join(_from_here(word) for word in words)


_SCRIPTS = Path(sysconfig.get_path("scripts"))


def _from_here(word: str) -> str:
    path = Path(word)
    here = Path.cwd()
    inside = path.is_absolute() and path.is_relative_to(here)
    return str(path.relative_to(here)) if inside else word


def _date() -> str:
    """Now, or SOURCE_DATE_EPOCH, by which builds are made reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return now.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Training:
    """How a model came about; what is left out is found out, but for the seed.

    Attributes:
        commit: of the sources that trained it; ``-dirty`` where they were changed.
        command: that trained, or exported, it.
        seed: of its training.
        date: of the export, ISO 8601.
    """

    commit: str | None = field(default_factory=_commit)
    command: str = field(default_factory=_command)
    seed: int | None = None
    date: str = field(default_factory=_date)

    def to_json(self) -> str:
        """The value of ``mlbridge.training``, without what is not known."""
        return json.dumps({k: v for k, v in vars(self).items() if v is not None})


@dataclass(frozen=True)
class Metadata:
    """What the user says of a model.

    Attributes:
        reward: what it was trained for, in words.
        vocabulary: what its embeddings are made with: its name, and a hash of it.
        finite: whether features that are NaN or infinite are to be refused.
        training: how it came about.
        more: other entries, by their keys.
    """

    reward: str | None = None
    vocabulary: tuple[str, str] | None = None
    finite: bool = True
    training: Training = field(default_factory=Training)
    more: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[str, str]]:
        """The metadata of the file, but for what is known from the policy."""
        yield "mlbridge.finite", str(self.finite).lower()
        yield "mlbridge.training", self.training.to_json()
        if self.reward:
            yield "mlbridge.reward", self.reward
        if self.vocabulary:
            name, digest = self.vocabulary
            vocabulary: dict[str, Any] = {"name": name, "hash": digest}
            yield "mlbridge.vocabulary", json.dumps(vocabulary)
        yield from self.more.items()
