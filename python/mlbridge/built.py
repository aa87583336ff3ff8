# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds plug-ins and programs in a build or an installation."""

import os
import platform
import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
"""The checkout, which contains build/, if the package is installed in editable mode."""

PREFIXES = ("/usr/local", "/usr")
"""The prefixes under which to search for installed files."""


def find_built(name: str, variable: str = "") -> Path | None:
    """Finds a file that `make build` makes, such as MLBridgeLLVM.so.

    If the environment variable `variable` is set, its value is the file's path.
    Otherwise, the file is from the newest build, or else from an installation. Builds
    with sanitizers are ignored, because no stock compiler can load their plug-ins.
    """
    if variable and (named := os.environ.get(variable)):
        return Path(named) if Path(named).is_file() else None
    candidates: list[Path] = []
    if (CHECKOUT / "compilers").is_dir():
        for build in CHECKOUT.glob("build/*/"):
            here = [*build.glob(f"lib/{name}"), *build.glob(f"compilers/*/{name}")]
            candidates += here if here and not _is_sanitized(build) else []
        candidates.sort(key=lambda path: -path.stat().st_mtime)
    candidates += [
        Path(prefix, folder, name)
        for prefix in PREFIXES
        for folder in ("lib", f"lib/{platform.machine()}-linux-gnu", "bin")
    ]
    return next((path for path in candidates if path.is_file()), None)


def _is_sanitized(build: Path) -> bool:
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return bool(re.search(r"^MLBRIDGE_SANITIZE:\w+=.", cache, re.MULTILINE))
