# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench inliner``."""

import re
import shlex
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from mlbridge import aot
from mlbridge.errors import ModelError
from mlbridge.files import spec_of
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.imitation import MODEL
from mlbridge_benchmarks.common.processes import ROOT, WORKLOADS, find_build, timed
from mlbridge_benchmarks.common.tables import plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.sources import unpack

RULE = "cost-rule"  # The plug-in with nobody to ask: CostRuleModule.cpp beside this.
# The same, which asks whoever is behind it before it decides by the rule.
ASKING = "cost-rule+ask|"

# How much more of a compile the requests may be, by the scheme of the model.
LIMITS = {"builtin": 0.01, "aot": 0.01, "onnx": 0.05}

# More than the slowest compile takes, also where each instruction is counted.
SECONDS = 3600.0

# What is decided in these: nothing, and one call.
NO_CALL = "int f(int x) { return x; }\n"
ONE_CALL = "static int f(int x) { return x; }\nint g(int x) { return f(x); }\n"


@dataclass(frozen=True)
class Compile:
    """A compile: what of, and by what clang."""

    source: Path
    flags: tuple[str, ...]
    plugin: Path
    modules: Path


@dataclass(frozen=True)
class Run:
    """What one compile said and took; what was not measured is 0."""

    object_file: bytes
    decisions: int
    first_us: float
    mean_us: float
    cpu_ms: float
    wall_ms: float
    instructions: int = 0

    @property
    def start_up_ms(self) -> float:
        """What the first request took more than the others."""
        return (self.first_us - self.mean_us) / 1000

    @property
    def asking(self) -> float:
        """Its requests after the first, as a part of the compile.

        On a busy machine both take longer alike.
        """
        return self.mean_us * self.decisions / 1000 / self.wall_ms


@dataclass(frozen=True)
class Row:
    """What asking one model costs."""

    scheme: str
    source: str
    decisions: int
    runs: int
    start_up_ms: float  # Of a process, in its first request.
    us_per_decision: float
    # The requests after the first, as a part of the compile by the rule.
    time_share: float
    cpu_ms_rule: float
    cpu_ms_stock: float
    # With the model's own decisions, as the one for stock is clang's own.
    cpu_ms: float
    # Of a compile that asks nothing, beside one by the rule.
    instructions_before_first: int = 0
    start_up_instructions: int = 0
    instructions_per_decision: float = 0.0
    instructions_rule: int = 0
    instructions_stock: int = 0
    instructions: int = 0

    @property
    def share(self) -> float | None:
        """The same by instructions, if these were counted."""
        if not self.instructions_rule:
            return None
        asking = self.instructions_per_decision * self.decisions
        return asking / self.instructions_rule


