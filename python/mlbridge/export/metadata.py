# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata of an exported model. See docs/reference/model-metadata.md."""

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


def _commit() -> str | None:
    """Returns the current folder's commit, with ``-dirty`` if files were changed."""
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
    """Returns the command line, with paths relative to the current folder."""
    _, *words = sys.orig_argv
    scripts = Path(sysconfig.get_path("scripts"))
    if words and Path(words[0]).absolute().parent == scripts:
        words[0] = Path(words[0]).name
    else:
        words.insert(0, "python")
    here = Path.cwd()
    return shlex.join(
        str(Path(w).relative_to(here)) if Path(w).is_relative_to(here) else w
        for w in words
    )


def _date() -> str:
    """Returns the current time, or SOURCE_DATE_EPOCH for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return now.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Training:
    """The origin of a model. All fields except `seed` have useful defaults.

    Attributes:
        commit: the commit of the sources, with ``-dirty`` if files were changed.
        command: the command that trained or exported the model.
        seed: the random seed of the training.
        date: the time of the export, in ISO 8601.
    """

    commit: str | None = field(default_factory=_commit)
    command: str = field(default_factory=_command)
    seed: int | None = None
    date: str = field(default_factory=_date)

    def to_json(self) -> str:
        """Returns the value of ``mlbridge.training``. Omits unknown fields."""
        return json.dumps({k: v for k, v in vars(self).items() if v is not None})


@dataclass(frozen=True)
class Metadata:
    """The user's description of a model.

    Attributes:
        reward: a description of the reward in training.
        vocabulary: the name and hash of the vocabulary of the embeddings.
        finite: whether runners refuse features that are NaN or infinite.
        training: the origin of the model.
        more: maps further keys to values.
    """

    reward: str | None = None
    vocabulary: tuple[str, str] | None = None
    finite: bool = True
    training: Training = field(default_factory=Training)
    more: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yields the keys and values of all metadata that are not from the policy."""
        yield "mlbridge.finite", str(self.finite).lower()
        yield "mlbridge.training", self.training.to_json()
        if self.reward:
            yield "mlbridge.reward", self.reward
        if self.vocabulary:
            name, digest = self.vocabulary
            yield "mlbridge.vocabulary", json.dumps({"name": name, "hash": digest})
        yield from self.more.items()
