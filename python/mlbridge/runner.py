# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's side, for tests, benchmarks and compilers written in Python."""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from mlbridge import _core, grpc, inprocess
from mlbridge.errors import Error
from mlbridge.types import element_type_name


@functools.cache
def _factory(
    onnxruntime: str, modules: str | None, with_grpc: bool, process: int
) -> _core.Factory:
    """One factory for all runners, so that they share the models that they load.

    Another one after a change of the environment variables it reads, and in a forked
    child, which does not have the threads of its parent's models.
    """
    schemes = inprocess.schemes()
    return _core.Factory(schemes + grpc.schemes() if with_grpc else schemes)


class ModelRunner:
    """Asks the model that a spec names; wraps the C++ class ``MLModelRunner``.

    Used by one thread at a time. Each runner has its own session, which begins with the
    first request::

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
        """Returns the model's advice for these features.

        Other Python threads run during the wait. In the main thread signal handlers run
        too, within 0.1 s; an exception of theirs, such as KeyboardInterrupt, abandons
        the request: the reply is dropped, and the next request begins a new session. A
        model in this process (``onnx:``) finishes its evaluation first.

        Args:
            features: values by name: numbers, bools, strings, lists of these, or
                arrays of rank up to 8. Python's int and float become int64 and float64;
                an array or a NumPy scalar keeps its dtype.
            dtype: the element type to convert the advice to; see `element_type_name`.
            many: with ``dtype``, accept any number of elements.

        Returns:
            With a dtype, the model's only output or the one called ``"out"``: a Python
            scalar or, with ``many``, a 1-d array or a list of str. Without a dtype, the
            unconverted output: an array (0-d for a scalar), a str, a list of str, or a
            dict of these unless ``"out"`` is the only output. Later requests do not
            change it.

        Raises:
            Deferred: the model leaves the decision to the compiler.
            ModelError: the model failed.
            SchemaMismatch: a feature is no tensor, or converting changes the advice.
            Timeout: no reply, or no model, before the deadline.
            PeerClosed: the model disconnected.
        """
        if dtype is not None:
            return self._runner.evaluate(dict(features), element_type_name(dtype), many)
        outputs = self._runner.evaluate(dict(features))
        return outputs["out"] if outputs.keys() == {"out"} else outputs

    def log_outcome(self, name: str, value: Any, reward: float | None = None) -> None:
        """Logs the decision that was finally made, for runners that record or learn."""
        self._runner.log_outcome(name, value, reward)

    def log_reward(self, reward: float) -> None:
        """Logs the reward of the model's advice."""
        self._runner.log_outcome(None, None, reward)

    def switch_context(self, name: str) -> None:
        """Names the context of the next requests (a module, a function)."""
        self._runner.switch_context(name)

    @property
    def timeout(self) -> float:
        """The time limit of one `evaluate` in seconds."""
        return self._runner.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._runner.timeout = seconds

    def flush(self) -> None:
        """Writes a recording runner's buffer; raises OSFailure if it cannot."""
        self._runner.flush()

    def close(self) -> None:
        """Flushes and ends the session, even if flushing raises.

        Garbage collection also flushes, but can only print a failure.
        """
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        try:
            self.close()
        except Error as failure:
            if error is None:
                raise
            # The first error matters more.
            error.add_note(f"closing {self!r}: {failure}")

    def __repr__(self) -> str:
        return f"<ModelRunner {self._runner.describe()}>"


def create_model_runner(
    spec: str, *, formats: Sequence[_core.Format] = ()
) -> ModelRunner:
    """Makes the runner of a spec, such as ``pipe:/tmp/advisor?serdes=json``.

    docs/reference/model-specs.md defines specs. ``formats`` are more formats for the
    option ``serdes``, such as those of `mlbridge.protobuf.messages`. Raises
    InvalidArgument for an invalid spec, Unsupported if this build has no such runner.
    """
    return ModelRunner(spec, formats=formats)
