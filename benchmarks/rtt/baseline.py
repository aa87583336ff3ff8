# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one Python process does alone, timed like a round trip.

    python -m mlbridge_benchmarks.rtt.baseline CORE WHAT FOLDER

WHAT is ``dot``, the policy `fc` without a bridge, or ``stdlib``, the pair that a JSON
bridge would be made of: json.dumps of a list, and an array of json.loads. Speaks
rtt-client's protocol: a line on stdin asks for a sweep, a line on stdout is its result.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge_benchmarks.rtt.runners import fully_connected
from mlbridge_benchmarks.rtt.workload import Workload


def _stdlib(x: NDArray[np.float32]) -> Any:
    return np.array(json.loads(json.dumps(x.tolist())), dtype=np.float32)[-1]


def _dot(weights: NDArray[np.float32]) -> Callable[[NDArray[np.float32]], Any]:
    fc = fully_connected(weights)
    return lambda x: fc({"x": x})


def main(core: str, what: str, folder: str) -> None:
    """One sweep for each line."""
    os.sched_setaffinity(0, {int(core)})
    work = Workload.load(Path(folder))
    do = _stdlib if what == "stdlib" else _dot(work.weights)
    vectors = [work.features[:length] for length in work.lengths]
    for _ in sys.stdin:
        for _ in range(50):
            do(vectors[0])
        microseconds = []
        answers = []
        for x in vectors:
            started = perf_counter_ns()
            answer = do(x)
            microseconds.append((perf_counter_ns() - started) / 1e3)
            answers.append(float(answer))
        print(json.dumps({"us": microseconds, "answers": answers}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
