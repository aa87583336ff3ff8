# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench inliner``: the cost of a model in clang's inliner."""

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

from mlbridge.errors import ModelError
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import cachegrind
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.flows import in_process_spec
from mlbridge_benchmarks.common.imitation import MODEL
from mlbridge_benchmarks.common.processes import ROOT, WORKLOADS, find_build, timed
from mlbridge_benchmarks.common.tables import plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.sources import unpack

RULE = "cost-rule"  # Decides with `cost < max(1, threshold)`.
ASKING = "cost-rule+ask|"  # Also sends requests to the runner after "|".
# For each scheme, the maximum share of the compile time that requests may take.
LIMITS = {"builtin": 0.01, "aot": 0.01, "onnx": 0.05}
# A program without a decision, and a program with one decision.
NO_CALL = "int f(int x) { return x; }\n"
ONE_CALL = "static int f(int x) { return x; }\nint g(int x) { return f(x); }\n"


@dataclass(frozen=True)
class Compile:
    """A source, clang's flags, the plug-in, and the folder of its runner modules."""

    source: Path
    flags: tuple[str, ...]
    plugin: Path
    modules: Path


@dataclass(frozen=True)
class Run:
    """The results of one compile. Results that were not measured are 0."""

    object_file: bytes
    decisions: int
    first_us: float
    mean_us: float
    cpu_ms: float
    wall_ms: float
    instructions: int = 0

    @property
    def start_up_ms(self) -> float:
        """The extra time of the first request over the mean of the other requests."""
        return (self.first_us - self.mean_us) / 1000

    @property
    def asking(self) -> float:
        """The share of the compile's duration that all requests except the first take.

        The ratio is robust, because other load slows both times equally.
        """
        return self.mean_us * self.decisions / 1000 / self.wall_ms


@dataclass(frozen=True)
class Row:
    """The cost of requests to one model."""

    scheme: str
    source: str
    decisions: int
    runs: int
    start_up_ms: float  # The extra time of the first request.
    us_per_decision: float
    time_share: float  # The median of `Run.asking`, minus the median of the rule.
    cpu_ms_rule: float
    cpu_ms_stock: float  # The CPU time of stock clang.
    cpu_ms: float  # The CPU time with the model's decisions.
    instructions_before_first: int = 0  # In a compile without requests.
    start_up_instructions: int = 0
    instructions_per_decision: float = 0.0
    instructions_rule: int = 0
    instructions_stock: int = 0
    instructions: int = 0

    @property
    def share(self) -> float | None:
        """The share of the instructions that requests execute.

        None if instructions were not counted.
        """
        if not self.instructions_rule:
            return None
        asking = self.instructions_per_decision * self.decisions
        return asking / self.instructions_rule


