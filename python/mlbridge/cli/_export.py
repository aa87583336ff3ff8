# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge export``: converts a trained policy to an .onnx file."""

import hashlib
import inspect
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from mlbridge import ir2vec
from mlbridge.cli._objects import find_object
from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch
from mlbridge.export import (
    FRAMEWORKS,
    Exported,
    FeatureSource,
    Metadata,
    Training,
    clang,
    features_of,
)
from mlbridge.export import export as write
from mlbridge.export.failures import needed, reading
from mlbridge.files import expect_output
from mlbridge.log import TrainingLog, read_log
from mlbridge.options import with_options
from mlbridge.terminal import console, errors

_FILE: dict[str, Any] = {"metavar": "FILE", "exists": True, "dir_okay": False}


@dataclass(frozen=True)
class _Options:
    policy: Annotated[
        str,
        Argument(
            metavar="POLICY",
            help="Trained policy: a .zip, .keras, .pkl or .joblib file, a folder with a"
            " checkpoint or a SavedModel, or a Python object, MODULE:OBJECT.",
        ),
    ]
    to: Annotated[Path, Option("--to", metavar="FILE", help="ONNX file to write.")]
    feature: Annotated[
        list[str] | None,
        Option(
            metavar="'TYPE[SHAPE] NAME'",
            help="Type and name of a feature that the compiler sends: `'int64 "
            "callee_size'`. Repeat the option, in the order used in training.",
        ),
    ] = None
    features: Annotated[
        str | None,
        Option(
            metavar="LOG | MODULE:OBJECT",
            help="Training log or Gymnasium space from which to read the features.",
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Feature to omit. May be repeated."),
    ] = None
    output: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Output to keep. May be repeated. [default: all, except `value` of"
            " Stable-Baselines3 and `probabilities` of scikit-learn]",
        ),
    ] = None
    decide: Annotated[
        str | None,
        Option(
            metavar="RULE:OUTPUT",
            help="How a decision is made from an output with scores: `argmax:logits` "
            "or `sample:logits`. With '', the compiler receives the outputs.",
        ),
    ] = None
    batch: Annotated[
        int | None,
        Option(min=1, help="Fix the batch size of the model. [default: any size]"),
    ] = None
    framework: Annotated[
        str | None,
        Option(
            metavar="|".join(FRAMEWORKS),
            help="Framework of the policy. Required if the policy is a function.",
        ),
    ] = None
    statistics: Annotated[
        Path | None,
        Option(help="Stable-Baselines3: file from `VecNormalize.save`.", **_FILE),
    ] = None
    module: Annotated[
        str | None, Option(metavar="NAME", help="RLlib: module to export.")
    ] = None
    agent: Annotated[
        str | None,
        Option(metavar="NAME", help="RLlib: agent for which the module decides."),
    ] = None
    signature: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="SavedModel: signature to export. [default: `serving_default`,"
            " `action` or the only one]",
        ),
    ] = None
    constant: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=NUMBER",
            help="SavedModel: input that the compiler does not send, and its value. May"
            " be repeated.",
        ),
    ] = None
    python: Annotated[
        Path | None,
        Option(
            help="SavedModel: Python with TensorFlow and tf2onnx. [default: the Python"
            " of `mlbridge`]",
            **_FILE,
        ),
    ] = None
    reward: Annotated[
        str | None,
        Option(metavar="TEXT", help="Description of the reward, stored in the file."),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            help="Vocabulary of the embeddings in the features. The ONNX file stores"
            " its name and hash.",
            **_FILE,
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option(help="Random seed of the training, stored in the ONNX file."),
    ] = None
    allow_non_finite: Annotated[
        bool,
        Option("--allow-non-finite", help="Allow features to be NaN or infinite."),
    ] = False


