# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes model files for the runtimes that are extensions: `aotinductor` and `tvm`.

Each file contains the signature that the compiler's runner needs.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from mlbridge.types import element_type_name

NamedTensor = tuple[str, np.dtype[np.generic], Sequence[int | str]]
"""A name, an element type and the extents; a free extent is a str, its name."""


def signature_json(
    inputs: Sequence[NamedTensor],
    outputs: Sequence[NamedTensor],
    metadata: Mapping[str, str],
) -> str:
    """Returns the signature of a file whose inputs have no names.

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
