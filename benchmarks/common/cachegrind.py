# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the instructions of a process with valgrind.

Other load on the machine does not affect the counts.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from mlbridge.errors import ModelError

# The time limit of a compile, which is long because valgrind is slow.
SECONDS = 3600.0


def counting(command: Sequence[str], log: Path) -> list[str]:
    """Returns a command that runs ``command`` under valgrind and writes the log.

    Addresses are not random, because hash tables would differ between runs.
    """
    return [
        *("setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"),
        *(f"--log-file={log}", "--cachegrind-out-file=/dev/null"),
        *command,
    ]


def instructions(log: Path) -> int:
    """Returns the number of instructions in a log. Raises ModelError if it has none."""
    text = log.read_text()
    found = re.search(r"I\s+refs:\s+([\d,]+)", text)
    if found is None:
        raise ModelError(f"valgrind counted nothing:\n{text.strip()}")
    return int(found[1].replace(",", ""))
