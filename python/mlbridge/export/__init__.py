# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a trained policy to an ``.onnx`` file that compilers can use.

Example::

    from mlbridge.export import export

    export(PPO.load("inliner.zip"), "inliner.onnx", features=read_log("zlib.log"))

The exported model has one input per feature, with the feature's name and type. It
converts the features to the vector or tensors that the trained network expects. The
file can be used in the compiler (``onnx:inliner.onnx``), compiled to machine code
(``mlbridge compile``), or served (``mlbridge serve``).

Each framework has a module in this package, which is imported on demand. See
docs/guides/export.md, and docs/reference/model-metadata.md for the metadata.
"""

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
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

FRAMEWORKS = ("pytorch", "sb3", "rllib", "jax", "keras", "sklearn", "savedmodel")
_FREE = FRAMEWORKS[:3]


@dataclass(frozen=True)
class Exported:
    """An exported .onnx file.

    Attributes:
        path: the path of the file.
        framework: the name and version of the policy's framework.
        features: the inputs, in the order of training.
        outputs: the names of the outputs.
        decide: the rule that makes a decision from an output, or None.
        comparison: the result of the comparison with the framework.
        undecided: outputs that look like scores but have no rule.
        constants: inputs of the policy that are not features, and their values.
    """

    path: Path
    framework: str
    features: tuple[FeatureSpec, ...]
    outputs: tuple[str, ...]
    decide: str | None
    comparison: "Comparison"
    undecided: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)


def export(
    policy: Any,
    path: str | os.PathLike[str],
    *,
    features: FeatureSource = None,
    framework: str | None = None,
    outputs: list[str] | None = None,
    decide: str | None = None,
    decision: str | None = None,
    batch: int | None = None,
    metadata: Metadata | None = None,
    samples: "Tensors | None" = None,
    requests: int = 256,
    **options: Any,
) -> Exported:
    """Writes a policy to an .onnx file, after a comparison with the framework.

    Args:
        policy: a PyTorch module, an algorithm of Stable-Baselines3 or RLlib, an
            RLModule, a Keras model, a scikit-learn estimator, a JAX function, or the
            path of a SavedModel's folder.
        path: the file to write. An existing file is replaced atomically.
        features: the compiler's features, in the order of training. The default is
            the policy's observation space, if it has one.
        framework: one of `FRAMEWORKS`. Required if `policy` is a function.
        outputs: the names of the outputs to keep. The default is all outputs, except
            ``value`` of sb3 and ``probabilities`` of sklearn. If `decide` names one of
            these two, the default is only this output.
        decide: the rule that makes a decision from an output: ``argmax:NAME``,
            ``sample:NAME`` or ``outputs:NAME``. With ``""``, there is no rule. The
            default depends on the kind of policy.
        decision: the name of the decision. If given, the file's only output is the
            decision that the rule ``argmax:NAME`` makes, int64 [N]. The file then has
            no rule.
        batch: the batch size. None allows any batch size, unless the framework fixes
            it. Use 1 if the policy's outputs depend on the other requests of a batch.
        metadata: further metadata of the file.
        samples: the requests for the comparison, as a dict from names of features to
            arrays of shape [n, ...]. By default, they are random.
        requests: the number of random requests for the comparison.
        **options: options of the framework: ``statistics`` (a VecNormalize) for sb3,
            ``module`` and ``agent`` for rllib, ``signature``, ``constants`` and
            ``python`` for savedmodel.

    Raises:
        InvalidArgument: an argument is wrong or missing.
        SchemaMismatch: the features do not fit the policy.
        Unsupported: the policy cannot be exported, or a package is missing.
        ModelError: the exported outputs differ from the framework's. Then no file is
            written.
    """
    described = features_of(features)
    kind = framework or framework_of(policy)
    with needed(f"exporting from {kind}"):
        from mlbridge.export.check import compare
        from mlbridge.export.graph import build, decided

        found = _policy_of(kind, policy, described, options)
    batch = batch or found.batch
    rule = found.decide if decide is None else decide
    kept = outputs or _kept(found, rule)
    model = build(found, kept, batch=batch)
    names = tuple(value.name for value in model.graph.output)
    _check_rule(rule, names, decision)
    entries = {
        "mlbridge.features": to_json(found.features),
        "mlbridge.framework": found.framework,
        **({"mlbridge.decide": rule} if rule and decision is None else {}),
        **dict((metadata or Metadata()).entries()),
    }
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    with needed("checking what was exported"):
        comparison = compare(
            model, found, batch=batch, requests=requests, samples=samples
        )
    if decision is not None:
        # Add the decision after the comparison, which compares scores. Decisions may
        # differ if rounding changes the order of scores that are nearly equal.
        scores = (rule or "").partition(":")[2] or names[0]
        model = decided(model, scores, decision)
        names, rule = (decision,), ""
    # Replace the file atomically, so that no other process reads half of it.
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
        found.constants,
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
        # Translate only this TypeError, whose cause is an option for another framework.
        if options and "unexpected keyword argument" in str(error):
            raise InvalidArgument(f"{kind} has no such option: {error}") from None
        raise
    return found


def framework_of(policy: Any) -> str:
    """Returns the name in `FRAMEWORKS` of the framework that made an object.

    Raises:
        Unsupported: the object is from another framework.
    """
    # Compare names of modules, because isinstance would need to import the frameworks.
    families = [base.__module__.partition(".")[0] for base in type(policy).__mro__]
    names = [f"{base.__module__}.{base.__name__}" for base in type(policy).__mro__]
    if isinstance(policy, str | os.PathLike):
        return "savedmodel"
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
        f"cannot export a {type(policy).__module__}.{type(policy).__qualname__}: "
        "expected a PyTorch module, an algorithm of Stable-Baselines3 "
        "or RLlib or an RLModule, a Keras model, a scikit-learn estimator, the path of "
        "a SavedModel, or, with framework='jax' (--framework jax), a function of JAX"
    )


def _kept(policy: "Policy", rule: str | None) -> list[str] | None:
    """Returns the output that the rule needs if it is not exported by default."""
    output = (rule or "").partition(":")[2]
    if output and policy.outputs and output not in policy.outputs:
        return [output]
    return None


def _check_rule(
    rule: str | None, outputs: tuple[str, ...], decision: str | None
) -> None:
    name, _, output = (rule or "").partition(":")
    if rule and name not in ("argmax", "sample", "outputs"):
        raise InvalidArgument(
            f"expected argmax:OUTPUT, sample:OUTPUT or outputs:OUTPUT, found '{rule}'"
        )
    if rule and output not in outputs and (output or len(outputs) > 1):
        raise InvalidArgument(
            f"'{rule}': there is no output '{output}', only {', '.join(outputs)}"
        )
    if decision is not None and not (rule or "").startswith("argmax:"):
        raise InvalidArgument(
            f"the decision '{decision}': expected the rule argmax:OUTPUT, found"
            f" '{rule or ''}'"
        )


def _is_scores(output: "onnx.ValueInfoProto") -> bool:
    """Returns whether an output has several floats per request and is not an action."""
    tensor = output.type.tensor_type
    extents = tensor.shape.dim
    is_float = tensor.elem_type in (1, 11)  # TensorProto.FLOAT, TensorProto.DOUBLE
    is_row = len(extents) == 2 and extents[1].dim_value > 1
    return is_float and is_row and output.name not in ("action", "value")
