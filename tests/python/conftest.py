# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What several tests need."""

import contextlib
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import settings
from numpy.typing import NDArray

import aot_models
from mlbridge import ModelRunner
from mlbridge.aot import compile_model
from programs import IS_FULL

MODULES = Path(__file__).parents[2] / "build/release/lib"
"""Where the release build has its runner modules, MLBridge-NAME.so."""
TOLERANCE = 1e-5

# The machine may be busy with other tests: time is no failure here.
settings.register_profile("mlbridge", deadline=None)
settings.load_profile("mlbridge")


def pytest_configure() -> None:
    """Let tests be interrupted, and what they start, also in the background.

    A shell ignores SIGINT for what it starts there, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Workers of pytest-xdist send reports as UTF-8: halves of characters, of
    which some tests are, do not go into that."""
    report = yield
    report.sections = [
        (title, text.encode(errors="backslashreplace").decode())
        for title, text in report.sections
    ]
    return report


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a server, short enough for a socket; nothing may be left at it."""
    folder = Path(tempfile.mkdtemp(prefix="mlb"))
    yield str(folder / "model")
    left = sorted(path.name for path in folder.iterdir())
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture(scope="session")
def aot_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NAME.onnx and libNAME.so of every model in aot_models."""
    path = tmp_path_factory.mktemp("aot")
    for name, make in aot_models.MODELS.items():
        onnx.save(make(), path / f"{name}.onnx")
        compile_model(path / f"{name}.onnx", path / f"lib{name}.so")
    return path


@pytest.fixture
def quick_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a corpus are tried with less to do, but for `make test-full`."""
    runs = pytest.importorskip("mlbridge_optimizations.corpus.runs")
    if not IS_FULL:
        about = {**runs.PROGRAMS["bzip2"]["test"], "make": "text in 1"}
        monkeypatch.setitem(runs.RUN_TESTS, "bzip2", runs._test(**about))


def assert_same(found: Any, expected: Any) -> None:
    """Same type, shape and value; all NaNs are equal, 0.0 and -0.0 are not.

    Of dictionaries, the same keys in any order, with the same values.
    """
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
        return
    if not isinstance(expected, np.ndarray):
        assert type(found) is type(expected)
        assert found == expected
        return
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected, strict=True)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        signs = np.signbit(found[numbers]), np.signbit(expected[numbers])
        np.testing.assert_array_equal(*signs)


def as_array(value: Any) -> Any:
    """A feature as it comes back; texts are no arrays."""
    return value if isinstance(value, (str, list)) else np.asarray(value)


def assert_close(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Same shape and type; floats within 1e-5 and with the same argmax, else equal."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "f":
        assert np.max(np.abs(found - expected)) <= TOLERANCE
        assert np.argmax(found) == np.argmax(expected)
    else:
        np.testing.assert_array_equal(found, expected)


def libraries_in(folder: Path) -> list[str]:
    """The libraries in a folder that this process has loaded, each as often."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        _, _, offset, _, _, *path = line.split(maxsplit=5)
        if path and Path(path[0]).is_relative_to(folder) and int(offset, 16) == 0:
            found.append(path[0])
    return found


def assert_replies_alike(specs: list[str], features: dict[str, Any]) -> None:
    """Of a runner each, which are all there at once."""
    with contextlib.ExitStack() as stack:
        runners = [stack.enter_context(ModelRunner(spec)) for spec in specs]
        replies = [runner.evaluate(features) for runner in runners]
    for reply in replies[1:]:
        for name, value in replies[0].items():
            np.testing.assert_array_equal(reply[name], value)
