# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a trained policy to one ``.onnx`` file that a compiler asks by its features.

Such as::

    from mlbridge.export import export

    export(PPO.load("inliner.zip"), "inliner.onnx", features=read_log("zlib.log"))

The file's inputs are the features as the compiler populates them, by name and type;
converting, ordering and normalising them is part of the graph. It runs in the compiler
(``onnx:inliner.onnx``), as machine code (``mlbridge compile``) and behind
``mlbridge serve``. Each framework has a module here, which is imported when a policy of
its kind is exported: pytorch, sb3, rllib, jax, keras, sklearn. docs/export.md tells
more, docs/model-metadata.md what else is in the file.
"""

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.export.failures import needed
from mlbridge.export.features import (
    FeatureSource,
    FeatureSpec,
    features_of,
    parse_feature,
    to_json,
)
from mlbridge.export.metadata import Metadata, Training

if TYPE_CHECKING:
    from mlbridge.export.check import Comparison
    from mlbridge.export.policy import Policy, Tensors

__all__ = [
    "Exported",
    "FeatureSource",
    "FeatureSpec",
    "Metadata",
    "Training",
    "export",
    "features_of",
    "framework_of",
    "parse_feature",
]

FRAMEWORKS = ("pytorch", "sb3", "rllib", "jax", "keras", "sklearn")

_FREE = FRAMEWORKS[:3]


@dataclass(frozen=True)
class Exported:
    """An .onnx file that was written.

    Attributes:
        path: of the file.
        framework: that the policy is from, and its version.
        features: its inputs, in the order in which the policy was trained with them.
        outputs: the names of its outputs.
        decide: what runners make of these, if anything.
        comparison: with the framework's own answers.
    """

    path: Path
    framework: str
    features: tuple[FeatureSpec, ...]
    outputs: tuple[str, ...]
    decide: str | None
    comparison: "Comparison"


def export(
    policy: Any,
    path: str | os.PathLike[str],
    *,
    features: FeatureSource = None,
    framework: str | None = None,
    outputs: list[str] | None = None,
    decide: str | None = None,
    batch: int | None = None,
    metadata: Metadata | None = None,
    samples: "Tensors | None" = None,
    requests: int = 256,
    **options: Any,
) -> Exported:
    """Writes a policy as an .onnx file, after its answers were found to be the same.

    Args:
        policy: a PyTorch module, an algorithm of Stable-Baselines3 or RLlib or an
            RLModule, a Keras model, a scikit-learn estimator, or a function of JAX.
        path: of the file; it is replaced at once, or not at all.
        features: what the compiler sends, in the order of the policy's training; by
            default those of the policy's own observation space, where it has one.
        framework: one of `FRAMEWORKS`; only a function has to be told its own.
        outputs: those to keep, by their names.
        decide: what runners make of them: ``argmax:NAME``, ``sample:NAME``,
            ``outputs:NAME``, or ``""`` for the outputs as they are; by default what
            the policy's kind suggests.
        batch: how many requests it answers at once: None for any number, or 1 for a
            policy for which it matters.
        metadata: what else the file should say.
        samples: features by name, [n, ...] each, to compare the answers for; by
            default such are drawn.
        requests: how many to draw.
        **options: the framework's own: ``statistics`` (a VecNormalize) for sb3,
            ``module`` and ``connectors`` for rllib.

    Raises:
        InvalidArgument: a feature is there twice, or what is to be known is not said.
        SchemaMismatch: the features do not fit the policy.
        Unsupported: this kind of policy cannot be exported, or a package is missing;
            the message says which.
        ModelError: the graph does not answer as the framework does; nothing is
            written.
    """
    described = features_of(features)
    kind = framework or framework_of(policy)
    with needed(f"exporting from {kind}"):
        from mlbridge.export.check import compare
        from mlbridge.export.graph import build

        found = _policy_of(kind, policy, described, options)
    rule = found.decide if decide is None else decide
    kept = outputs or _kept(found, rule)
    model = build(found, kept, batch=batch)
    names = tuple(value.name for value in model.graph.output)
    _check_rule(rule, names)
    entries = {
        "mlbridge.features": to_json(found.features),
        "mlbridge.framework": found.framework,
        **({"mlbridge.decide": rule} if rule else {}),
        **dict((metadata or Metadata()).entries()),
    }
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    with needed("checking what was exported"):
        comparison = compare(
            model, found, batch=batch, requests=requests, samples=samples
        )
    _write(model.SerializeToString(deterministic=True), Path(path))
    return Exported(
        Path(path), found.framework, found.features, names, rule or None, comparison
    )


def _policy_of(
    kind: str, policy: Any, features: tuple[FeatureSpec, ...], options: dict[str, Any]
) -> "Policy":
    if kind not in FRAMEWORKS:
        raise InvalidArgument(
            f"there is no framework '{kind}', only {', '.join(FRAMEWORKS)}"
        )
    free = [str(feature) for feature in features if feature.free]
    if free and kind not in _FREE:
        raise Unsupported(
            f"'{free[0]}': features of changing size are for {', '.join(_FREE)}, not"
            f" for {kind}"
        )
    make = importlib.import_module(f"mlbridge.export.{kind}").policy_of
    try:
        found: Policy = make(policy, features, **options)
    except TypeError as error:
        # An option of another framework; anything else is its own error.
        if options and "unexpected keyword argument" in str(error):
            raise InvalidArgument(f"{kind} has no such option: {error}") from None
        raise
    return found


def framework_of(policy: Any) -> str:
    """Which of `FRAMEWORKS` an object belongs to.

    Raises:
        Unsupported: to none of them.
    """
    # By the names of its classes' modules: no framework is imported to find out.
    families = [base.__module__.partition(".")[0] for base in type(policy).__mro__]
    names = [f"{base.__module__}.{base.__name__}" for base in type(policy).__mro__]
    if "stable_baselines3" in families:
        return "sb3"
    if any(name.startswith("ray.rllib.") for name in names):
        return "rllib"
    if "keras" in families or "tensorflow" in families:
        return "keras"
    if "torch.nn.modules.module.Module" in names:
        return "pytorch"
    if "sklearn" in families:
        return "sklearn"
    if "flax" in families or "jaxlib" in families or "jax" in families:
        return "jax"
    raise Unsupported(
        f"a {type(policy).__module__}.{type(policy).__qualname__} is no policy that "
        "can be exported: expected a PyTorch module, an algorithm of Stable-Baselines3 "
        "or RLlib or an RLModule, a Keras model, a scikit-learn estimator, or, with "
        "framework='jax' (--framework jax), a function of JAX"
    )


def _kept(policy: "Policy", rule: str | None) -> list[str] | None:
    """The outputs that a rule wants, where it names another than the policy does."""
    output = (rule or "").partition(":")[2]
    if output and policy.outputs and output not in policy.outputs:
        return [output]
    return None


def _check_rule(rule: str | None, outputs: tuple[str, ...]) -> None:
    if not rule:
        return
    name, _, output = rule.partition(":")
    if name not in ("argmax", "sample", "outputs"):
        raise InvalidArgument(
            f"expected argmax:OUTPUT, sample:OUTPUT or outputs:OUTPUT, found '{rule}'"
        )
    if output not in outputs and (output or len(outputs) > 1):
        raise InvalidArgument(
            f"'{rule}': there is no output '{output}', only {', '.join(outputs)}"
        )


def _write(data: bytes, path: Path) -> None:
    """The whole file, or none: a compiler may be about to load it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
