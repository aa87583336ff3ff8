# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge train``: from a corpus to a model that decides in the compiler."""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from mlbridge.errors import InvalidArgument
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import progress_bars
from mlbridge_optimizations.extras import need

app = typer.Typer(
    no_args_is_help=True,
    help="From a corpus to a model that decides in the compiler: docs/training.md.",
)

POLICY = "policy"
CORE_SET = "coreset"
ACTIONS, PIPELINES = "actions", "pipelines"
SEARCH = {
    ACTIONS: ("actions", "episode"),
    PIPELINES: ("joint_modules", "joint_evaluations", "together", "beside_evaluations"),
}
"""What one search for a core set is told and the other has no use for."""

ONLY = {
    POLICY: (
        *("engine", "algo", "steps", "reward", "stop", "learning_rate", "resume"),
        *("address", "tune", "baseline", "kept_programs"),
    ),
    CORE_SET: (
        *("count", "search", "core", "searched", "linked", "evaluations", "timeout"),
        *("ahead", *SEARCH[PIPELINES]),
    ),
}
"""What one recipe is told and the other has no use for."""

SEARCHING = (
    *("search", "searched", "evaluations", "count", "max_instructions"),
    *SEARCH[ACTIONS],
    *SEARCH[PIPELINES],
)
"""What is of no use where nothing is searched."""

PACKAGES = (
    *("torch", "gymnasium", "matplotlib", "elftools"),
    # These write the file that all ends with.
    *("onnx", "onnxruntime", "onnxscript"),
)

SEEN = {POLICY: "histogram,counts,step,actions", CORE_SET: "histogram,counts"}


@app.callback()
def _group() -> None: ...


