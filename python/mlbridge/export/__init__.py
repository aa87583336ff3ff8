# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a trained policy to one ``.onnx`` file that takes the compiler's features.

Such as::

    from mlbridge.export import export

    export(PPO.load("inliner.zip"), "inliner.onnx", features=read_log("zlib.log"))

The file's inputs are the features as the compiler populates them, by name and type; the
graph converts, orders and normalises them. The file runs in the compiler
(``onnx:inliner.onnx``), as machine code (``mlbridge compile``) and behind
``mlbridge serve``. Each framework has a module here, imported on demand: pytorch, sb3,
rllib, jax, keras, sklearn. See docs/guides/export.md, and
docs/reference/model-metadata.md for the file's metadata.
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
from mlbridge.files import replacing

if TYPE_CHECKING:
    import onnx

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
    """An exported .onnx file.

    Attributes:
        path: of the file.
        framework: the policy's framework, with its version.
        features: the inputs, in the order of training.
        outputs: the names of the outputs.
        decide: the rule by which runners choose from the outputs, if any.
        comparison: with the framework's own outputs.
        undecided: outputs that look like scores, if no rule chooses from them.
    """

    path: Path
    framework: str
    features: tuple[FeatureSpec, ...]
    outputs: tuple[str, ...]
    decide: str | None
    comparison: "Comparison"
    undecided: tuple[str, ...] = ()


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
    """Writes a policy as an .onnx file if its outputs match the framework's.

    Args:
        policy: a PyTorch module, an algorithm of Stable-Baselines3 or RLlib or an
            RLModule, a Keras model, a scikit-learn estimator, or a function of JAX.
        path: of the file, which is replaced atomically.
        features: the compiler's features, in the order of training; by default those
            of the policy's own observation space, if it has one.
        framework: one of `FRAMEWORKS`; only needed for a function.
        outputs: names of outputs to keep.
        decide: the rule by which runners choose: ``argmax:NAME``, ``sample:NAME``,
            ``outputs:NAME``, or ``""`` for the outputs unchanged; by default the rule
            for the kind of policy.
        batch: the number of requests at once: None for any number, or 1 for a policy
            whose outputs depend on the batch.
        metadata: further metadata of the file.
        samples: features by name, [n, ...] each, for the comparison; by default they
            are drawn.
        requests: the number of requests to draw.
        **options: the framework's own: ``statistics`` (a VecNormalize) for sb3,
            ``module`` and ``agent`` for rllib.

    Raises:
        InvalidArgument: an argument is wrong or missing.
        SchemaMismatch: the features do not fit the policy.
        Unsupported: this kind of policy cannot be exported, or the named package is
            missing.
        ModelError: the graph's outputs differ from the framework's; nothing is
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
    # Other processes see the old file or the complete new one.
    with replacing(Path(path)) as new:
        new.write_bytes(model.SerializeToString(deterministic=True))
    undecided = [v.name for v in model.graph.output if rule is None and _is_scores(v)]
    return Exported(
        Path(path),
        found.framework,
        found.features,
        names,
        rule or None,
        comparison,
        tuple(undecided),
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
    """Returns the one of `FRAMEWORKS` that an object belongs to.

    Raises:
        Unsupported: the object belongs to none of them.
    """
    # Compares the names of modules, so that no framework is imported.
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
    """Returns the rule's output if it is not among the policy's default outputs."""
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


def _is_scores(output: "onnx.ValueInfoProto") -> bool:
    """Returns true for an output of two or more floats per request, except actions."""
    tensor = output.type.tensor_type
    extents = tensor.shape.dim
    is_float = tensor.elem_type in (1, 11)  # TensorProto.FLOAT, TensorProto.DOUBLE
    is_row = len(extents) == 2 and extents[1].dim_value > 1
    return is_float and is_row and output.name not in ("action", "value")
