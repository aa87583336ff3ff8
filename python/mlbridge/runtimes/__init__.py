# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files for the runtimes that are extensions: `aotinductor` and `tvm`.

Each writes its kind of file with the signature that the runner in the compiler needs.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from mlbridge.types import element_type_name

NamedTensor = tuple[str, np.dtype[np.generic], Sequence[int | str]]
"""A name, an element type, and extents: a free one is a str, its name."""


def signature_json(
    inputs: Sequence[NamedTensor],
    outputs: Sequence[NamedTensor],
    metadata: Mapping[str, str],
) -> str:
    """The signature of a file whose inputs have no names; docs/model-metadata.md."""

    def listed(tensors: Sequence[NamedTensor]) -> list[dict[str, object]]:
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
