# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares bzip2 compiled with the model and bzip2 compiled with clang alone.

The model runs in this process behind a pipe, in the compiler with ONNX Runtime, and in
the compiler as machine code. The plug-in counts the decisions, compares them with
LLVM's decisions in the same states, and measures the time of each request. Python
measures the time in the model.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory

from mlbridge import serving
from mlbridge.files import spec_of
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import link, mllvm, run

from .agreement import Agreement
from .policy import Policy
from .toolchain import compile_program, model_flags, text_size

# The SerDes for each way to reach the model in another process.
SERVED = {"pipe": "bitstream", "pipe, JSON": "json"}


@dataclass(frozen=True)
class Asked:
    """The plug-in's statistics about requests, for one or more translation units."""

    agreement: Agreement = field(default_factory=Agreement)  # Decisions on the same IR.
    sessions: int = 0  # The number of translation units with requests.
    first_us: float = 0.0  # Microseconds for all first requests, with the handshake.
    rest_us: float = 0.0  # Microseconds for all other requests.

    def __add__(self, other: "Asked") -> "Asked":
        ours, theirs = (vars(asked).values() for asked in (self, other))
        return Asked(*map(add, ours, theirs))

    @property
    def mean_us(self) -> float:
        """The mean microseconds of a request after the first."""
        return self.rest_us / max(1, self.agreement.decisions - self.sessions)

    @property
    def mean_first_us(self) -> float:
        """The mean microseconds of a translation unit's first request."""
        return self.first_us / max(1, self.sessions)


@dataclass(frozen=True)
class Build:
    """A program that was compiled and linked by clang alone or with the model."""

    program: Path  # The executable.
    text: int  # Bytes of text in the object files.
    objects: tuple[Path, ...] = ()
    way: str = ""  # The way to the model.
    asked: Asked = field(default_factory=Asked)
    model_us: float | None = None  # Mean time of a request in the Python model.
    # For the first build with the model: outputs that differ from the stock build's.
    # For other builds: object files that differ from the first build's.
    differences: tuple[str, ...] = ()


class UnexpectedStatistics(Exception):
    """The statistics are missing, or show that some decisions are not the model's."""


def build_stock(
    program: SourceProgram,
    into: Path,
    jobs: int,
    advance: Callable[[], None],
    flags: Sequence[str] = (),
) -> Build:
    """Compiles and links a program with clang. Without `flags`, no model is used."""
    objects, asked = [], Asked()
    for unit in compile_program(program, into, extra=lambda source: flags, jobs=jobs):
        objects.append(unit.object_file)
        asked += read_statistics(unit.stderr)
        advance()
    executable = into / program.name
    link(objects, (), executable)
    return Build(executable, text_size(objects), tuple(objects), asked=asked)


def build_by_model(
    program: SourceProgram,
    way: str,
    spec: str,
    plugin: Path,
    into: Path,
    advance: Callable[[], None],
) -> Build:
    """Compiles and links a program with the model of a spec."""
    options = ["-mlbridge-inliner-include-default", "-mlbridge-print-statistics"]
    flags = [*model_flags(plugin, spec), *mllvm(options)]
    # Run one compiler at a time, because parallel compilers would change the times.
    build = build_stock(program, into, 1, advance, flags)
    if not build.asked.agreement.decisions:
        raise UnexpectedStatistics("the compilers made no request")
    return replace(build, way=way)


def build_by_served_model(
    program: SourceProgram,
    policy: Policy,
    way: str,
    plugin: Path,
    into: Path,
    advance: Callable[[], None],
) -> Build:
    """Compiles and links a program with a policy in this process."""
    # Use a temporary folder, because the path of a socket must be short.
    with TemporaryDirectory(prefix="mlbridge-demo-") as folder:
        spec = spec_of("pipe", Path(folder) / "inliner")
        with serving(policy, spec, on_error="raise") as served:
            asking = f"{spec}?serdes={SERVED[way]}"
            build = build_by_model(program, way, asking, plugin, into, advance)
    model, asked = served.statistics, build.asked.agreement.decisions
    if model.requests != asked:
        raise UnexpectedStatistics(
            f"the compilers made {asked} requests, the model answered {model.requests}"
        )
    return replace(build, model_us=model.policy_microseconds)


def read_statistics(stderr: str) -> Asked:
    """Reads the lines of -mlbridge-print-statistics."""
    asked = Asked()
    for line in re.findall(r"^mlbridge-inliner: .*\basked=.*$", stderr, re.MULTILINE):
        pairs = re.findall(r"(\w+)=([\d.]+)", line)
        figures = {key: float(value) for key, value in pairs}
        count = int(figures["asked"])
        if count == 0:
            continue
        if figures.get("compared") != count or figures["deferred"] or figures["failed"]:
            raise UnexpectedStatistics(f"not all decisions are the model's: {line}")
        both = int(figures["both_inlined"])
        only_llvm = int(figures["default_inlined"]) - both
        only_model = int(figures["inlined"]) - both
        neither = count - both - only_llvm - only_model
        asked += Asked(
            Agreement(both, only_llvm, only_model, neither),
            sessions=1,
            first_us=figures["first_us"],
            rest_us=figures["total_us"] - figures["first_us"],
        )
    return asked


def compare_objects(first: Build, other: Build) -> list[str]:
    """Names the object files in which two builds differ."""
    return [
        f"{theirs.name}: not as by {first.way}"
        for ours, theirs in zip(first.objects, other.objects, strict=True)
        if ours.read_bytes() != theirs.read_bytes()
    ]


def compare_bzip2(
    stock: Build, other: Build, inputs: Sequence[Path], advance: Callable[[], None]
) -> list[str]:
    """Runs two builds of bzip2 on the same files. Describes each difference.

    Both builds compress each file with -1 and -9. The other build also decompresses the
    stock build's output.
    """
    differences = []
    for path in inputs:
        for level in ("-1", "-9"):
            packed, _ = run([stock.program, "--stdout", level], stdin=path)
            also_packed, _ = run([other.program, "--stdout", level], stdin=path)
            if packed != also_packed:
                differences.append(f"{path.name}: compressed with {level}")
            with TemporaryDirectory(prefix="mlbridge-demo-") as folder:
                archive = Path(folder) / "packed.bz2"
                archive.write_bytes(packed)
                unpacked, _ = run([other.program, "--stdout", "-d"], stdin=archive)
            if unpacked != path.read_bytes():
                differences.append(f"{path.name}: decompressed after {level}")
        advance()
    return differences