def run(what: Compile, spec: str | None, *, count: bool = False) -> Run:
    """Compiles once. Uses the model of the spec, or stock clang if there is no spec.

    If `count` is true, valgrind counts instructions, which takes thirty times as long.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as folder:
        target, counted = Path(folder, "out.o"), Path(folder, "counted")
        command = [toolchain.CLANG, "-Oz", "-w", *what.flags]
        if spec is not None:
            told = (f"inliner={spec}", "on-error=fatal", "print-statistics")
            command += toolchain.plugin_flags(what.plugin, *told)
        command += ["-c", str(what.source), "-o", str(target)]
        if count:
            command = cachegrind.counting(command, counted)
        variables = {"MLBRIDGE_MODULES": str(what.modules)}
        took = timed(command, variables, cachegrind.SECONDS)
        instructions = cachegrind.instructions(counted) if count else 0
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
        instructions,
    )


def measure(
    what: Compile,
    specs: Mapping[str, str],
    *,
    runs: int,
    count: bool,
    advance: Callable[[], None],
) -> list[Row]:
    """Compiles with each model, with the rule and with stock clang, alternately."""
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
            raise ModelError(f"{spec}: asking it changed the compiled code")

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
        expected = {"none": 0, "one": 1, "all": rule.decisions}
        for subject in subjects if count else ():
            is_rule = subject == RULE or (subject or "").startswith(ASKING)
            for name in programs if is_rule else ("all",):
                counted = run(programs[name], subject, count=True)
                advance()
                counts[subject, name] = counted.instructions
                if is_rule and counted.decisions != expected[name]:
                    raise ModelError(f"expected {expected[name]} requests of {name}")

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
    """Returns the rows as columns of a table."""
    first = rows[0]
    lines = {
        "start-up of a process, ms": [f"{r.start_up_ms:.2f}" for r in rows],
        "µs a decision": [f"{r.us_per_decision:.2f}" for r in rows],
        "  of the compile by the rule": [f"{r.time_share:+.2%}" for r in rows],
        "CPU ms, stock clang": [f"{r.cpu_ms_stock:.0f}" for r in rows],
        "CPU ms, by the rule": [f"{r.cpu_ms_rule:.0f}" for r in rows],
        "CPU ms, by the model": [f"{r.cpu_ms:.0f}" for r in rows],
    }
    if first.instructions_rule:
        more = [r.instructions / r.instructions_stock - 1 for r in rows]
        lines |= {
            "instructions before a request, 1000s": [
                f"{r.instructions_before_first / 1e3:.0f}" for r in rows
            ],
            "instructions of start-up, millions": [
                f"{r.start_up_instructions / 1e6:.1f}" for r in rows
            ],
            "instructions a decision, 1000s": [
                f"{r.instructions_per_decision / 1e3:.1f}" for r in rows
            ],
            "  of the instructions by the rule": [f"{r.share or 0:+.2%}" for r in rows],
            "all instructions, by the rule": [
                f"{r.instructions_rule / 1e6:,.0f} M" for r in rows
            ],
            "  by the model, against stock": [f"{share:+.2%}" for share in more],
        }
    lines["limit"] = [f"{LIMITS[r.scheme]:.0%}" for r in rows]
    what = f"{first.source} at -Oz, {first.decisions} decisions"
    title = f"{what}, median of {first.runs}"
    shown = plain_table(title, [""], [row.scheme for row in rows])
    for label, cells in lines.items():
        shown.add_row(label, *cells)
    return shown


def inliner_command(
    source: Annotated[
        Path | None,
        typer.Argument(help="A C file. [default: Lua's lparser.c]", exists=True),
    ] = None,
    flags: Annotated[str, typer.Option(help="Clang's flags for the file.")] = "",
    model: Annotated[Path, typer.Option(help="The inliner's model.")] = ROOT / MODEL,
    scheme: Annotated[
        cli.Names, cli.only("--scheme", tuple(LIMITS), "scheme of the model")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Timed compiles of each kind.")] = 20,
    count: Annotated[
        bool,
        typer.Option(
            "--valgrind/--no-valgrind",
            help="Also count instructions with valgrind. This takes thirty times as "
            "long, but other load on the machine does not affect the counts.",
        ),
    ] = True,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure the cost of a model in clang's inliner.

    Two runners are compared. Both decide with the rule `cost < max(1, threshold)`, but
    one of them also sends each request to the model. The resulting code is the same, so
    the difference is the cost of the requests. A compile with the model's own decisions
    is also compared with stock clang.
    """
    console = TableConsole(highlight=False)
    modules = find_build(build, ["MLBridge-cost-rule.so"])
    plugin = cli.find_plugin(plugin)
    if count and not (shutil.which("valgrind") and shutil.which("setarch")):
        console.print("[yellow]no valgrind here: instructions are not counted[/]")
        count = False
    chosen = cli.choice("--scheme", scheme, tuple(LIMITS))
    if source is None:
        lua = unpack(["lua"], WORKLOADS)["lua"]
        source, flags = lua.folder / "lparser.c", shlex.join(lua.flags)
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as folder:
        specs = {
            name: "builtin:imitation"
            if name == "builtin"
            else in_process_spec(name, model, Path(folder))
            for name in chosen
        }
        what = Compile(source, tuple(shlex.split(flags)), plugin, modules)
        compiles = runs * (2 + 2 * len(specs)) + count * (4 + 4 * len(specs))
        with cli.progress_on(console) as progress:
            advance = cli.begin(progress, source.name, compiles)
            rows = measure(what, specs, runs=runs, count=count, advance=advance)
    console.print(table(rows))
    cli.write_rows(
        console, [asdict(row) | {"share": row.share} for row in rows], json_file
    )
