# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model's side of a raw floor, as a process.

    python -m mlbridge_benchmarks.rtt.floor CORE MODULES pipe READ_FD WRITE_FD
    python -m mlbridge_benchmarks.rtt.floor CORE MODULES futex MEMORY_FD

MODULES is the folder of the module rtt_floor, in which the floor's loop runs.
"""

import importlib
import os
import sys


def main(core: str, modules: str, kind: str, *descriptors: str) -> None:
    """Answers until the client is gone."""
    os.sched_setaffinity(0, {int(core)})
    sys.path.insert(0, modules)
    serve = getattr(importlib.import_module("rtt_floor"), f"serve_{kind}")
    serve(*map(int, descriptors))


if __name__ == "__main__":
    main(*sys.argv[1:])
