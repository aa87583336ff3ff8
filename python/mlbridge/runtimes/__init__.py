# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes model files for the extensions `aotinductor` and `tvm`.

Each file contains a signature: the names, types and shapes of inputs and outputs.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from mlbridge.types import element_type_name

NamedTensor = tuple[str, np.dtype[np.generic], Sequence[int | str]]
"""The name, element type and extents of a tensor. A free extent is a str."""


def signature_json(
    inputs: Sequence[NamedTensor],
    outputs: Sequence[NamedTensor],
    metadata: Mapping[str, str],
) -> str:
    """Returns the signature for a model file that does not store names itself.

    docs/reference/model-metadata.md defines the format.
    """
    listed = {
        key: [
            {"name": name, "type": element_type_name(dtype), "shape": list(extents)}
            for name, dtype, extents in tensors
        ]
        for key, tensors in (("inputs", inputs), ("outputs", outputs))
    }
    return json.dumps({**listed, "metadata": dict(metadata)})
