# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the network to an .onnx file, for use inside the compiler.

The inputs are LLVM's raw features, int64_t[1] each. The output is the decision.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from mlbridge.export import Exported, FeatureSpec, Metadata, Training, export

from .network import INSTRUCTION_COST, InliningNetwork
from .record import Table


class Decision(nn.Module):
    """A network with the decisions of `Policy` but fewer operators.

    ONNX Runtime needs about 0.3 us for each operator, so the scaling would take most of
    a request's time. One matrix product computes all terms of the scaling, and then
    each column is clamped to at least 1:

        sign(x) * log1p(|x|)           = log(max(1, 1 + x)) - log(max(1, 1 - x))
        max(1, threshold) - cost       = max(1, threshold) - max(1, 1 + cost)
                                                           + max(1, 1 - cost)

    In the first line, one of the two logarithms is 0. The second line is exact for
    whole numbers below 2^24. Inputs that were constant in training have no column.
    """

    def __init__(self, network: InliningNetwork):
        super().__init__()
        names = network.features
        kept, ((weight, bias), *hiddens, (last_weight, last_bias)) = network.folded()
        columns = torch.eye(len(names))
        cost, threshold = (
            columns[:, [names.index(name)]] for name in ("cost_estimate", "threshold")
        )
        derived = bool((kept == len(names)).any())
        chosen = columns[:, kept[kept < len(names)]]
        lift = [chosen, -chosen]
        count = chosen.shape[1]
        first = [weight[:count], -weight[:count]]
        self.margin: Tensor | None = None
        if derived:
            lift += [threshold, cost, -cost]
            # Logarithms of these columns get weight 0. The last row is for the margin.
            first += [torch.zeros(3, weight.shape[1]), weight[count:]]
            self.margin = torch.zeros(2 * count + 3, 1)
            self.margin[-3:, 0] = torch.tensor([1.0, -1.0, 1.0])
        self.lift = torch.cat(lift, dim=1)
        self.margin_offset = torch.zeros(1)
        self.offset = torch.ones(self.lift.shape[1])
        if derived:
            self.offset[-3] = 0
        self.hiddens = [(torch.cat(first), bias), *hiddens]
        self.last_weight, self.last_bias = last_weight.squeeze(1), last_bias.squeeze(0)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Maps float[n, d] to int64[n], where 1 means inline."""
        lifted = torch.addmm(self.offset, features, self.lift).clamp(min=1)
        hidden = torch.log(lifted)
        if self.margin is not None:
            margin = torch.addmm(
                self.margin_offset, lifted, self.margin, alpha=1 / INSTRUCTION_COST
            )
            hidden = torch.cat([hidden, torch.tanh(margin)], dim=1)
        for weight, bias in self.hiddens:
            hidden = torch.relu(torch.addmm(bias, hidden, weight))
        inline = hidden @ self.last_weight > -self.last_bias
        return {"inlining_decision": inline.to(torch.int64)}


def write_onnx(
    network: InliningNetwork, path: Path, table: Table, seed: int
) -> Exported:
    """Writes the network to an .onnx file, and checks its decisions on a table."""
    reward = "agreement with LLVM's own inliner at -Oz"
    return export(
        Decision(network),
        path,
        features=[FeatureSpec(name, "int64_t", (1,)) for name in network.features],
        samples={name: table.column(name)[:, None] for name in network.features},
        metadata=Metadata(reward=reward, training=Training(seed=seed)),
    )
