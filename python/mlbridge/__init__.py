# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ML-Compiler-Bridge, the model's side: answer what any compiler asks.

Such as::

    from mlbridge import serve

    serve(lambda features: features["callee_size"] < 30, "pipe:/tmp/advisor")

`serve` and `serving` run a function; `PipeCompilerInterface` is the paper's loop;
`create_model_runner` asks, as a compiler does; `mlbridge.log` reads what compilers
recorded, and `mlbridge.codec` reads and writes single messages. On the command line:
``mlbridge --help``.
"""

from mlbridge import _core
from mlbridge.errors import (
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
    PipeCompilerInterface,
    SharedMemoryCompilerInterface,
)
from mlbridge.log import TrainingLog, read_log
from mlbridge.runner import ModelRunner, create_model_runner
from mlbridge.server import Serving, Statistics, serve, serving
from mlbridge.types import Feature, Features, Policy

__version__ = _core.VERSION

__all__ = [
    "BaseCompilerInterface",
    "Deferred",
    "Error",
    "Feature",
    "Features",
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
    "create_model_runner",
    "read_log",
    "serve",
    "serving",
]