@app.command("phase-ordering")
def phase_ordering(
    context: typer.Context,
    recipe: Annotated[
        str,
        typer.Option(
            help="`coreset`: pick one sequence of K that a search has found. "
            "`policy`: learn to take one action after another."
        ),
    ] = POLICY,
    engine: Annotated[str, typer.Option(help="sb3 or rllib (policy).")] = "sb3",
    algo: Annotated[
        str,
        typer.Option(help="ppo, dqn (double DQN with rllib), appo (rllib) (policy)."),
    ] = "ppo",
    corpus: Annotated[Path, typer.Option(help="Its folder.")] = Path("build/corpus"),
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A training program not to train on; may be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for what comes of it."
            " [default: build/phase-ordering/RECIPE]"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Compilers at once.")] = 1,
    steps: Annotated[
        int, typer.Option(min=1, help="Actions in all (policy).")
    ] = 20_000,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Of the networks, and of all that is drawn on the way."
        ),
    ] = 0,
    observation: Annotated[
        str | None,
        typer.Option(
            help="Of histogram, embedding, counts, step, actions; a core set's model"
            " has no step and no actions to see."
            f" [default: {SEEN[POLICY]}, or {SEEN[CORE_SET]}]"
        ),
    ] = None,
    actions: Annotated[
        str, typer.Option(help="oz, odg, passes, or a JSON file.")
    ] = "oz",
    reward: Annotated[str, typer.Option(help="Measures with weights (policy).")] = (
        "text-size:10"
    ),
    baseline: Annotated[
        str,
        typer.Option(
            help="What an episode's return is relative to: `start`, the module as it"
            " begins, or `oz`, what -Oz makes of it (policy)."
        ),
    ] = "start",
    episode: Annotated[
        int, typer.Option(min=1, help="Actions of an episode, or of a sequence.")
    ] = 15,
    stop: Annotated[
        bool,
        typer.Option("--stop", help="Have an action that ends the episode (policy)."),
    ] = False,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Of `embedding`, in LLVM's form.")
    ] = None,
    max_instructions: Annotated[
        int,
        typer.Option(
            help="Leave larger modules out (policy), or search none that is (coreset)."
        ),
    ] = 6000,
    learning_rate: Annotated[
        float, typer.Option(help="Of the network's optimiser (policy).")
    ] = 5e-4,
    kept_programs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Modules of which each compiler remembers what was made of them"
            " (policy). [default: all, up to 20 MB of bitcode]",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, help="K, sequences of the core set (coreset).")
    ] = 50,
    search: Annotated[
        str,
        typer.Option(
            help="`actions`: sequences of the actions. `pipelines`: changes of clang's"
            " whole -Oz (coreset)."
        ),
    ] = ACTIONS,
    core: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Search nothing: a model for this core.json; or, with --search"
            " pipelines, begin with those that it has (coreset).",
        ),
    ] = None,
    ahead: Annotated[
        int,
        typer.Option(
            min=0,
            help="Have a model that looks at what so many of the core set's first"
            " sequences have made, and takes one; 0: one that chooses before"
            " (coreset).",
        ),
    ] = 0,
    searched: Annotated[
        int,
        typer.Option(min=0, help="Modules that are searched one by one (coreset)."),
    ] = 60,
    joint_modules: Annotated[
        int,
        typer.Option(
            min=1,
            help="Modules for which pipelines are searched that serve all of them"
            " (coreset).",
        ),
    ] = 81,
    joint_evaluations: Annotated[
        int,
        typer.Option(min=1, help="Pipelines tried there for the best one (coreset)."),
    ] = 600,
    together: Annotated[
        int,
        typer.Option(
            min=1,
            help="So many pipelines are sought there: the best one, then the best"
            " beside it, and so on (coreset).",
        ),
    ] = 8,
    beside_evaluations: Annotated[
        int,
        typer.Option(
            min=0, help="Pipelines tried for each of these after the first (coreset)."
        ),
    ] = 150,
    linked: Annotated[
        bool,
        typer.Option(
            "--linked", help="Try what is found on linked programs, too (coreset)."
        ),
    ] = False,
    evaluations: Annotated[
        int, typer.Option(min=1, help="Sequences tried on each searched one (coreset).")
    ] = 300,
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            help="Seconds for a sequence on a module of up to 10,000 instructions; a"
            " larger one has more in proportion (coreset).",
        ),
    ] = 120,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint (policy).")
    ] = False,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster (rllib, --tune).")
    ] = None,
    tune: Annotated[
        int,
        typer.Option(
            metavar="N", help="Try N settings first, and take the best (policy)."
        ),
    ] = 0,
) -> None:
    """Learn in which order LLVM's passes should run on a module.

    ```sh
    mlbridge train phase-ordering --recipe coreset --search pipelines --workers 2
    mlbridge train phase-ordering --engine rllib --algo dqn --workers 2 --steps 50000
    ```
    """
    _check_options(context, recipe)
    if recipe == CORE_SET:
        _check_search(context, search, core)
        if ahead and _is_said(context, "observation"):
            raise InvalidArgument(
                "--observation: a model that looks --ahead sees histogram, counts and"
                " actions: leave it"
            )
    if address is not None and engine != "rllib" and not tune:
        raise InvalidArgument("--address is for --engine rllib, or for --tune")
    if resume and tune:
        raise InvalidArgument("--resume goes on with what --tune has found: leave that")
    more: tuple[str, ...] = ()
    if recipe == POLICY:
        more = ("tensorboardX", "stable_baselines3")
        more += ("ray",) if engine == "rllib" or tune else ()
    need("mlbridge train phase-ordering", (*PACKAGES, *more))
    names = tuple((observation or SEEN[recipe]).split(","))
    _check_observation(recipe, names, vocabulary, actions)
    folder = out or Path("build/phase-ordering") / recipe
    if recipe == CORE_SET:
        _core_set(
            {
                "corpus": corpus,
                "out": folder,
                "leave_out": tuple(leave_out or ()),
                "actions": actions,
                "count": count,
                "searched": searched,
                "most": max_instructions,
                "linked": linked,
                "observation": names,
                "vocabulary": vocabulary,
                "workers": workers,
                "timeout": timeout,
                "core": core,
                "ahead": ahead,
            },
            {"evaluations": evaluations, "length": episode, "seed": seed},
            {
                "joint": joint_evaluations,
                "modules": joint_modules,
                "together": together,
                "beside": beside_evaluations,
            }
            if search == PIPELINES
            else None,
            seed,
        )
        return
    from mlbridge_optimizations.training.settings import PolicySettings

    settings = PolicySettings(
        corpus,
        folder,
        engine,
        algo,
        workers,
        steps,
        seed,
        {
            "observation": list(names),
            "action": actions,
            "reward": reward,
            "steps": episode,
            "stop": stop,
            "baseline": baseline,
            "kept_programs": kept_programs,
            "vocabulary": str(vocabulary.resolve()) if vocabulary else None,
            "max_instructions": max_instructions,
            "leave_out": list(leave_out or ()),
        },
        learning_rate=learning_rate,
    )
    if resume:
        # What --tune has found then, unless it is said otherwise.
        tuned = ("gamma", "entropy", "hidden")
        is_said = _is_said(context, "learning_rate")
        settings = settings.as_saved(tuned if is_said else (*tuned, "learning_rate"))
    _policy(settings, resume, address, tune)


def _check_options(context: typer.Context, recipe: str) -> None:
    """Nothing is asked for that would be ignored."""
    if recipe not in ONLY:
        raise InvalidArgument(f"no recipe '{recipe}', only {CORE_SET} and {POLICY}")
    for other in set(ONLY) - {recipe}:
        for name in ONLY[other]:
            if _is_said(context, name):
                raise InvalidArgument(
                    f"--{name.replace('_', '-')} is of the recipe {other}, and without"
                    f" a meaning for {recipe}: leave it, or say --recipe {other}"
                )


