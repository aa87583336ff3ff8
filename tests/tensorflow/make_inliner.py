# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the demo's inliner, models/inlining-imitation, as a SavedModel.

make_inliner.py weights FILE.npz          in this project's .venv, which has PyTorch
make_inliner.py model FILE.npz FOLDER     in a Python that has TensorFlow
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTION_COST = 5


def write_weights(path: Path) -> None:
    """Writes the arrays of `mlbridge_optimizations.inlining.policy.Policy`."""
    sys.path.insert(0, str(ROOT))
    from mlbridge_optimizations.inlining.network import InliningNetwork

    network = InliningNetwork.load(ROOT / "models/inlining-imitation/inliner.pt")
    kept, layers = network.folded()
    arrays = {"names": np.array(network.features), "kept": kept.numpy()}
    for i, (weight, bias) in enumerate(layers):
        arrays |= {f"weight{i}": weight.numpy(), f"bias{i}": bias.numpy()}
    np.savez(path, **arrays)


def write_model(path: Path, folder: Path) -> None:
    """Writes a SavedModel that makes the same decisions as the inlining network.

    Each feature is an input with the feature's name and the type int64[1,1].
    """
    import tensorflow as tf

    with np.load(path) as arrays:
        weights = dict(arrays)
    names = [str(name) for name in weights["names"]]
    last = sum(key.startswith("bias") for key in weights) - 1
    cost, threshold = names.index("cost_estimate"), names.index("threshold")

    def decide(**features: Any) -> Any:
        row = tf.cast(tf.concat([features[name] for name in names], 1), tf.float32)
        scaled = tf.sign(row) * tf.math.log1p(tf.abs(row))
        margin = tf.maximum(row[:, threshold], 1) - row[:, cost]
        derived = tf.tanh(margin / INSTRUCTION_COST)[:, None]
        hidden = tf.gather(tf.concat([scaled, derived], 1), weights["kept"], axis=1)
        for i in range(last):
            layer = hidden @ weights[f"weight{i}"] + weights[f"bias{i}"]
            hidden = tf.nn.relu(layer)
        logits = hidden @ weights[f"weight{last}"] + weights[f"bias{last}"]
        return {"inlining_decision": tf.cast(logits[:, 0] > 0, tf.int64)}

    signature = {name: tf.TensorSpec([1, 1], tf.int64, name) for name in names}
    function = tf.function(decide).get_concrete_function(**signature)
    tf.saved_model.save(tf.Module(), str(folder), {"serving_default": function})


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"weights": write_weights, "model": write_model}[command](*map(Path, paths))
