"""Answer the compiler of examples/hello.cpp; Ctrl-C ends it.

Run `.venv/bin/python examples/hello.py [SPEC]`; SPEC is pipe:/tmp/hello by default.
"""

import sys

import mlbridge


def should_inline(features: mlbridge.Features) -> bool:
    """Small callees, or those whose embedding is heavy."""
    return bool(features["callee_size"] < 10 or features["embedding"].sum() > 20)


mlbridge.serve(should_inline, sys.argv[1] if len(sys.argv) > 1 else "pipe:/tmp/hello")
