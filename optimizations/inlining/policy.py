# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The network in NumPy, which is faster than PyTorch for one decision at a time."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import INSTRUCTION_COST, InliningNetwork


class Policy:
    """Decides with a trained network. Requests may have more features than it needs."""

    def __init__(self, network: InliningNetwork):
        names = network.features
        self._gather = itemgetter(*names)
        self._derived = network.derived
        self._cost = names.index("cost_estimate")
        self._threshold = names.index("threshold")
        kept, layers = network.folded()
        self._kept = kept.numpy()
        self._layers = [(np.copy(w.numpy()), np.copy(b.numpy())) for w, b in layers]

    def __call__(self, features: Mapping[str, Any]) -> int:
        """Returns 1 to inline, and otherwise 0. Each feature is an int64[1]."""
        return int(self.logit(np.concatenate(self._gather(features))) > 0)

    def logit(self, values: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the output for int64[..., d] in the network's feature order."""
        inputs = values.astype(np.float32)
        scaled = np.copysign(np.log1p(np.abs(inputs)), inputs)
        if self._derived:
            threshold = np.maximum(1, inputs[..., self._threshold, None])
            margin = threshold - inputs[..., self._cost, None]
            derived = np.tanh(margin / INSTRUCTION_COST)
            scaled = np.concatenate((scaled, derived), axis=-1)
        hidden = scaled[..., self._kept]
        *hiddens, (last_weight, last_bias) = self._layers
        for weight, bias in hiddens:
            hidden = np.maximum(hidden @ weight + bias, 0)
        output: NDArray[np.float32] = hidden @ last_weight + last_bias
        return output[..., 0]
