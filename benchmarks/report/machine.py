# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the machine and the software with which a report was measured."""

import os
import platform
import re
import subprocess
from pathlib import Path

from mlbridge.doctor import checks
from mlbridge_benchmarks.common.processes import ROOT

SHOWN = (
    *("python", "clang-22", "cc", "onnxruntime", "torch", "tensorflow"),
    *("stable_baselines3", "ray"),
)
"""The parts of ``mlbridge doctor`` on which times depend."""


def _first(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip(' "') if found else ""


def commit() -> str:
    """Returns the checkout's commit, with "+" if tracked files have changed."""
    git = ["git", "-C", str(ROOT)]
    try:
        head, changed = (
            subprocess.run(
                [*git, *words], capture_output=True, text=True, check=True, timeout=60
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head}{'+' if changed else ''}"


def load() -> float:
    """Returns the load average of the last minute."""
    return os.getloadavg()[0]


def describe() -> dict[str, str]:
    """Returns the properties of the machine, by name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {
        "CPU": _first("/proc/cpuinfo", r"^model name\s*: (.*)$") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": _first("/etc/os-release", r"^PRETTY_NAME=(.*)$"),
        "kernel": f"{platform.system()} {platform.release()}",
    }
    for check in checks():
        if check.name in SHOWN and check.found:
            # Leave out paths of this machine, which readers do not need.
            found[check.name] = check.found.partition(" (")[0]
    return {name: value for name, value in found.items() if value}
