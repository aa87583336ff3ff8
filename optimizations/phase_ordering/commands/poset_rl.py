# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge evaluate phase-ordering-poset-rl``, the experiment of POSET-RL."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mlbridge.errors import InvalidArgument
from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import CorpusFolder, Jobs
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from ..environment.settings import Actions, Compared, LeaveOut

PACKAGES = (
    *("torch", "gymnasium", "matplotlib", "tensorboardX", "elftools"),
    *("onnx", "onnxruntime", "onnxscript"),
)
ENGINES = {"rllib": "ray", "sb3": "stable_baselines3"}
SHIPPED = Path("models/phase-ordering-oz/model.onnx")


@dataclass(frozen=True)
class Agents:
    """The agents and their training."""

    actions: Actions = "oz"
    repeat: Annotated[
        bool,
        Option("--repeated-actions", help="Let an agent take an action several times."),
    ] = False
    reward: Annotated[
        str,
        Option(
            help="Reward, as for `mlbridge train phase-ordering`. poset-rl-weighted"
            " counts a block's cycles as often as the block runs."
        ),
    ] = "poset-rl"
    seeds: Annotated[
        int, Option(min=1, help="Number of agents. Their seeds start at 0.")
    ] = 5
    steps: Annotated[
        int, Option(min=1, help="Number of actions with which each agent is trained.")
    ] = 100_000
    largest: Annotated[
        int,
        Option(
            "--training-max-instructions",
            min=1,
            help="Omit modules with more instructions than this from training.",
        ),
    ] = 1000
    engine: Annotated[
        str,
        Option(
            help="Library: sb3 (Stable-Baselines3), or rllib, which replays important"
            " actions more often, takes about 4 times as long, and needs"
            " --repeated-actions."
        ),
    ] = "sb3"
    workers: Annotated[
        int, Option(min=1, help="Parallel compilers per training run.")
    ] = 1
    leave_out: LeaveOut = None
    vocabulary: Annotated[
        Path, Option(help="IR2Vec vocabulary in LLVM's JSON format.")
    ] = Path("build/ir2vec/ir2vec-300d.json")
    out: Annotated[Path, Option(help="Folder for the models and the results.")] = Path(
        "build/phase-ordering/poset-rl"
    )


@dataclass(frozen=True)
class Beside:
    """The programs and rows of the comparison."""

    corpus: CorpusFolder = Path("build/corpus")
    split: Annotated[
        str,
        Option(
            help="Part of the corpus for the comparison: held-out-poset-rl, held-out or"
            " training."
        ),
    ] = "held-out-poset-rl"
    shipped: Annotated[
        Path | None,
        Option(
            metavar="FILE.onnx",
            help=f"Model to compare with. [default: {SHIPPED}, if present]",
        ),
    ] = None
    rounds: Annotated[
        int,
        Option(
            min=0,
            help="How often each program is run to measure its time. 0: do not run the"
            " programs.",
        ),
    ] = 5
    jobs: Jobs = 1


def _poset_rl(
    context: typer.Context, agents: Agents, compared: Compared, beside: Beside
) -> None:
    """Train POSET-RL's agents with several seeds, and compare them with clang -Oz.

    A double DQN sees the module's IR2Vec vector and takes 15 different actions. Its
    settings are the published ones with a few changes, which
    docs/guides/phase-ordering-training.md lists. The command compares the code size,
    the number of IR instructions and the execution time. It also includes the best of
    -Oz and K random sequences of the same actions. If the command is interrupted,
    repeat it to continue.

    ```sh
    mlbridge evaluate phase-ordering-poset-rl --actions odg
    ```
    """
    if agents.engine not in ENGINES:
        raise InvalidArgument(
            f"--engine: expected {' or '.join(ENGINES)}, found '{agents.engine}'"
        )
    if agents.engine == "rllib" and not agents.repeat:
        raise InvalidArgument(
            "--engine rllib: its DQN has no illegal actions, so add --repeated-actions"
        )
    packages = (*PACKAGES, ENGINES[agents.engine])
    need("mlbridge evaluate phase-ordering-poset-rl", packages)
    from mlbridge_optimizations.corpus import manifest

    from ..evaluation import evaluate, poset_rl
    from ..model.model import Model
    from ..model.training import PhaseOrderingSettings

    corpus = manifest.load(beside.corpus.resolve())
    # Raise now if no program has the name, and not after the training.
    corpus.select(beside.split, only=compared.programs or ())
    environment = PhaseOrderingSettings(
        beside.corpus,
        agents.leave_out,
        actions=agents.actions,
        reward=agents.reward,
        max_instructions=agents.largest,
        vocabulary=agents.vocabulary,
        plugin=compared.plugin,
    )
    make = partial(
        poset_rl.published,
        agents.out,
        environment=environment,
        repeat=agents.repeat,
    )
    models = []
    with sigterm_exits(), ProgressBars() as bars:
        for seed in range(agents.seeds):
            show = bars.stage(f"Training, seed {seed}")
            wanted = make(
                seed,
                engine=agents.engine,
                workers=agents.workers,
                steps=agents.steps,
            )
            models.append(poset_rl.train(wanted, show))
    by = poset_rl.Comparison(
        corpus,
        beside.split,
        evaluate.EvaluationSettings(**vars(compared), draws=1, levels=()),
        beside.rounds,
        beside.jobs,
        agents.out,
        agents.vocabulary.resolve(),
    )
    shipped = beside.shipped or (SHIPPED if SHIPPED.is_file() else None)
    found = []
    for seed, model in enumerate(models):
        with ProgressBars() as bars:
            found.append(by.of_model(f"seed-{seed}", model, bars.show_stage))
    with ProgressBars() as bars:
        other = by.of_model("shipped", shipped, bars.show_stage) if shipped else None
    with ProgressBars() as bars:
        chance = by.of_chance("random", Model(models[0]).task, bars.show_stage)
    rows = poset_rl.summary(found, other, chance)
    console.print(poset_rl.table_of(rows))
    console.print(
        "The intervals of the mean show how much it depends on the seed of the training"
        " and on the files. The other intervals are by files. The rows with random"
        " sequences choose by the column's own measure."
    )
    verdicts = poset_rl.verdicts(rows)
    for column, verdict in verdicts.items():
        console.print(f"{poset_rl.COLUMNS[column]}: {verdict}")
    write_json(agents.out / "summary.json", {"rows": rows, "verdicts": verdicts})


COMMANDS = {
    "evaluate phase-ordering-poset-rl": with_options(
        _poset_rl, Agents, Compared, Beside, defaults={"tries": 100}
    )
}
