# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what a command line names to a policy: files, checkpoints, Python objects."""

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument
from mlbridge.export.reading import reading


@dataclass(frozen=True)
class Source:
    """A policy, and what there is to say of it.

    Attributes:
        policy: for `mlbridge.export.export`.
        framework: its own, where that is known from the file.
        options: of that framework.
    """

    policy: Any
    framework: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def load_file(path: Path, module: str | None = None) -> Source:
    """A policy from a file or a folder.

    All but .keras files are unpickled, which runs what is in them: load only files that
    you trust.

    Args:
        path: a .zip of Stable-Baselines3, a .keras file, a .pkl or .joblib file of
            scikit-learn, or a folder with a checkpoint of RLlib.
        module: of a checkpoint.

    Raises:
        InvalidArgument: it is none of these.
        Malformed: it cannot be loaded.
    """
    if path.is_dir():
        from mlbridge.export import rllib

        with reading(path, "a checkpoint of RLlib"):
            return Source(rllib.load(path, module), "rllib")
    match path.suffix:
        case ".zip":
            from mlbridge.export import sb3

            return Source(sb3.load(path), "sb3")
        case ".keras":
            import keras

            with reading(path, "a model of Keras"):
                return Source(keras.saving.load_model(path, compile=False), "keras")
        case ".pkl":
            with path.open("rb") as file, reading(path, "a pickled policy"):
                return Source(pickle.load(file))
        case ".joblib":
            import joblib

            with reading(path, "a policy that joblib wrote"):
                return Source(joblib.load(path))
    raise InvalidArgument(
        f"{path}: expected a .zip of Stable-Baselines3, a .keras, .pkl or .joblib file "
        "or a checkpoint folder of RLlib; a network of PyTorch or JAX is named as "
        "MODULE:OBJECT"
    )
