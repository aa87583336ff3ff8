# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The committed stubs say what the module has."""

from pathlib import Path

import pytest

from mlbridge import _core

STUB = Path(__file__).parents[2] / "python" / "mlbridge" / "_core.pyi"


def test_stubs_are_up_to_date() -> None:
    """Else: ``python -m nanobind.stubgen -m mlbridge._core -o <the file>``."""
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(_core, quiet=True)
    generator.put(_core)
    assert STUB.read_text() == generator.get()
