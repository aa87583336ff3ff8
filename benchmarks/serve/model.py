# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model process of ``mlbridge bench serve``.

    python -m mlbridge_benchmarks.serve.model SPEC MILLISECONDS MAX_BATCH MAX_DELAY

As with a network on an accelerator, a call takes MILLISECONDS for any batch size. The
reply to a request is the request's first feature. On SIGTERM, the process prints its
statistics as a line of JSON and exits.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from mlbridge.batching import batched
from mlbridge.server import Statistics, serve
from mlbridge.types import Features


def main(spec: str, milliseconds: str, max_batch: str, max_delay: str) -> None:
    """Serves the model until SIGTERM."""
    seconds = float(milliseconds) / 1000

    @batched
    def policy(requests: Sequence[Features]) -> list[Any]:
        until = time.perf_counter() + seconds
        replies = [features["x"][0] for features in requests]
        if (left := until - time.perf_counter()) > 0:
            time.sleep(left)
        return replies

    statistics = Statistics()
    try:
        serve(
            policy,
            spec,
            max_batch=int(max_batch),
            max_delay=float(max_delay) / 1000,
            measure_latency=True,
            statistics=statistics,
        )
    except SystemExit:
        p50, p90, p99 = (1e3 * seconds for seconds in statistics.latencies)
        latency = {"p50": p50, "p90": p90, "p99": p99}
        found = {"batch_size": statistics.batch_size, "latency_ms": latency}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
