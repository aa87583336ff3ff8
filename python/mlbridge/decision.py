# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model's outputs to an answer, as the model's metadata ask for it.

The rules are those of lib/InProcess/Decision.cpp and ModelMetadata.cpp, so that a
served file answers as it does inside the compiler; docs/model-metadata.md has them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import Malformed, ModelError, SchemaMismatch

_RULES = ("outputs", "argmax", "sample")


class Decision:
    """What ``mlbridge.decide`` asks for.

    Attributes:
        output: the only one that is wanted; None for all of them.
        chooses: whether the answer is an index in it, and not the output itself.
    """

    def __init__(
        self,
        model: str,
        metadata: Mapping[str, str],
        outputs: Mapping[str, np.dtype[Any] | None],
        seed: int = 0,
    ) -> None:
        """Finds the output; the types of those that are no numbers are None.

        Raises:
            Malformed: there is no such rule.
            SchemaMismatch: there is no such output, or nothing to choose from in it.
        """
        text = metadata.get("mlbridge.decide", "outputs")
        rule, _, name = text.partition(":")
        if rule not in _RULES:
            raise Malformed(
                f"{model}: its metadata 'mlbridge.decide': expected outputs, argmax or "
                f"sample, and perhaps a colon and an output's name, found '{text}'"
            )
        self._model = model
        self._draws = rule == "sample"
        self._random = np.random.default_rng(seed)
        self.chooses = rule != "outputs"
        self.output: str | None = None
        if not self.chooses and not name:
            return
        if not name and len(outputs) == 1:
            (name,) = outputs
        if name not in outputs:
            wanted = f" '{name}'" if name else " to decide on"
            raise SchemaMismatch(
                f"{model}: its metadata 'mlbridge.decide': expected an output{wanted}, "
                f"found {', '.join(outputs)}"
            )
        if self.chooses and outputs[name] is None:
            raise SchemaMismatch(
                f"{model}: output '{name}': expected numbers to choose from"
            )
        self.output = name

    def choose(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """The index for each row of scores along the innermost extent.

        Raises:
            SchemaMismatch: there is nothing to choose from.
            ModelError: a score is NaN, or the greatest that is to be drawn with is
                infinite.
        """
        if scores.ndim == 0 or scores.shape[-1] == 0:
            raise SchemaMismatch(
                f"{self._model}: output '{self.output}': expected numbers to choose "
                f"from, found the shape {scores.shape}"
            )
        rows = scores.reshape(-1, scores.shape[-1])
        if rows.dtype.kind == "f":
            self._refuse(np.isnan(rows), "NaN")
        # Of equals the first.
        chosen = rows.argmax(axis=1)
        if self._draws:
            chosen = self._sample(rows.astype(np.float64), chosen)
        return np.asarray(chosen.reshape(scores.shape[:-1]), np.int64)

    def _sample(
        self, rows: NDArray[np.float64], best: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        greatest = np.take_along_axis(rows, best[:, None], axis=1)
        at_best = np.arange(rows.shape[1]) == best[:, None]
        self._refuse(np.isinf(greatest) & at_best, "an infinity as the greatest")
        # The greatest becomes exp(0), so that nothing overflows.
        up_to = np.exp(rows - greatest).cumsum(axis=1)
        drawn = self._random.random((len(rows), 1)) * up_to[:, -1:]
        return np.asarray((up_to > drawn).argmax(axis=1))

    def _refuse(self, wrong: NDArray[np.bool_], found: str) -> None:
        if wrong.any():
            row, at = np.argwhere(wrong)[0]
            raise ModelError(
                f"{self._model}: output '{self.output}', row {row}: expected scores "
                f"that can be compared, found {found} at {at}"
            )


def refuses_non_finite(model: str, metadata: Mapping[str, str]) -> bool:
    """Whether features that are not finite are refused: ``mlbridge.finite``.

    Raises:
        Malformed: it is neither true nor false.
    """
    text = metadata.get("mlbridge.finite", "false")
    if text not in ("true", "false"):
        raise Malformed(
            f"{model}: its metadata 'mlbridge.finite': expected true or false, found "
            f"'{text}'"
        )
    return text == "true"
