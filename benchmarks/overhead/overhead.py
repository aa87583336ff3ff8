# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the plug-in and its models add to clang: bytes, milliseconds, memory."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from mlbridge import inprocess
from mlbridge.errors import ModelError, OSFailure
from mlbridge_benchmarks.threads import threads
from mlbridge_benchmarks.threads.threads import Source
from mlbridge_optimizations.corpus.toolchain import CLANG

SECONDS = 120.0
"""More than one compile takes."""

SMALLEST = """\
static int twice(int x) { return x + x; }
static int thrice(int x) { return x + twice(x); }
int f(int x) { return twice(x) + thrice(x) + thrice(x + 1); }
"""
"""Few lines that have something to be decided, so that a model is loaded."""


@dataclass(frozen=True)
class Variant:
    """clang, and what it is given."""

    name: str
    options: tuple[str, ...]
    files: tuple[Path, ...]
    """What it needs on disk beside clang."""
    asks: bool
    """Whether a model decides."""

    @property
    def disk_mib(self) -> float:
        """The size of those files."""
        return sum(path.stat().st_size for path in self.files) / 2**20


@dataclass
class Runs:
    """The compiles of one source by one variant."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    asked: int = 0
    """Decisions in one compile."""


Results = dict[tuple[str, str], Runs]
"""By the names of the source and of the variant."""


def clang_files() -> tuple[Path, ...]:
    """The stock compiler, and those of its libraries that are LLVM's."""
    clang = shutil.which(CLANG)
    if clang is None:
        raise OSFailure(f"there is no {CLANG}")
    listed = subprocess.run(["ldd", clang], check=True, capture_output=True, text=True)
    libraries = re.findall(r"=> (\S*lib(?:LLVM|clang)\S*)", listed.stdout)
    return tuple(Path(path).resolve() for path in (clang, *libraries))


def variants(plugin: Path, runners: Sequence[str], folder: Path) -> list[Variant]:
    """Stock clang, the plug-in alone, and the plug-in with each kind of model."""
    load = (f"-fpass-plugin={plugin}",)
    made = [
        Variant("stock", (), (), asks=False),
        Variant("plug-in", load, (plugin,), asks=False),
    ]
    for model in threads.models(runners, folder):
        files = [plugin, Path(model.spec.partition(":")[2])]
        if model.runner == "onnx" and (runtime := inprocess.onnxruntime()):
            files.append(runtime.resolve())
        options = [
            word
            for option in (
                f"-mlbridge-inliner={model.spec}",
                "-mlbridge-on-error=fatal",
                "-mlbridge-print-statistics",
            )
            for word in ("-mllvm", option)
        ]
        name = f"+ {model.runner}"
        made.append(Variant(name, (*load, *options), tuple(files), asks=True))
    return made


def compile_once(
    build: Path, variant: Variant, source: Source, output: Path
) -> tuple[dict[str, float], int]:
    """Compiles the source; returns what run-client found, and the decisions."""
    command: list[str | Path] = [build / "run-client", CLANG]
    command += ["-Oz", "-w", *source.flags]
    command += [*variant.options, "-c", source.path, "-o", output]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=threads.environment(),
    )
    asked = re.search(r"asked=(\d+) ", done.stderr)
    if done.returncode or (variant.asks and not asked):
        raise ModelError(
            f"{variant.name}, {source.name}: clang ended with status "
            f"{done.returncode}: {done.stderr.strip()}"
        )
    return json.loads(done.stdout), int(asked[1]) if asked else 0


def measure(
    build: Path,
    wanted: Sequence[Variant],
    sources: Sequence[Source],
    *,
    rounds: int,
    folder: Path,
    on_round: Callable[[], None],
) -> Results:
    """Compiles each source with each variant in turns; the first round warms up."""
    results: Results = {}
    for i in range(rounds + 1):
        for source in sources:
            for variant in wanted:
                found, asked = compile_once(build, variant, source, folder / "o.o")
                runs = results.setdefault((source.name, variant.name), Runs())
                runs.asked = asked
                if i > 0:
                    runs.seconds.append(found["seconds"])
                    runs.cpu_seconds.append(found["cpu_seconds"])
                    runs.rss_mib.append(found["rss_kib"] / 1024)
        on_round()
    return results


def added(values: Sequence[float], base: Sequence[float]) -> float:
    """The median of what runs of the same round differ by."""
    return median(a - b for a, b in zip(values, base, strict=True))


def rows(results: Results, wanted: Sequence[Variant]) -> list[dict[str, Any]]:
    """A row for each source and variant; what is added is against the first variant."""
    made = []
    sizes = {variant.name: variant.disk_mib for variant in wanted}
    for (source, name), runs in results.items():
        base = results[source, wanted[0].name]
        made.append(
            {
                "source": source,
                "clang": name,
                "disk_mib": round(sizes[name], 3),
                "asked": runs.asked,
                "ms": round(1e3 * median(runs.seconds), 2),
                "added_ms": round(1e3 * added(runs.seconds, base.seconds), 2),
                "cpu_ms": round(1e3 * median(runs.cpu_seconds), 2),
                "added_cpu_ms": round(
                    1e3 * added(runs.cpu_seconds, base.cpu_seconds), 2
                ),
                "ratio": round(median(runs.seconds) / median(base.seconds), 4),
                "rss_mib": round(median(runs.rss_mib), 2),
                "added_rss_mib": round(added(runs.rss_mib, base.rss_mib), 2),
                "rounds": len(runs.seconds),
            }
        )
    return made
