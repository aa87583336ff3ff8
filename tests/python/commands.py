# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks commands of ``mlbridge`` without running them."""

import shlex
from collections.abc import Sequence
from typing import Any

from typer.main import get_command

from mlbridge.cli import app


def check_command(words: Sequence[str]) -> None:
    """Raises an exception unless `mlbridge WORDS` has known names and options.

    Files that the words name need not exist. The word after a group's name is the name
    of a command in the group.
    """
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "get_command"):
        assert rest, f"mlbridge {shlex.join(words)}: no command"
        found = command.get_command(None, rest[0])
        assert found is not None, f"mlbridge {shlex.join(words)}: no {rest[0]!r}"
        command = found
        del rest[0]
    try:
        command.make_context(command.name, rest)
    except Exception as error:
        said = f"mlbridge {shlex.join(words)}: {error}"
        assert "does not exist" in str(error), said