def _export(context: typer.Context, by: _Options) -> None:
    r"""Convert a trained policy to an ONNX file that a compiler can load.

    The ONNX model has one input per feature, with the feature's name and type. Before
    writing the file, the command checks that ONNX Runtime and the framework compute the
    same outputs.

    To export a policy of Stable-Baselines3 (PPO, A2C, DQN) with its VecNormalize:

    ```sh
    mlbridge export ppo.zip --statistics vecnormalize.pkl --to inliner.onnx
    ```

    To export one module of an RLlib checkpoint:

    ```sh
    mlbridge export checkpoint/ --module colour --to colour.onnx
    ```

    To export a SavedModel, for example an inliner of MLGO, name a Python with
    TensorFlow:

    ```sh
    mlbridge export saved_policy/ --python venv/bin/python --to inliner.onnx
    ```

    For PyTorch, scikit-learn, Keras and JAX, name a training log that contains the
    features, or list the features:

    ```sh
    mlbridge export train:network --to inliner.onnx \
        --features zlib.log --without inlining_default
    mlbridge export train:forest --to inliner.onnx \
        --feature 'int64 callee_size' --feature 'float[300] embedding'
    ```

    To use the file in a compiler:

    ```sh
    clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm \
        -mlbridge-inliner=onnx:inliner.onnx -c x.c
    ```

    Loading a pickled file runs the code in it. Only export files that you trust.
    """
    inputs = [by.policy, by.features or "", by.statistics or "", by.vocabulary or ""]
    expect_output(by.to, *(Path(one) for one in inputs if one))
    policy, framework = _policy(by)
    options: dict[str, Any] = {}
    if by.statistics:
        with needed(f"reading {by.statistics}"):
            from mlbridge.export.sb3 import load_statistics

            options["statistics"] = load_statistics(by.statistics)
    if by.module and not Path(by.policy).exists():
        options["module"] = by.module
    if by.agent:
        options["agent"] = by.agent
    if framework == "savedmodel" or by.signature or by.constant or by.python:
        options["signature"] = by.signature
        options["constants"] = dict(map(_constant, by.constant or []))
        options["python"] = by.python
    exported = write(
        policy,
        by.to,
        features=_features(by.feature, by.features, by.without or []),
        framework=framework,
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
    if exported.constants:
        said = ", ".join(f"{k} = {v:g}" for k, v in exported.constants.items())
        console.print(f"The compiler does not send these inputs: {said}.")
    _show_use(exported)
    for output in exported.undecided:
        errors.print(
            f"warning: the output '{output}' looks like scores, one per choice; if the "
            f"compiler expects the choice itself, add --decide argmax:{output} (or "
            "--decide '' to silence this warning)",
            style="yellow",
        )


export = with_options(_export, _Options)


def _constant(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise typer.BadParameter(
            f"--constant: expected NAME=NUMBER, found '{text}'"
        ) from None


def _show_use(exported: Exported) -> None:
    """Prints how clang uses an inliner, and which features clang cannot send."""
    use = clang.use(exported.features, exported.outputs, exported.path)
    if use is None:
        return
    console.print(f"To use it: {use.command}", soft_wrap=True)
    for name in use.unknown:
        errors.print(
            f"warning: LLVM {clang.VERSION} has no feature '{name}', so its inliner "
            "cannot use the file: each compile falls back to LLVM's heuristic. If the "
            f"policy works without the feature, add --constant {name}=0",
            style="yellow",
        )


def _policy(by: _Options) -> tuple[Any, str | None]:
    """Returns the policy that POLICY names, and the policy's framework if known."""
    path = Path(by.policy)
    if path.exists():
        with needed(f"reading {by.policy}"):
            policy, framework = _load_file(path, by.module)
        return policy, by.framework or framework
    if ":" not in by.policy:
        raise typer.BadParameter(
            f"expected a file or MODULE:OBJECT, found '{by.policy}', which is neither"
        )
    found: Any = find_object(by.policy)
    # A JAX policy is a function. For other frameworks, a function returns the policy.
    if inspect.isfunction(found) and by.framework != "jax":
        found = found()
    return found, by.framework


def _load_file(path: Path, module: str | None) -> tuple[Any, str | None]:
    """Loads a policy. Also returns its framework if the file format determines it."""
    if path.is_dir():
        from mlbridge.export import savedmodel

        if savedmodel.is_saved_model(path):
            return path, "savedmodel"
        from mlbridge.export import rllib

        with reading(path, "a checkpoint of RLlib"):
            return rllib.load(path, module), "rllib"
    match path.suffix:
        case ".zip":
            from mlbridge.export import sb3

            return sb3.load(path), "sb3"
        case ".keras":
            import keras

            with reading(path, "a model of Keras"):
                return keras.saving.load_model(path, compile=False), "keras"
        case ".pkl":
            with path.open("rb") as file, reading(path, "a pickled policy"):
                return pickle.load(file), None
        case ".joblib":
            import joblib

            with reading(path, "a policy that joblib wrote"):
                return joblib.load(path), None
    raise InvalidArgument(
        f"{path}: expected a .zip of Stable-Baselines3, a .keras, .pkl or .joblib file "
        "or a folder of RLlib or TensorFlow; a network of PyTorch or JAX is named as "
        "MODULE:OBJECT"
    )


def _features(
    texts: list[str] | None, named: str | None, without: list[str]
) -> FeatureSource:
    """Returns the features that --feature, --features and --without describe."""
    if texts and named:
        raise typer.BadParameter("--feature and --features are mutually exclusive")
    source: FeatureSource = texts
    if named is not None and Path(named).exists():
        source = read_log(named)
    elif named is not None:
        source = find_object(named, "a training log or MODULE:OBJECT")
    if source is None and without:
        raise typer.BadParameter("--without goes with --features")
    if isinstance(source, TrainingLog):
        # Only warn, because users often name `inlining_default`, which some logs lack.
        known = [spec.name for spec in source.features]
        for name in without:
            if name not in known:
                errors.print(
                    f"warning: {named} has no feature '{name}' to leave out, only "
                    f"{', '.join(known)}",
                    style="yellow",
                )
        without = [name for name in without if name in known]
    return features_of(source, without) or None


def _vocabulary(path: Path | None) -> tuple[str, str] | None:
    if path is None:
        return None
    try:
        return path.name, ir2vec.load(path).hash
    except (Malformed, SchemaMismatch):
        # Hash the file's bytes, because the file is not an IR2Vec vocabulary.
        return path.name, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