def _check_search(context: typer.Context, search: str, core: Path | None) -> None:
    """The same for what a search is told."""
    if search not in SEARCH:
        raise InvalidArgument(
            f"--search: expected {ACTIONS} or {PIPELINES}, found '{search}'"
        )
    if core is not None and search != PIPELINES:
        for name in SEARCHING:
            if _is_said(context, name):
                raise InvalidArgument(
                    f"--{name.replace('_', '-')} is of a search, and with --core"
                    " nothing is searched: leave one of them, or say --search pipelines"
                    " to begin one with it"
                )
    for other in set(SEARCH) - {search}:
        for name in SEARCH[other]:
            if _is_said(context, name):
                raise InvalidArgument(
                    f"--{name.replace('_', '-')} is of --search {other}, and without a"
                    f" meaning for --search {search}: leave one of them"
                )


def _is_said(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _check_observation(
    recipe: str, names: tuple[str, ...], vocabulary: Path | None, actions: str
) -> None:
    """What can be seen, and with what it is made."""
    from mlbridge_optimizations import ir2vec
    from mlbridge_optimizations.phase_ordering.compiler import CompilerOptions

    CompilerOptions(actions, names).space.pipeline(())
    if recipe == CORE_SET and {"step", "actions"} & set(names):
        raise InvalidArgument(
            "--observation: one sequence is chosen before the first action, where there"
            " is no step and no action to see"
        )
    if ("embedding" in names) != (vocabulary is not None):
        raise InvalidArgument(
            "--observation embedding and --vocabulary FILE need each other"
        )
    if vocabulary is not None:
        ir2vec.load(vocabulary)


def _policy(settings: object, resume: bool, address: str | None, trials: int) -> None:
    from mlbridge_optimizations.training import policy
    from mlbridge_optimizations.training.settings import PolicySettings

    assert isinstance(settings, PolicySettings)
    if trials:
        from mlbridge_optimizations.training.tune import tune

        with progress_bars() as bars:
            task = bars.add_task("Tuning", total=trials)
            best, table = tune(
                settings,
                trials,
                address=address,
                show=lambda done: bars.update(task, completed=done),
            )
        shown = Table("learning rate", "gamma", "entropy", "hidden", "mean return")
        for row in table:
            shown.add_row(*row)
        console.print(shown)
        settings = best
    with progress_bars() as bars:
        task = bars.add_task("Learning", total=settings.steps)

        def show(done: int, recent: float | None) -> None:
            mean = "" if recent is None else f" {recent:.3f}"
            bars.update(task, completed=done, description=f"Learning{mean}")

        exported = policy.train(settings, resume=resume, address=address, show=show)
    console.print(f"The model is {exported.path}, its curve {settings.out}/curve.png.")
    if find_spec("tensorboard") is not None:
        console.print(f"TensorBoard: tensorboard --logdir {settings.out}/tensorboard")


def _core_set(
    arguments: dict[str, object],
    search: dict[str, int],
    joint: dict[str, int] | None,
    seed: int,
) -> None:
    from mlbridge_optimizations.phase_ordering.search import coreset
    from mlbridge_optimizations.phase_ordering.search.evolve import EvolutionSettings
    from mlbridge_optimizations.phase_ordering.search.search import SearchSettings
    from mlbridge_optimizations.phase_ordering.search.value import ValueSettings

    evolution = None
    if joint is not None:
        evolution = EvolutionSettings(
            **joint, evaluations=search["evaluations"], seed=seed
        )
    settings = coreset.CoreSetSettings(
        **arguments,  # type: ignore[arg-type]
        search=SearchSettings(**search),
        evolution=evolution,
        value=ValueSettings(seed=seed),
    )
    with progress_bars() as bars:
        trained = coreset.train(settings, _stages(bars))
    ratios = trained.core.ratios
    if trained.searched is not None:
        console.print(
            f"Searched modules: {trained.searched:.4f} of -Oz by the best sequence of"
            " each."
        )
    for k in sorted({1, 8, len(ratios)} & set(range(1, len(ratios) + 1))):
        console.print(
            f"Training programs: {ratios[k - 1]:.4f} by the best of {k} fixed"
            " sequences."
        )
    too_good = ""
    if settings.core is not None or settings.ahead:
        too_good = " That is too good: the core set may have been chosen by them."
    elif evolution is not None:
        too_good = " That is too good: what the search shares has seen them."
    check = trained.fitted.check if trained.fitted else None
    if check is not None:
        console.print(
            f"Programs left out, each in turn: {check.chosen:.4f} by the value model"
            f" after {check.epochs} epochs, {check.fixed:.4f} by the best fixed"
            f" sequence, {check.best:.4f} at most.{too_good}"
        )
    ahead = trained.foresight
    if ahead is not None:
        console.print(
            f"Programs left out, each in turn: {ahead.chosen:.4f} by looking ahead,"
            f" {ahead.fixed:.4f} by the first sequence, {ahead.best:.4f} at most."
            f"{too_good}"
        )
    for kind, times in sorted(Counter(f[2] for f in trained.failures).items()):
        console.print(f"The compiler's failures, {kind}: {times}; see table.jsonl")
    console.print(f"The model is {trained.model}, its curve {settings.out}/curve.png.")


def _stages(bars: Progress) -> "coreset.Show":  # type: ignore[name-defined] # noqa: F821
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage)
        bars.update(tasks[stage], completed=done, total=total)

    return show