def run(what: Compile, spec: str | None, *, count: bool = False) -> Run:
    """Compiles once with the model that a spec names; None: with clang alone.

    Counting instructions, by valgrind, makes it some thirty times as slow.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as folder:
        target, counted = Path(folder, "out.o"), Path(folder, "counted")
        command = [toolchain.CLANG, "-Oz", "-w", *what.flags]
        if spec is not None:
            told = (f"inliner={spec}", "on-error=fatal", "print-statistics")
            command += toolchain.plugin_flags(what.plugin, *told)
        command += ["-c", str(what.source), "-o", str(target)]
        if count:
            # Addresses that are random make hash tables differ from run to run.
            command = [
                *("setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"),
                *(f"--log-file={counted}", "--cachegrind-out-file=/dev/null"),
                *command,
            ]
        took = timed(command, {"MLBRIDGE_MODULES": str(what.modules)}, SECONDS)
        log = counted.read_text() if count else "I refs: 0"
        instructions = re.search(r"I\s+refs:\s+([\d,]+)", log)
        if instructions is None:
            raise ModelError(f"valgrind counted nothing:\n{log.strip()}")
        contents = target.read_bytes()
    figures = {
        key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", took.stderr)
    }
    if figures.get("deferred", 0) or figures.get("failed", 0):
        raise ModelError(f"not all decisions are the model's: {took.stderr.strip()}")
    return Run(
        contents,
        int(figures.get("asked", 0)),
        figures.get("first_us", 0.0),
        figures.get("mean_us", 0.0),
        1000 * took.cpu_seconds,
        1000 * took.seconds,
        int(instructions[1].replace(",", "")),
    )


def measure(
    what: Compile,
    specs: Mapping[str, str],
    *,
    runs: int,
    count: bool,
    advance: Callable[[], None],
) -> list[Row]:
    """Compiles in turn, by each model, by the rule, and by clang alone."""
    subjects: list[str | None] = [None, RULE]
    for spec in specs.values():
        subjects += [spec, ASKING + spec]
    timings: dict[str | None, list[Run]] = {subject: [] for subject in subjects}
    for _ in range(runs):
        for subject in subjects:
            timings[subject].append(run(what, subject))
            advance()
    rule = timings[RULE][0]
    for spec in specs.values():
        asking = timings[ASKING + spec][0]
        if (asking.object_file, asking.decisions) != (rule.object_file, rule.decisions):
            raise ModelError(f"{spec}: to ask it has changed what is compiled")

    def median(subject: str | None, name: str) -> float:
        return float(statistics.median(getattr(it, name) for it in timings[subject]))

    counts: dict[tuple[str | None, str], int] = {}
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as folder:
        programs = {}
        for name, text in {"none": NO_CALL, "one": ONE_CALL}.items():
            file = Path(folder, f"{name}.c")
            file.write_text(text)
            programs[name] = replace(what, source=file, flags=())
        programs["all"] = what
        for subject in subjects if count else ():
            is_held_against = subject == RULE or (subject or "").startswith(ASKING)
            for name in programs if is_held_against else ("all",):
                counted = run(programs[name], subject, count=True)
                advance()
                counts[subject, name] = counted.instructions
                asked = {"none": 0, "one": 1, "all": rule.decisions}[name]
                if is_held_against and counted.decisions != asked:
                    raise ModelError(f"expected {asked} requests of {name}")

    def row(scheme: str, spec: str) -> Row:
        asking = ASKING + spec
        made = Row(
            *(scheme, what.source.name, rule.decisions, runs),
            median(asking, "start_up_ms"),
            median(asking, "mean_us") - median(RULE, "mean_us"),
            median(asking, "asking") - median(RULE, "asking"),
            median(RULE, "cpu_ms"),
            median(None, "cpu_ms"),
            median(spec, "cpu_ms"),
        )
        if not count:
            return made
        none, one, every = (counts[asking, n] - counts[RULE, n] for n in programs)
        return replace(
            made,
            instructions_before_first=none,
            start_up_instructions=one,
            instructions_per_decision=(every - one) / max(1, rule.decisions - 1),
            instructions_rule=counts[RULE, "all"],
            instructions_stock=counts[None, "all"],
            instructions=counts[spec, "all"],
        )

    return [row(scheme, spec) for scheme, spec in specs.items()]


def table(rows: Sequence[Row]) -> Table:
    """The rows."""
    first = rows[0]
    what = f"{first.source} at -Oz, {first.decisions} decisions"
    shown = plain_table(
        f"{what}, median of {first.runs}", [""], [row.scheme for row in rows]
    )

    def line(label: str, value: Callable[[Row], str]) -> None:
        shown.add_row(label, *[value(row) for row in rows])

    def percent(share: float) -> str:
        return f"{share:+.2%}"

    line("start-up of a process, ms", lambda r: f"{r.start_up_ms:.2f}")
    line("µs a decision", lambda r: f"{r.us_per_decision:.2f}")
    line("  of the compile by the rule", lambda r: percent(r.time_share))
    line("CPU ms, stock clang", lambda r: f"{r.cpu_ms_stock:.0f}")
    line("CPU ms, by the rule", lambda r: f"{r.cpu_ms_rule:.0f}")
    line("CPU ms, by the model", lambda r: f"{r.cpu_ms:.0f}")
    if first.instructions_rule:
        what = "instructions before a request, 1000s"
        line(what, lambda r: f"{r.instructions_before_first / 1e3:.0f}")
        what = "instructions of start-up, millions"
        line(what, lambda r: f"{r.start_up_instructions / 1e6:.1f}")
        what = "instructions a decision, 1000s"
        line(what, lambda r: f"{r.instructions_per_decision / 1e3:.1f}")
        line("  of the compile by the rule", lambda r: percent(r.share or 0.0))
        what = "all instructions, by the rule"
        line(what, lambda r: f"{r.instructions_rule / 1e6:,.0f} M")
        what = "  by the model, against stock"
        line(what, lambda r: percent(r.instructions / r.instructions_stock - 1))
    line("limit", lambda r: f"{LIMITS[r.scheme]:.0%}")
    return shown


def inliner_command(
    source: Annotated[
        Path | None,
        typer.Argument(help="A C file. [default: Lua's lparser.c]", exists=True),
    ] = None,
    flags: Annotated[
        str, typer.Option(help="What the file wants clang to be told.")
    ] = "",
    model: Annotated[Path, typer.Option(help="The inliner's model.")] = ROOT / MODEL,
    scheme: Annotated[
        cli.Names, cli.only("--scheme", tuple(LIMITS), "scheme of the model")
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Timed compiles of each kind, in turns.")
    ] = 20,
    count: Annotated[
        bool,
        typer.Option(
            help="Count instructions, too, where valgrind is here: thirty times as "
            "slow, and the same on a busy machine."
        ),
    ] = True,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure what a model in the compiler costs clang's inliner.

    A plug-in that asks the model and then decides by `cost < threshold` is held against
    one that decides so without asking: the compiles are the same, so the difference is
    the asking. It has two parts, what a process pays at its first request, and what
    every request costs. A compile by the model itself is held against stock clang.
    """
    console = TableConsole(highlight=False)
    modules = find_build(build, ["MLBridge-cost-rule.so"])
    plugin = cli.find_plugin(plugin)
    if count and not (shutil.which("valgrind") and shutil.which("setarch")):
        console.print("[yellow]no valgrind here: instructions are not counted[/]")
        count = False
    chosen = cli.choice("--scheme", scheme, tuple(LIMITS))
    if source is None:
        # Which Debian has; fetched where it is not there yet.
        lua = unpack(["lua"], WORKLOADS)["lua"]
        source, flags = lua.folder / "lparser.c", shlex.join(lua.flags)
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as folder:
        specs = {}
        for name in chosen:
            file = model.resolve()
            if name == "aot":
                file = Path(folder, "libinliner.so")
                aot.compile_model(model, file)
            specs[name] = spec_of(name, file)
            if name == "builtin":
                specs[name] = "builtin:imitation"
        what = Compile(source, tuple(shlex.split(flags)), plugin, modules)
        compiles = runs * (2 + 2 * len(specs)) + count * (4 + 4 * len(specs))
        with cli.progress_on(console) as progress:
            advance = cli.begin(progress, source.name, compiles)
            rows = measure(what, specs, runs=runs, count=count, advance=advance)
    console.print(table(rows))
    cli.write_rows(
        console, [asdict(row) | {"share": row.share} for row in rows], json_file
    )
