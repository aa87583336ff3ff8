# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The network as an .onnx file: the same decisions without Python.

Its inputs are LLVM's features as they are, int64_t[1] each, and its output is what
LLVM's inliner wants to know. The plug-in runs it inside the compiler.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from mlbridge.export import Exported, FeatureSpec, Metadata, Training, export

from .network import INSTRUCTION_COST, InliningNetwork
from .record import Table


class Decision(nn.Module):
    """A trained network as it is asked; `Policy` in PyTorch, step by step."""

    def __init__(self, network: InliningNetwork):
        super().__init__()
        names = network.features
        self.cost, self.threshold = (
            torch.tensor([names.index(name)]) for name in ("cost_estimate", "threshold")
        )
        kept, self.layers = network.folded()
        # Inputs that never change are not even looked at; the last is the derived one.
        self.kept = kept[kept < len(names)]
        self.keeps_derived = bool((kept == len(names)).any())

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """float[n, d] to int64[n]: 1 to inline, 0 not to."""
        chosen = features.index_select(1, self.kept)
        hidden = torch.sign(chosen) * torch.log1p(torch.abs(chosen))
        if self.keeps_derived:
            threshold = features.index_select(1, self.threshold).clamp(min=1)
            margin = threshold - features.index_select(1, self.cost)
            derived = torch.tanh(margin / INSTRUCTION_COST)
            hidden = torch.cat([hidden, derived], dim=1)
        *hiddens, (last_weight, last_bias) = self.layers
        for weight, bias in hiddens:
            hidden = torch.relu(hidden @ weight + bias)
        logit = (hidden @ last_weight + last_bias).squeeze(1)
        return {"inlining_decision": (logit > 0).to(torch.int64)}


def write_onnx(
    network: InliningNetwork, path: Path, table: Table, seed: int
) -> Exported:
    """Writes the network as an .onnx file.

    Args:
        network: trained.
        path: of the file.
        table: call sites, for which the file must decide as the network does.
        seed: of the training, to be noted in the file.

    Raises:
        mlbridge.ModelError: it decides otherwise; nothing is written.
    """
    return export(
        Decision(network),
        path,
        features=[FeatureSpec(name, "int64_t", (1,)) for name in network.features],
        samples={name: table.column(name)[:, None] for name in network.features},
        metadata=Metadata(
            reward="agreement with LLVM's own inliner at -Oz",
            training=Training(seed=seed),
        ),
    )
