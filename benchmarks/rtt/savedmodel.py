# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the models of ``mlbridge bench rtt`` as SavedModels.

TensorFlow has its own virtual environment, which scripts/test-tensorflow creates. The
Python of that environment runs this file as a program, without mlbridge. The program
writes a SavedModel beside each given .npz file.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlbridge_benchmarks.rtt.models import InProcessModel, ModelCache

SECONDS = 600.0  # The time limit for all models.


def _environment(build: Path) -> Path:
    """Returns the virtual environment, where `build` is build/PRESET/benchmarks."""
    return build.parents[1] / "venvs" / "keras"


def _library(build: Path) -> Path | None:
    pattern = "lib/python3*/site-packages/tensorflow/libtensorflow_cc.so.2"
    return next(_environment(build).glob(pattern), None)


def missing(build: Path) -> str:
    """Returns the command that installs TensorFlow, or "" if it is installed."""
    return "" if _library(build) else "`VENV=build/venvs/keras scripts/make-venv keras`"


def environment(build: Path) -> dict[str, str]:
    """Returns the environment variables with which a client finds TensorFlow."""
    if os.environ.get("MLBRIDGE_TENSORFLOW"):
        return {}
    library = _library(build)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    return quiet | ({"MLBRIDGE_TENSORFLOW": str(library)} if library else {})


def make(build: Path, cache: "ModelCache", models: Sequence["InProcessModel"]) -> None:
    """Saves the models that are not cached."""
    # Import this here, because TensorFlow's Python has no mlbridge.
    from mlbridge.errors import ModelError

    files = [
        path.with_suffix(".npz")
        for model in models
        if not (path := cache.saved_model(model)).exists()
        and cache.write_weights(model, path.with_suffix(".npz"))
    ]
    if files:
        python = _environment(build) / "bin" / "python"
        # Capture stderr, because TensorFlow writes to it even if it succeeds.
        done = subprocess.run(
            [python, __file__, *files],
            timeout=SECONDS,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""},
        )
        if done.returncode:
            raise ModelError(f"TensorFlow cannot save a model: {done.stderr.strip()}")


def main(files: Sequence[str]) -> None:
    """Saves a model for each file. TensorFlow's Python runs this function."""
    import numpy as np
    import tensorflow as tf

    for name in files:
        path = Path(name)
        arrays = np.load(path)
        layers = [tf.constant(arrays[f"arr_{i}"]) for i in range(len(arrays.files))]

        class Network(tf.Module):  # type: ignore[misc]
            """Layers of a matrix and a bias. Without layers, returns the last of x."""

            def __init__(self, layers: Sequence[tf.Tensor]) -> None:
                super().__init__()
                self.layers = layers

            @tf.function  # type: ignore[untyped-decorator]
            def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
                if not self.layers:
                    return {"y": x[-1:]}
                for i in range(0, len(self.layers), 2):
                    x = tf.matmul(x, self.layers[i])
                    if i + 1 < len(self.layers):
                        x = x + self.layers[i + 1]
                    if i + 2 < len(self.layers):
                        x = tf.nn.relu(x)
                return {"y": x}

        network = Network(layers)
        length = int(path.stem.split("-")[1])
        shape = [1, length] if layers else [length]
        spec = tf.TensorSpec(shape, tf.float32, name="x")
        partial = path.with_suffix(".partial")
        signature = network.__call__.get_concrete_function(x=spec)
        tf.saved_model.save(network, str(partial), signatures=signature)
        partial.rename(path.with_suffix(".tf"))


if __name__ == "__main__":
    main(sys.argv[1:])
