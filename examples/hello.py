"""The model for examples/hello.cpp. Press Ctrl-C to stop it.

Run `.venv/bin/python examples/hello.py [SPEC]`. By default, SPEC is pipe:/tmp/hello.
"""

import sys

import mlbridge


def should_inline(features: mlbridge.Features) -> bool:
    """Inlines callees that are small or whose embedding has a large sum."""
    return bool(features["callee_size"] < 10 or features["embedding"].sum() > 20)


mlbridge.serve(should_inline, sys.argv[1] if len(sys.argv) > 1 else "pipe:/tmp/hello")
