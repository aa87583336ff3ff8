# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports classifiers, regressors and pipelines of scikit-learn with skl2onnx."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import (
    OPSET,
    Policy,
    Tensors,
    named_features,
    need_features,
    observe,
    vector_port,
)


def policy_of(estimator: Any, features: Sequence[FeatureSpec]) -> Policy:
    """Makes a policy from a fitted estimator, whose columns are float32 features.

    A classifier has the output ``label`` of shape [N], and may have ``probabilities``
    of shape [N, classes]. A regressor has the output ``value`` of shape [N, 1].

    Args:
        estimator: a fitted classifier or regressor.
        features: the features in the order of the columns. If the columns have names,
            features are matched by name. Then the default is one float per column.

    Raises:
        InvalidArgument: the estimator is not fitted, or there are no features.
        SchemaMismatch: the features differ from the columns in number or name.
        Unsupported: skl2onnx lacks the estimator, or the classes are not numbers.
    """
    what = type(estimator).__name__
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError) as error:
        raise InvalidArgument(f"{what}: {error}") from None
    columns = getattr(estimator, "feature_names_in_", None)
    if columns is not None:
        named = [FeatureSpec(str(name)) for name in columns]
        features = named_features(features, named, what)
    need_features(features, what)
    count = int(estimator.n_features_in_)
    port = vector_port("X", features, (count,), what=what)
    decides, outputs = _outputs(estimator, what)

    def reply(tensors: Tensors) -> dict[str, NDArray[Any]]:
        rows = observe([port], tensors)["X"]
        with warnings.catch_warnings():
            # Hide the warning that an estimator fitted to a table got an array.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            if not decides:
                return {"value": estimator.predict(rows).reshape(len(rows), -1)}
            found = {"label": estimator.predict(rows).astype(np.int64)}
            if "probabilities" in outputs:
                found["probabilities"] = estimator.predict_proba(rows)
        return found

    return Policy(
        _convert(estimator, count, outputs, what),
        (port,),
        f"scikit-learn {sklearn.__version__}",
        reply,
        "outputs:label" if decides else None,
        outputs[:1],
    )


def _outputs(estimator: Any, what: str) -> tuple[bool, tuple[str, ...]]:
    """Returns whether the estimator is a classifier, and the names of its outputs."""
    if is_regressor(estimator):
        return False, ("value",)
    if not is_classifier(estimator):
        raise Unsupported(f"{what} is neither a classifier nor a regressor")
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind not in "biu":
        raise Unsupported(
            f"{what}: its classes are {classes.dtype}, and a decision is a number: "
            "train it with classes 0, 1, ..."
        )
    if hasattr(estimator, "predict_proba"):
        return True, ("label", "probabilities")
    return True, ("label",)


def _convert(estimator: Any, columns: int, outputs: tuple[str, ...], what: str) -> Any:
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    # Disable zipmap: it makes one dict per row, which compilers cannot read.
    options = {id(last): {"zipmap": False}} if "probabilities" in outputs else None
    try:
        model = to_onnx(
            estimator,
            initial_types=[("X", FloatTensorType([None, columns]))],
            target_opset={"": OPSET, "ai.onnx.ml": 3},
            options=options,
        )
    except (MissingConverter, MissingShapeCalculator) as error:
        reason = str(error).splitlines()[0]
        raise Unsupported(
            f"{what}: skl2onnx has no converter for it: {reason}"
        ) from None
    for value, name in zip(model.graph.output, outputs, strict=False):
        _rename(model.graph, value, name)
    return model


def _rename(graph: Any, output: Any, name: str) -> None:
    """Renames an output of the graph."""
    for node in graph.node:
        for names in (node.input, node.output):
            for i, old in enumerate(names):
                if old == output.name:
                    names[i] = name
    output.name = name
