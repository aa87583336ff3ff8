# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a model that advises LLVM's greedy register allocator, by evolution.

CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772; the package
`cma`) draws candidates of the network's weights. The plug-in's search tries all of them
on each function in one run of llc, and reports the weighted costs of spills, reloads
and copies. A candidate's loss is the mean logarithm of its costs relative to greedy's::

    python -m mlbridge_optimizations.register_allocation.evolve eviction
"""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import cma
import numpy as np
import typer

from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.corpus.manifest import load
from mlbridge_optimizations.register_allocation.functions import (
    Costs,
    costs_of,
    extract,
)
from mlbridge_optimizations.register_allocation.networks import (
    NETWORKS,
    Kind,
    Network,
    Weights,
)

# The programs that choose among generations, and are not trained on.
VALIDATION = ("flac", "jq", "libpng", "minisat")
# A function's logarithm is limited, because single functions would decide otherwise.
LIMIT = 0.7


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        loss: the mean of the candidates' losses on the sampled functions.
        best: the lowest of them.
        validation: the loss of the distribution's mean on the validation programs, or
            None if this generation was not validated.
        functions: the number of functions sampled.
        seconds: since the start.
    """

    number: int
    loss: float
    best: float
    validation: float | None
    functions: int
    seconds: float


def loss_of(found: Sequence[Costs], policy: str) -> float:
    """Returns the mean limited logarithm of a policy's costs relative to greedy's."""
    terms = []
    for function in found:
        cost = function.trials.get(policy)
        if function.greedy <= 0:
            continue
        ratio = math.inf if cost is None else max(cost, 1e-6) / function.greedy
        terms.append(float(np.clip(math.log(ratio), -LIMIT, LIMIT)))
    return float(np.mean(terms)) if terms else 0.0


def losses(
    network: Network,
    candidates: Sequence[Weights],
    modules: Sequence[Path],
    plugin: Path,
    jobs: int,
) -> tuple[list[float], int]:
    """Returns the candidates' losses on modules, and the number of functions."""
    with TemporaryDirectory(prefix="mlbridge-evolve-") as folder:
        options = [f"-mlbridge-regalloc-search={len(candidates) + 1}"]
        names = []
        for number, weights in enumerate(candidates):
            file = Path(folder, f"{number}.onnx")
            file.write_bytes(network.model(weights).SerializeToString())
            names.append(f"{network.kind}=onnx:{file}")
            options.append(f"-mlbridge-regalloc-try={names[-1]}")
        found = costs_of(modules, plugin, options, jobs=jobs)
    searched = sum(function.greedy > 0 for function in found)
    return [loss_of(found, name) for name in names], searched


def evolve(
    network: Network,
    training: Sequence[Path],
    validation: Sequence[Path],
    plugin: Path,
    *,
    generations: int,
    population: int,
    sample: int,
    seed: int,
    sigma: float,
    every: int,
    jobs: int,
) -> Iterator[tuple[Generation, Weights]]:
    """Yields the generations, each with the mean of its distribution."""
    begin = time.monotonic()
    draw = np.random.default_rng(seed)
    options = {"popsize": population, "seed": seed + 1, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(network.start, sigma, options)
    for number in range(generations):
        chosen = draw.choice(len(training), min(sample, len(training)), replace=False)
        candidates = strategy.ask()
        modules = [training[index] for index in chosen]
        found, functions = losses(network, candidates, modules, plugin, jobs)
        strategy.tell(candidates, found)
        mean: Weights = strategy.result.xfavorite
        checked = None
        if number % every == every - 1 or number == 0:
            checked = losses(network, [mean], validation, plugin, jobs)[0][0]
        seconds = time.monotonic() - begin
        yield (
            Generation(
                number, float(np.mean(found)), min(found), checked, functions, seconds
            ),
            mean,
        )


def main(
    kind: Annotated[str, typer.Argument(help="eviction or priority.")],
    generations: Annotated[int, typer.Option(min=1, help="Generations.")] = 100,
    population: Annotated[
        int, typer.Option(min=4, help="Candidates in a generation.")
    ] = 14,
    sample: Annotated[
        int, typer.Option(min=1, help="Modules for a generation, drawn at random.")
    ] = 50,
    sigma: Annotated[
        float, typer.Option(help="Standard deviation of the weights at first.")
    ] = 0.15,
    every: Annotated[
        int, typer.Option(min=1, help="Validate after so many generations.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Parallel compilers.")
    ] = os.cpu_count() or 1,
    corpus: Annotated[Path, typer.Option(help="Corpus folder.")] = Path("build/corpus"),
    functions: Annotated[
        Path, typer.Option(help="Folder for the functions to train on.")
    ] = Path("build/regalloc/functions"),
    plugin: Annotated[Path, typer.Option(help="MLBridgeLLVM.so.")] = Path(
        "build/release/lib/MLBridgeLLVM.so"
    ),
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "build/regalloc/evolved"
    ),
) -> None:
    """Train an advisor of greedy on the training programs of the corpus."""
    if kind not in NETWORKS:
        raise typer.BadParameter(f"'{kind}' is not one of {', '.join(NETWORKS)}")
    name: Kind = kind  # type: ignore[assignment]
    network = NETWORKS[name]()
    out.mkdir(parents=True, exist_ok=True)
    plugin = plugin.resolve()
    found = load(corpus.resolve())
    programs = found.select("training")
    best, best_loss = network.start, math.inf
    with ProgressBars() as bars:
        files = extract(
            *(found, programs, plugin, functions),
            jobs=jobs,
            show=lambda done, of: bars.show_stage("Extract functions", done, of),
        )

        def is_validation(file: Path) -> bool:
            return file.name.rpartition("-")[0] in VALIDATION

        curve = (out / f"{kind}.jsonl").open("w", encoding="utf-8")
        with curve:
            for generation, mean in evolve(
                network,
                [file for file in files if not is_validation(file)],
                [file for file in files if is_validation(file)],
                plugin,
                generations=generations,
                population=population,
                sample=sample,
                seed=seed,
                sigma=sigma,
                every=every,
                jobs=jobs,
            ):
                print(json.dumps(asdict(generation)), file=curve, flush=True)
                bars.show_stage("Generations", generation.number + 1, generations)
                checked = generation.validation
                if checked is not None and checked < best_loss:
                    best, best_loss = mean, checked
                    model = network.model(best)
                    (out / f"{kind}.onnx").write_bytes(model.SerializeToString())
    console.print(
        f"{kind}: {math.exp(best_loss):.4f} of greedy's cost on the validation"
        f" programs (geometric mean); {out / kind}.onnx"
    )


if __name__ == "__main__":
    typer.run(main)
