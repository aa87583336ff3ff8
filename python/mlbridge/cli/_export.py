# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge export``: writes a trained policy as an .onnx file."""

import hashlib
import inspect
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from mlbridge import ir2vec
from mlbridge.cli._objects import find_object
from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch
from mlbridge.export import (
    FRAMEWORKS,
    FeatureSource,
    Metadata,
    Training,
    features_of,
)
from mlbridge.export import export as write
from mlbridge.export.failures import needed, reading
from mlbridge.log import read_log
from mlbridge.options import with_options
from mlbridge.terminal import console


@dataclass(frozen=True)
class _Options:
    """Of the command."""

    policy: Annotated[
        str,
        Argument(
            metavar="POLICY",
            help="A file (.zip, .keras, .pkl, .joblib), a checkpoint folder, or "
            "MODULE:OBJECT.",
        ),
    ]
    to: Annotated[Path, Option("--to", metavar="FILE", help="The .onnx file to write.")]
    feature: Annotated[
        list[str] | None,
        Option(
            metavar="'TYPE[SHAPE] NAME'",
            help="A feature as the compiler sends it: `'int64 callee_size'`, "
            "`'float[300] embedding'`. Repeated, in the order of training.",
        ),
    ] = None
    features: Annotated[
        str | None,
        Option(
            metavar="LOG | MODULE:OBJECT",
            help="Features from a training log, or from a Gymnasium space.",
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="One of those to leave out. Repeated."),
    ] = None
    output: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="An output to keep. Repeated."),
    ] = None
    decide: Annotated[
        str | None,
        Option(
            metavar="RULE:OUTPUT",
            help="What is made of the outputs: `argmax:logits`, `sample:logits`; an "
            "empty text for nothing.",
        ),
    ] = None
    batch: Annotated[
        int | None,
        Option(min=1, help="So many requests at once, instead of any number."),
    ] = None
    framework: Annotated[
        str | None,
        Option(
            metavar="|".join(FRAMEWORKS), help="Only functions have to be told theirs."
        ),
    ] = None
    statistics: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Stable-Baselines3: what `VecNormalize.save` wrote.",
        ),
    ] = None
    module: Annotated[
        str | None,
        Option(metavar="NAME", help="RLlib: which module of a checkpoint."),
    ] = None
    agent: Annotated[
        str | None,
        Option(metavar="NAME", help="RLlib: the agent that it decides for."),
    ] = None
    reward: Annotated[
        str | None,
        Option(metavar="TEXT", help="Noted in the file: what it was trained for."),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Noted, by name and SHA-256: what its embeddings are made with.",
        ),
    ] = None
    seed: Annotated[int | None, Option(help="Noted in the file: of its training.")] = (
        None
    )
    allow_non_finite: Annotated[
        bool,
        Option("--allow-non-finite", help="NaN and infinity are features like others."),
    ] = False


def _export(context: typer.Context, by: _Options) -> None:
    r"""Write a trained policy as one .onnx file that a compiler asks by its features.

    Each feature becomes an input of the file, with the name and type that the compiler
    gives it; converting, ordering and normalising are part of the graph. The file is
    compared with the framework's own answers before it is written. Then:

    ```sh
    mlbridge inspect inliner.onnx
    mlbridge serve inliner.onnx --at pipe:/tmp/advisor
    clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm \
        -mlbridge-inliner=onnx:inliner.onnx -c x.c
    ```

    Of Stable-Baselines3 (PPO, A2C, DQN), with the statistics of its VecNormalize:

    ```sh
    mlbridge export ppo.zip --statistics vecnormalize.pkl --to inliner.onnx
    ```

    Of RLlib, one module of a checkpoint, whose observation filters come along:

    ```sh
    mlbridge export checkpoint/ --module colour --to colour.onnx
    ```

    Of PyTorch, scikit-learn, Keras or JAX, which have to be told the features, here
    as a compiler recorded them:

    ```sh
    mlbridge export train:network --to inliner.onnx \
        --features zlib.log --without inlining_default
    mlbridge export train:forest --to inliner.onnx \
        --feature 'int64 callee_size' --feature 'float[300] embedding'
    ```

    Pickled files run what is in them: export only what you trust.
    """
    source = _source(by)
    options: dict[str, Any] = {
        **source.options,
        **({"agent": by.agent} if by.agent else {}),
    }
    exported = write(
        source.policy,
        by.to,
        features=_features(by.feature, by.features, by.without or []),
        framework=source.framework,
        outputs=by.output,
        decide=by.decide,
        batch=by.batch,
        metadata=Metadata(
            reward=by.reward,
            vocabulary=_vocabulary(by.vocabulary),
            finite=not by.allow_non_finite,
            training=Training(seed=by.seed),
        ),
        **options,
    )
    console.print(
        f"{by.to}: {len(exported.features)} features to {', '.join(exported.outputs)}"
        + (f", {exported.decide}" if exported.decide else "")
    )
    console.print(
        f"It answers as {exported.framework} does: {exported.comparison}. "
        f"mlbridge inspect {by.to} shows the rest."
    )


