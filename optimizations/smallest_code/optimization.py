# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation smallest-code for the registry."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mlbridge_optimizations.optimization import (
    Choice,
    Metric,
    ModelFile,
    Optimization,
)

from . import (
    commands,
    explain_command,
    imitation_command,
    parts_command,
    rule_command,
)
from .settings import EpisodeSettings

if TYPE_CHECKING:
    from .agents import CallEncoder
    from .environment import SmallestCodeEnv


def _make_env(settings: EpisodeSettings, worker: int) -> "SmallestCodeEnv":
    from .environment import SmallestCodeEnv

    return SmallestCodeEnv(
        settings.programs, plugin=settings.plugin, spec=settings.spec, worker=worker
    )


def _encoder(settings: EpisodeSettings, space: Any) -> "CallEncoder":
    from .agents import CallEncoder

    return CallEncoder(space)


def _model_file(settings: EpisodeSettings, seed: int) -> ModelFile:
    from mlbridge.export import Metadata, Training

    about = Metadata(
        reward="linked code saved, relative to clang -Oz", training=Training(seed=seed)
    )
    return ModelFile(decision="inlining_decision", metadata=about)


def _ratio_of(total: float, info: Mapping[str, Any]) -> float:
    """Returns the linked code relative to clang -Oz."""
    return float(info["text_size"] / info["stock_text_size"])


def _always(action: int) -> Callable[[EpisodeSettings], Choice]:
    return lambda settings: lambda observation: action


def _as_llvm(settings: EpisodeSettings) -> Choice:
    return lambda observation: int(observation["inlining_default"][0])


OPTIMIZATION: Optimization[EpisodeSettings] = Optimization(
    "smallest-code",
    "Which calls are inlined for the least code.",
    make_env=_make_env,
    settings=EpisodeSettings,
    encoder=_encoder,
    baselines={"LLVM": _as_llvm, "always": _always(1), "never": _always(0)},
    metric=Metric(
        "ratio", "linked code / clang -Oz", _ratio_of, 1.0, "clang -Oz", is_cost=True
    ),
    model_file=_model_file,
    packages=("elftools",),
    commands={
        **commands.COMMANDS,
        **explain_command.COMMANDS,
        **imitation_command.COMMANDS,
        **parts_command.COMMANDS,
        **rule_command.COMMANDS,
    },
    what="policy",
    # An episode has up to thousands of decisions, and the reward comes at its end.
    # Only the decisions since the last update can get their credits.
    defaults={"gamma": 1.0, "rollout": 8192},
)
