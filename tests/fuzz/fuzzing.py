# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the fuzzers of decoders in Python share.

Atheris runs them, which is libFuzzer for Python and takes its options. Without it,
tests/python/test_fuzz_seeds.py still checks their seeds.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType


def fuzz(check: Callable[[bytes], None], *decoders: ModuleType) -> None:
    """Calls a check with any bytes until it raises, as the command line says.

    Where there is no Atheris, says "not run: ..." and returns.

    Args:
        check: raises if a property does not hold for its bytes.
        decoders: the modules whose branches the fuzzer steers by, each behind those
            that it imports.
    """
    if importlib.util.find_spec("atheris") is None:
        print(
            "not run: Atheris has no wheel for this Python or this machine"
            " (requirements/dev.txt)"
        )
        return
    import atheris

    for module in decoders:
        # Not by atheris.instrument_imports(), which does not see into a package that
        # was installed editable.
        assert module.__file__ is not None
        source = Path(module.__file__).read_bytes()
        code = compile(source, module.__file__, "exec")
        exec(atheris.patch_code(code, True), module.__dict__)
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


def require(holds: object, what: str, details: object = "") -> None:
    """Fails where a property does not hold."""
    if not holds:
        raise AssertionError(f"broken: {what}: {details!r:.500}")


def require_printable(error: BaseException) -> None:
    """Fails where an error's message does not do as a line for a person."""
    text = str(error)
    require(0 < len(text) < 1000 and text.isprintable(), "errors are words", text)
