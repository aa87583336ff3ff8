# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model's side of a runner, as a process: the paper's loop and a policy.

    python -m mlbridge_benchmarks.rtt.model CORE RUNNER PATH POLICY FOLDER

FOLDER has the workload. Ends when nobody has asked for a minute, or when it is ended.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from mlbridge.errors import Timeout
from mlbridge_benchmarks.rtt.runners import RUNNERS, echo, fully_connected
from mlbridge_benchmarks.rtt.workload import Workload


def main(core: str, runner: str, path: str, policy: str, folder: str) -> None:
    """Answers until nobody asks any more."""
    os.sched_setaffinity(0, {int(core)})
    weights = Workload.load(Path(folder)).weights
    decide = echo if policy == "echo" else fully_connected(weights)
    with RUNNERS[runner].interface(path) as interface, suppress(Timeout):
        for features in interface:
            interface.populate_buffer(decide(features))


if __name__ == "__main__":
    main(*sys.argv[1:])
