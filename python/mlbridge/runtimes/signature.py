# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The signature that goes with a file which does not name its inputs."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from mlbridge.types import element_type_name

Tensor = tuple[str, np.dtype[np.generic], Sequence[int | str]]
"""A name, an element type, and extents: a free one is a str, its name."""


def to_json(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], metadata: Mapping[str, str]
) -> str:
    """As C++'s ``ModelSignature::parse`` takes it; see docs/model-metadata.md."""

    def listed(tensors: Sequence[Tensor]) -> list[dict[str, object]]:
        return [
            {"name": name, "type": element_type_name(dtype), "shape": list(extents)}
            for name, dtype, extents in tensors
        ]

    return json.dumps(
        {
            "inputs": listed(inputs),
            "outputs": listed(outputs),
            "metadata": dict(metadata),
        }
    )
