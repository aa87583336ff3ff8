# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a file with one loop through a Python script, without the bridge.

    python -m mlbridge_benchmarks.loop_distribution.wrapper WEIGHTS PLUGIN CLANG...

clang prints the features of the loop, a model in this process decides, and another
clang gets the decision as an option. The times of these stages are printed to stderr.
"""

import json
import os
import sys
import time
from pathlib import Path


def main(weights: str, plugin: str, *clang: str) -> None:
    """Runs clang twice, with the model in between."""
    times = {"interpreter": time.monotonic()}
    # Import here, to measure the time of the imports.
    from mlbridge_benchmarks.loop_distribution.model import TorchPolicy
    from mlbridge_optimizations.corpus.toolchain import plugin_flags, run
    from mlbridge_optimizations.loop_distribution.table import flags_of

    times["imports"] = time.monotonic()
    policy = TorchPolicy(Path(weights))
    times["weights"] = time.monotonic()
    ask = [*clang, *plugin_flags(Path(plugin), "print-loops")]
    lines = run([*ask, "-emit-llvm", "-o", os.devnull])[1].splitlines()
    found = [json.loads(line) for line in lines if line.startswith(b"{")]
    (loop,) = (loop for loop in found if len(loop.get("seeds", ())) > 1)
    times["features"] = time.monotonic()
    choice = policy(loop)
    times["decision"] = time.monotonic()
    run([*clang, *flags_of(Path(plugin), "distribution", 0, loop, choice)])
    times["compile"] = time.monotonic()
    print(json.dumps(times), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
