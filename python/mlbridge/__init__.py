# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ML-Compiler-Bridge for Python: connects ML models to compilers.

Example::

    from mlbridge import serve

    serve(lambda features: features["callee_size"] < 30, "pipe:/tmp/advisor")

`serve` and `serving` serve a Python function to compilers, and `batched` marks a
function that answers a batch of requests. `PipeCompilerInterface` is the interface of
the paper. `compile_with_policy` runs a stock LLVM compiler, and lets a Python function
make the compiler's decisions. `create_model_runner` makes a runner, which queries a
model as a compiler would. `mlbridge.log` reads training logs. ``mlbridge --help``
describes the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlbridge import _core
from mlbridge._core import Format
from mlbridge.batching import Batched, BatchPolicy, batched, stack
from mlbridge.errors import (
    CompilerFailed,
    Deferred,
    Error,
    InvalidArgument,
    Malformed,
    ModelError,
    OSFailure,
    PeerClosed,
    SchemaMismatch,
    Timeout,
    Unsupported,
)
from mlbridge.interface import (
    BaseCompilerInterface,
    GRPCCompilerInterface,
    PipeCompilerInterface,
    SharedMemoryCompilerInterface,
)
from mlbridge.log import TrainingLog, read_log
from mlbridge.runner import ModelRunner, create_model_runner
from mlbridge.server import Serving, Statistics, serve, serving
from mlbridge.types import Feature, Features, Policy

if TYPE_CHECKING:
    from mlbridge.interactive import (
        CompileResult,
        InteractiveCompilerInterface,
        compile_with_policy,
    )

__version__ = _core.VERSION

__all__ = [
    "BaseCompilerInterface",
    "BatchPolicy",
    "Batched",
    "CompileResult",
    "CompilerFailed",
    "Deferred",
    "Error",
    "Feature",
    "Features",
    "Format",
    "GRPCCompilerInterface",
    "InteractiveCompilerInterface",
    "InvalidArgument",
    "Malformed",
    "ModelError",
    "ModelRunner",
    "OSFailure",
    "PeerClosed",
    "PipeCompilerInterface",
    "Policy",
    "SchemaMismatch",
    "Serving",
    "SharedMemoryCompilerInterface",
    "Statistics",
    "Timeout",
    "TrainingLog",
    "Unsupported",
    "__version__",
    "batched",
    "compile_with_policy",
    "create_model_runner",
    "read_log",
    "serve",
    "serving",
    "stack",
]


def __getattr__(name: str) -> Any:
    """Imports `mlbridge.interactive` on first use, because few programs need it."""
    if name == "interactive":
        return import_module("mlbridge.interactive")
    if name in ("CompileResult", "InteractiveCompilerInterface", "compile_with_policy"):
        return getattr(import_module("mlbridge.interactive"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
