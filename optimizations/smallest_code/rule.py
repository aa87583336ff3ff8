# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A rule of inlining with few weights.

LLVM's inliner compares the cost of a call with a threshold. For the linked size, its
cost lacks terms: the linker keeps one of several copies of a merged function, and a
function without uses disappears. The rule adds such terms, each with a weight:

    inline = threshold - cost + weights . terms > 0

All terms are in instructions or small counts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from mlbridge.export import Exported
from mlbridge.files import replacing
from mlbridge_optimizations.inlining.network import INSTRUCTION_COST
from mlbridge_optimizations.training.cma_es import Weights

from .calls import LLVM_DECISION, Calls
from .model_file import write_model

TERMS = {
    "last use": "10 if the callee is merged and disappears after this call",
    "last use, size": "the callee's instructions / 4 in this case",
    "two uses, size": "the callee's instructions / 4 if it disappears after two calls",
    "more uses, size": "the callee's instructions / uses if it disappears after these",
    "uses in one caller": "2 if all uses, two or more, are in this caller",
    "many files": "1 if the callee is merged, and several files emit it",
    "local": "1 if the callee is local and has two uses or more",
    "invoke": "1 if the call has a landing pad",
    "nounwind": "1 if the callee cannot throw",
    "arguments": "half the number of arguments, at most 4",
    "constant arguments": "the number of constant arguments, at most 4",
    "blocks": "the logarithm of the callee's number of basic blocks",
    "removed allocas": "the cost that SROA saves / 10, at most 10",
    "simplified": "the instructions that inlining simplifies / 10, at most 10",
    "always": "1",
}
"""The terms and their meanings, in the order of the weights."""

ONE_USE: Weights = np.array([20.0] + [0.0] * (len(TERMS) - 1))
"""Inlines what LLVM inlines, and every merged function with one use in one file."""

MOST_INSTRUCTIONS = 300
"""Limits the size of a callee in the terms."""
MOST_MARGIN = 100.0
"""Limits the difference of threshold and cost, in instructions."""


class InliningRule(nn.Module):
    """Maps the features of calls to decisions.

    ``names`` are the names of the features. ``weights`` is float64 [terms].
    """

    weights: Tensor

    def __init__(self, names: Sequence[str], weights: Weights = ONE_USE) -> None:
        super().__init__()
        self.places = {name: place for place, name in enumerate(names)}
        self.register_buffer("weights", torch.from_numpy(weights).float())

    def terms(self, features: Tensor) -> Tensor:
        """Maps features, float [n, d], to terms, float [n, terms].

        If the number of files is unknown (0), the rule assumes one file.
        """

        def column(name: str) -> Tensor:
            return features[:, self.places[name]]

        def if_true(condition: Tensor) -> Tensor:
            return condition.to(torch.float32)

        merged, files = column("callee_is_merged") > 0, column("callee_files")
        uses = column("callee_uses").clamp(min=1)
        size = column("callee_instructions").clamp(max=MOST_INSTRUCTIONS)
        disappears = (
            (column("callee_is_discardable") > 0)
            & (column("callee_other_uses") == 0)
            & (files <= 1)
        )
        last = if_true(disappears & merged & (uses == 1))
        in_caller = column("callee_calls_in_caller") == uses
        terms = (
            10 * last,
            last * size / 4,
            if_true(disappears & (uses == 2)) * size / 4,
            if_true(disappears & (uses > 2)) * size / uses,
            2 * if_true(disappears & in_caller & (uses > 1)),
            if_true(merged & (files > 1)),
            if_true((column("callee_is_local") > 0) & (uses > 1)),
            column("is_invoke"),
            column("callee_is_nounwind"),
            column("argument_count").clamp(max=8) / 2,
            column("constant_args").clamp(max=4),
            column("callee_basic_block_count").clamp(min=1).log(),
            column("sroa_savings").clamp(max=100) / 10,
            column("simplified_instructions").clamp(max=100) / 10,
            torch.ones_like(uses),
        )
        return torch.stack(terms, dim=1)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Maps float [n, d] to int64 [n], where 1 means inline."""
        threshold = features[:, self.places["threshold"]].clamp(min=1)
        cost = features[:, self.places["cost_estimate"]]
        margin = (threshold - cost) / INSTRUCTION_COST
        # Without the terms, the decision is exactly LLVM's.
        margin = torch.where(
            features[:, self.places[LLVM_DECISION]] > 0,
            margin.clamp(min=0.5, max=MOST_MARGIN),
            margin.clamp(min=-MOST_MARGIN, max=-0.5),
        )
        inline = margin + self.terms(features) @ self.weights > 0
        return {"inlining_decision": inline.to(torch.int64)}


def write_rule(weights: Weights, path: Path, calls: Calls, seed: int = 0) -> Exported:
    """Writes a rule to an .onnx file, and checks its decisions on calls."""
    return write_model(InliningRule(calls.names, weights), path, calls, seed)


class RuleTemplate:
    """Writes rules in milliseconds. An export of each rule would take seconds."""

    def __init__(self, folder: Path, calls: Calls) -> None:
        path = folder / "template.onnx"
        # These weights mark the tensor in the file.
        marks = np.arange(1.0, len(TERMS) + 1) / 8
        write_rule(marks, path, calls)
        self._model = onnx.load(path)
        (self._weights,) = (
            tensor
            for tensor in self._model.graph.initializer
            if np.array_equal(numpy_helper.to_array(tensor).reshape(-1), marks)
        )

    def write(self, weights: Weights, path: Path) -> None:
        """Writes a rule to an .onnx file."""
        shape = numpy_helper.to_array(self._weights).shape
        tensor = numpy_helper.from_array(
            weights.astype(np.float32).reshape(shape), self._weights.name
        )
        self._weights.CopyFrom(tensor)
        with replacing(path) as made:
            onnx.save(self._model, made)
