# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench gym``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.options import choice
from mlbridge_benchmarks.phase_ordering.compile_time_command import measure_flows
from mlbridge_benchmarks.phase_ordering.options import Compiled, Setting, need_packages

if TYPE_CHECKING:
    from mlbridge_benchmarks.phase_ordering.compile_time import Flow
    from mlbridge_benchmarks.phase_ordering.task import Deployed


@dataclass(frozen=True)
class Actions:
    """What the random network chooses from."""

    actions: Annotated[
        str, typer.Option(help="The space of the random network's actions.")
    ] = "passes"


def _gym(
    context: typer.Context, setting: Setting, compiled: Compiled, space: Actions
) -> None:
    """Run a policy of single passes through Gymnasium, and inside the compiler.

    Through Gymnasium, a loop in Python asks the model and steps
    `mlbridge/PhaseOrdering-v0`. Inside, each compile is a clang with the plug-in, which
    loads the model itself. All make objects of the same bitcode, by the same actions.
    "Gymnasium" starts a compiler for each module, as the others do; "kept" has one for
    all modules of a round, "rewards" also measures the size of the code after each
    step, as in training. The columns are those of `mlbridge bench compile-time`.
    """
    need_packages("bench gym", setting.flow, compiled.model)
    from mlbridge_benchmarks.phase_ordering import compile_time, gym_flow
    from mlbridge_benchmarks.phase_ordering.task import Sample

    console = TableConsole(highlight=False)
    names = choice("--flow", setting.flow, gym_flow.FLOWS)
    options = setting.compiler(space.actions)
    sample = Sample.draw(setting.corpus_folder, compiled.modules, setting.seed)
    outside = (gym_flow.GYM, gym_flow.KEPT, gym_flow.REWARDED)

    def make(deployed: "Deployed", folder: Path) -> "Mapping[str, Flow]":
        inside = [name for name in names if name not in outside]
        made = compile_time.flows(inside, deployed, folder)
        for name in set(outside) & set(names):
            made[name] = gym_flow.GymFlow(
                deployed,
                sample.modules,
                rewarded=name == gym_flow.REWARDED,
                kept=name != gym_flow.GYM,
            )
        return made

    results = measure_flows(
        console,
        setting,
        compiled.model,
        options,
        sample,
        names,
        make,
        base=gym_flow.GYM,
    )
    draw = partial(compile_time.plot, results)
    setting.write(console, compile_time.rows(results), "gym", draw)


gym_command = with_options(_gym, Setting, Compiled, Actions, defaults={"steps": 45})