export = with_options(_export, _Options)


@dataclass(frozen=True)
class Source:
    """A policy, and what there is to say of it.

    Attributes:
        policy: for `mlbridge.export.export`.
        framework: its own, where that is known from the file.
        options: of that framework.
    """

    policy: Any
    framework: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def load_file(path: Path, module: str | None = None) -> Source:
    """A policy from a file or a folder.

    All but .keras files are unpickled, which runs what is in them: load only files that
    you trust.

    Args:
        path: a .zip of Stable-Baselines3, a .keras file, a .pkl or .joblib file of
            scikit-learn, or a folder with a checkpoint of RLlib.
        module: of a checkpoint.

    Raises:
        InvalidArgument: it is none of these.
        Malformed: it cannot be loaded.
    """
    if path.is_dir():
        from mlbridge.export import rllib

        with reading(path, "a checkpoint of RLlib"):
            return Source(rllib.load(path, module), "rllib")
    match path.suffix:
        case ".zip":
            from mlbridge.export import sb3

            return Source(sb3.load(path), "sb3")
        case ".keras":
            import keras

            with reading(path, "a model of Keras"):
                return Source(keras.saving.load_model(path, compile=False), "keras")
        case ".pkl":
            with path.open("rb") as file, reading(path, "a pickled policy"):
                return Source(pickle.load(file))
        case ".joblib":
            import joblib

            with reading(path, "a policy that joblib wrote"):
                return Source(joblib.load(path))
    raise InvalidArgument(
        f"{path}: expected a .zip of Stable-Baselines3, a .keras, .pkl or .joblib file "
        "or a checkpoint folder of RLlib; a network of PyTorch or JAX is named as "
        "MODULE:OBJECT"
    )


def _source(by: _Options) -> Source:
    """The policy that POLICY names."""
    path = Path(by.policy)
    if not path.exists() and ":" in by.policy:
        found: Any = find_object(by.policy)
        # A function is a policy of JAX, or makes one of another framework.
        if inspect.isfunction(found) and by.framework != "jax":
            found = found()
        saved = _statistics(by.statistics)
        options = {"module": by.module} if by.module else {}
        return Source(found, by.framework, {**saved, **options})
    if not path.exists():
        raise typer.BadParameter(
            f"there is no file '{by.policy}', and it is no MODULE:OBJECT"
        )
    with needed(f"reading {by.policy}"):
        source = load_file(path, by.module)
    return Source(
        source.policy, by.framework or source.framework, _statistics(by.statistics)
    )


def _statistics(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    with needed(f"reading {path}"):
        from mlbridge.export.sb3 import load_statistics

        return {"statistics": load_statistics(path)}


def _features(
    texts: list[str] | None, named: str | None, without: list[str]
) -> FeatureSource:
    """What --feature, --features and --without say together."""
    if texts and named:
        raise typer.BadParameter("--feature and --features are two different things")
    source: FeatureSource = texts
    if named is not None and Path(named).exists():
        source = read_log(named)
    elif named is not None:
        source = find_object(named, "a training log or MODULE:OBJECT")
    if source is None and without:
        raise typer.BadParameter("--without goes with --features")
    return features_of(source, without) or None


def _vocabulary(path: Path | None) -> tuple[str, str] | None:
    if path is None:
        return None
    try:
        return path.name, ir2vec.load(path).hash
    except (Malformed, SchemaMismatch):
        # Of another kind than IR2Vec's.
        return path.name, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
