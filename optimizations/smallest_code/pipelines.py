# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the pipelines in which a search looks for smaller code."""

import json
from pathlib import Path

from mlbridge.errors import InvalidArgument, Malformed


def read_pipelines(path: Path, space: Path) -> dict[str, str]:
    """Reads pipelines by name, and writes them to ``space`` as an action space.

    The file is a core set, as in models/phase-ordering-oz, or an action space. Raises
    InvalidArgument if it cannot be read, or Malformed.
    """
    try:
        root = json.loads(path.read_text(encoding="utf-8"))
        root = root["actions"] if isinstance(root["actions"], dict) else root
        before = root.get("prologue", "")
        found = {
            action["name"]: ",".join(filter(None, (before, action["pipeline"])))
            for action in root["actions"]
        }
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"{path}: expected a core set: {error!r}") from error
    space.write_text(json.dumps(root), encoding="utf-8")
    return found
