# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parses arbitrary bytes as a training log, and reads the log in two ways.

It reads one observation at a time, and arrays of all observations. Both ways must give
the same values or the same Malformed error. The observations must not be larger than
the file.
"""

import os

import numpy as np

from fuzzing import fuzz, require, require_printable
from mlbridge import log as logs
from mlbridge.errors import Malformed

# An unnamed file in memory.
_FILE = os.memfd_create("log")
_PATH = f"/proc/self/fd/{_FILE}"
_SHORTEST = len(b'{"observation":0}\n\n')


def check(data: bytes) -> None:
    """Raises if a property does not hold for these bytes."""
    os.ftruncate(_FILE, 0)
    os.pwrite(_FILE, data, 0)
    try:
        log = logs.read_log(_PATH)
    except Malformed as error:
        require_printable(error)
        return
    observed, failure = _iterate(log)
    require(len(observed) * _SHORTEST <= len(data), "observations take bytes")
    try:
        arrays = log.as_arrays()
    except Malformed as error:
        require(str(error) == failure, "both fail alike", (str(error), failure))
        return
    require(not failure, "both fail", failure)
    _compare(log, observed, arrays)


def _iterate(log: logs.TrainingLog) -> tuple[list[logs.Observation], str]:
    """Returns all observations before an error, and the error's message."""
    observed: list[logs.Observation] = []
    try:
        # list(log) would lose the observations that precede an error.
        observed.extend(log)
    except Malformed as error:
        require_printable(error)
        return observed, str(error)
    return observed, ""


def _compare(
    log: logs.TrainingLog, observed: list[logs.Observation], arrays: logs.LogArrays
) -> None:
    """Requires that the rows of the arrays equal the observations."""
    require(arrays.contexts == [o.context for o in observed], "contexts agree")
    require(
        all(type(o.context) is str and type(o.index) is int for o in observed),
        "a context is a name, an index a number",
    )
    names = [spec.name for spec in log.features]
    require(list(arrays.features) == names, "features agree")
    for spec in [*log.features, log.advice]:
        is_advice = spec is log.advice
        column = arrays.advice if is_advice else arrays.features[spec.name]
        count = len(observed)
        if spec.lengths is None:
            require(column.shape == (count, *spec.shape), "shapes agree", spec)
            require(column.dtype == spec.dtype, "types agree", spec)
        else:
            shape = (count, len(spec.lengths)) if spec.is_list else (count,)
            require(column.shape == shape, "shapes of text agree", spec)
        for row, one in zip(column, observed, strict=True):
            value = one.advice if is_advice else one.features[spec.name]
            if spec.lengths is None:
                assert isinstance(value, np.ndarray)
                same = row.tobytes() == value.tobytes()
            else:
                same = (row.tolist() if spec.is_list else row) == value
            require(same, "values agree", (row, value))
    rewards = [o.reward for o in observed]
    if log.reward is None:
        require(arrays.rewards is None and not any(rewards), "no rewards")
    else:
        assert arrays.rewards is not None
        found = np.array(rewards, float)
        require(np.array_equal(arrays.rewards, found, True), "rewards agree")


if __name__ == "__main__":
    fuzz(check, logs)
