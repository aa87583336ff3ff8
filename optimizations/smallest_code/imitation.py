# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a network to make the inlining decisions that searches have found.

A call's label is the decision with which the search has ended. The call's weight is the
number of bytes that this decision saves. Calls that the search has not tried have a
small weight. Each call is there twice, with and without the number of files that emit
the callee, because users may not have this number.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from mlbridge.errors import InvalidArgument
from mlbridge.export import Exported
from mlbridge_optimizations.inlining.export import Decision
from mlbridge_optimizations.inlining.network import InliningNetwork

from .calls import Calls
from .model_file import write_model
from .settings import ImitationOptions

OF_MODULE = ("node_count", "edge_count", "callsite_height")
"""Features that describe a whole module. They are dropped, because they would identify
the program if there are few programs."""


def weights_of(calls: Calls, options: ImitationOptions) -> NDArray[np.float64]:
    """Returns the weight of each decision in bytes, float64 [n]."""
    gains = np.minimum(np.abs(np.nan_to_num(calls.gains)), options.max_weight)
    # If the gain's sign contradicts the decision, the decision alone does not help.
    is_better = (calls.gains > 0) == calls.decisions
    gains = np.where(is_better, gains, 0)
    return np.maximum(gains, options.min_weight) * calls.weights


def without_files(calls: Calls) -> Calls:
    """Returns the calls as a compiler sees them that has no numbers of files."""
    features = calls.features.copy()
    merged = calls.column("callee_is_merged")
    features[:, calls.names.index("callee_files")] = np.where(merged, 0, 1)
    return replace(calls, features=features)


def train(programs: Sequence[Calls], options: ImitationOptions) -> InliningNetwork:
    """Trains a network on the calls of programs. All programs have the same weight.

    The same calls and options give the same network on the same kind of machine.
    """
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # More threads are slower at this size.
    torch.manual_seed(options.seed)
    programs = [Calls.join([one, without_files(one)]) for one in programs]
    calls = Calls.join(programs)
    labels = torch.from_numpy(calls.decisions).float()
    found = [weights_of(program, options) for program in programs]
    shares = np.concatenate([weights / weights.sum() for weights in found])
    weights = torch.from_numpy(shares * len(labels) / len(programs)).float()
    features = torch.from_numpy(calls.features).float()
    width = (options.hidden, options.hidden)
    network = InliningNetwork(calls.names, width, dropout=options.dropout)
    network.fit_scaling(features)
    for name in OF_MODULE:
        network.scale[calls.names.index(name)] = 0
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.decay
    )
    loss_of = nn.BCEWithLogitsLoss(reduction="none")
    network.train()
    for _ in range(options.epochs):
        for rows in torch.split(torch.randperm(len(labels)), 256):
            optimizer.zero_grad()
            losses = loss_of(network(features[rows]), labels[rows])
            (losses * weights[rows]).mean().backward()
            optimizer.step()
    if not all(one.isfinite().all() for one in network.parameters()):
        raise InvalidArgument("the training diverged; use a smaller --rate")
    return network.eval()


def write(network: InliningNetwork, path: Path, calls: Calls, seed: int) -> Exported:
    """Writes a network to an .onnx file, and checks its decisions on calls."""
    return write_model(Decision(network), path, calls, seed)
