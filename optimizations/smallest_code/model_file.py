# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes models of inlining to .onnx files."""

from pathlib import Path

from torch import nn

from mlbridge.export import Exported, FeatureSpec, Metadata, Training, export

from .calls import Calls


def write_model(policy: nn.Module, path: Path, calls: Calls, seed: int) -> Exported:
    """Writes a model of decisions to an .onnx file, and checks it on calls."""
    return export(
        policy,
        path,
        features=[FeatureSpec(name, "int64_t", (1,)) for name in calls.names],
        samples={name: calls.column(name)[:512, None] for name in calls.names},
        metadata=Metadata(
            reward="bytes off the linked program, against clang -Oz",
            training=Training(seed=seed),
        ),
    )
