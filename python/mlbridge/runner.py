# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's side in Python: for tests, benchmarks and compilers in Python."""

import functools
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from mlbridge import _core, grpc, inprocess
from mlbridge.errors import Error
from mlbridge.types import element_type_name


@functools.cache
def _factory(
    onnxruntime: str, modules: str | None, with_grpc: bool, process: int
) -> _core.Factory:
    """One for all runners, so that they share the models that they load.

    What is looked up in the environment is that at the time of the first runner:
    where it has changed, there is another factory. So there is in a forked child,
    which has not the threads of its parent's models.
    """
    schemes = inprocess.schemes()
    return _core.Factory(schemes + grpc.schemes() if with_grpc else schemes)


class ModelRunner:
    """Asks the model that a spec names; the C++ ``MLModelRunner`` in Python.

    Used by one thread at a time. Each runner has a session of its own, which begins
    with its first request::

        with create_model_runner("pipe:/tmp/advisor") as runner:
            inline = runner.evaluate({"callee_size": 12}, bool)
    """

    def __init__(self, spec: str, *, formats: Sequence[_core.Format] = ()) -> None:
        factory = _factory(
            str(inprocess.onnxruntime() or ""),
            os.environ.get("MLBRIDGE_MODULES"),
            grpc.is_named_in(spec),
            os.getpid(),
        )
        self._runner = _core.Runner(spec, formats, factory)

    def evaluate(
        self, features: Mapping[str, Any], dtype: Any = None, *, many: bool = False
    ) -> Any:
        """Asks about the features, and returns the answer.

        Other Python threads run meanwhile. Signal handlers run too, within 0.1 s, if
        this is the main thread: what they raise, such as KeyboardInterrupt, gives the
        request up. The model's answer to it is dropped, and the next request meets
        the model in a new session. A model in this process (``onnx:``) computes to
        its end first.

        Args:
            features: values by name: numbers, bools, strings, lists of those, or
                arrays of any rank up to 8. Python's own int and float are int64 and
                float64; an array or a NumPy scalar keeps its dtype.
            dtype: the element type to convert the answer to; see
                `element_type_name`.
            many: with ``dtype``, whether any number of elements is expected.

        Returns:
            With a dtype, the model's only output, or the one called ``"out"``: a
            Python scalar or, with ``many``, a 1-d array or a list of str. Without,
            the output as it came: an array (0-d for a scalar), a str, a list of str,
            or a dict of those when it is not the only one or has another name than
            ``"out"``. Nothing in it changes afterwards.

        Raises:
            Deferred: the model leaves the decision to the compiler.
            ModelError: the model failed.
            SchemaMismatch: a feature is no tensor, or the answer cannot be converted
                without changing its value.
            Timeout: there was no answer in time, or nobody to ask.
            PeerClosed: the model went away.
        """
        if dtype is not None:
            return self._runner.evaluate(dict(features), element_type_name(dtype), many)
        outputs = self._runner.evaluate(dict(features))
        return outputs["out"] if outputs.keys() == {"out"} else outputs

    def log_outcome(self, name: str, value: Any, reward: float | None = None) -> None:
        """Says what was done in the end, for runners that record or learn."""
        self._runner.log_outcome(name, value, reward)

    def log_reward(self, reward: float) -> None:
        """Says how good the model's own answer was."""
        self._runner.log_outcome(None, None, reward)

    def switch_context(self, name: str) -> None:
        """Names what the next requests are about (a module, a function)."""
        self._runner.switch_context(name)

    @property
    def timeout(self) -> float:
        """Seconds that one evaluate may take in all."""
        return self._runner.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._runner.timeout = seconds

    def flush(self) -> None:
        """Writes what a recording runner still holds.

        Raises:
            OSFailure: the log cannot be written, such as on a full disk.
        """
        self._runner.flush()

    def close(self) -> None:
        """Flushes, and ends the session, also where flushing raises.

        A runner that is not closed writes its log when it is collected, where a
        failure can only be printed.
        """
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Error as failure:
            if error is None:
                raise
            # What went wrong first matters more.
            error.add_note(f"closing {self!r}: {failure}")

    def __repr__(self) -> str:
        return f"<ModelRunner {self._runner.describe()}>"


def create_model_runner(
    spec: str, *, formats: Sequence[_core.Format] = ()
) -> ModelRunner:
    """The runner that a spec names, such as ``pipe:/tmp/advisor?serdes=json``.

    Args:
        spec: see docs/model-specs.md.
        formats: what its option ``serdes`` may name beside the formats of this build:
            messages of your own, by `mlbridge.protobuf.messages`.

    Raises:
        InvalidArgument: the spec has a mistake.
        Unsupported: this build has no such runner.
    """
    return ModelRunner(spec, formats=formats)
