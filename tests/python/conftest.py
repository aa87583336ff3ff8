# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures and assertions that several test files share."""

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import replace
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
from programs import BUILD, IS_FULL, ROOT
from stock_llvm import leaves_nothing, sources, tag

__all__ = ["leaves_nothing", "sources", "tag"]

MODULES = BUILD / "lib"
"""The runner modules of the release build, MLBridge-NAME.so."""
TOLERANCE = 1e-5

# Other tests may keep the machine busy, so slow examples must not fail.
settings.register_profile("mlbridge", deadline=None)
settings.load_profile("mlbridge")


def pytest_configure() -> None:
    """Restores SIGINT, which shells ignore in background jobs and children inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # By default, Ray's workers run at low priority, and may time out.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Escapes lone surrogates, which pytest-xdist cannot send as UTF-8."""
    report = yield
    report.sections = [
        (title, text.encode(errors="backslashreplace").decode())
        for title, text in report.sections
    ]
    return report


@pytest.fixture
def name() -> Iterator[str]:
    """A server's name, short enough for a socket. Checks that no such file is left."""
    with tempfile.TemporaryDirectory(prefix="mlb") as folder:
        yield f"{folder}/model"
        assert list(Path(folder).iterdir()) == []


@pytest.fixture(scope="session")
def aot_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with NAME.onnx and libNAME.so of every model in aot_models."""
    path = tmp_path_factory.mktemp("aot")
    for name, make in aot_models.MODELS.items():
        onnx.save(make(), path / f"{name}.onnx")
        compile_model(path / f"{name}.onnx", path / f"lib{name}.so")
    return path


@pytest.fixture
def quick_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs bzip2 on a small input, except under `make test-full`."""
    runs = pytest.importorskip("mlbridge_optimizations.corpus.runs")
    if not IS_FULL:
        about = {**runs.PROGRAMS["bzip2"]["test"], "make": "text in 1"}
        monkeypatch.setitem(runs.RUN_TESTS, "bzip2", runs.parse_test(**about))


@pytest.fixture(scope="session")
def whole_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two programs, both for training."""
    corpus = pytest.importorskip("mlbridge_optimizations.corpus")
    into = tmp_path_factory.mktemp("whole")
    assert corpus.fetch(into, programs=["bzip2", "lua"]).failed == {}
    return into


@pytest.fixture(scope="session")
def small_corpus(whole_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus's small files and one larger file. In the full run, all files."""
    if IS_FULL:
        return whole_corpus
    corpus = pytest.importorskip("mlbridge_optimizations.corpus")
    into, found = tmp_path_factory.mktemp("corpus"), corpus.load(whole_corpus)
    for name in (*found.programs, "linked"):
        (into / name).symlink_to(whole_corpus / name)
    for name, program in found.programs.items():
        modules = program.modules
        few = (m for m in modules if m.instructions < 1100 or "bzip2.c" in m.path)
        found.programs[name] = replace(program, modules=tuple(few))
    replace(found, folder=into).save()
    return into


@pytest.fixture(scope="session")
def trained_core(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A `coreset.Trained`: a core set and its model."""
    core_sets = importlib.import_module("core_sets")
    out = tmp_path_factory.mktemp("core")
    return core_sets.coreset.train(core_sets.core_settings(small_corpus, out))


def assert_same(found: Any, expected: Any) -> None:
    """Asserts the same type, shape and value. NaN equals NaN. 0.0 differs from -0.0.

    Dictionaries may order their keys differently.
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
    """Converts a value to the feature that `deserialize` returns for the value."""
    return value if isinstance(value, (str, list)) else np.asarray(value)


def assert_close(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Asserts equality. Floats may differ by 1e-5, but need the same argmax."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "f":
        assert np.max(np.abs(found - expected)) <= TOLERANCE
        assert np.argmax(found) == np.argmax(expected)
    else:
        np.testing.assert_array_equal(found, expected)


def libraries_in(folder: Path) -> list[str]:
    """Returns the libraries in a folder that are loaded, one entry for each load."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        _, _, offset, _, _, *path = line.split(maxsplit=5)
        if path and Path(path[0]).is_relative_to(folder) and int(offset, 16) == 0:
            found.append(path[0])
    return found


def assert_replies_alike(specs: list[str], features: dict[str, Any]) -> None:
    """Asserts that simultaneous runners, one for each spec, give the same reply."""
    with contextlib.ExitStack() as stack:
        runners = [stack.enter_context(ModelRunner(spec)) for spec in specs]
        replies = [runner.evaluate(features) for runner in runners]
    for reply in replies[1:]:
        for name, value in replies[0].items():
            np.testing.assert_array_equal(reply[name], value)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with protoc's output for our .proto files: Python and descriptors."""
    if shutil.which("protoc") is None:
        pytest.skip("protoc is not installed")
    folder = tmp_path_factory.mktemp("protoc")
    protos = "tests/unit/features", "tests/unit/graph", "tests/training/steps"
    for name in (*protos, "include/MLCompilerBridge/mlcompilerbridge"):
        path = ROOT / f"{name}.proto"
        described = f"--descriptor_set_out={folder / path.stem}.desc"
        options = [f"--python_out={folder}", "--include_imports", described]
        subprocess.run(["protoc", f"-I{path.parent}", *options, path], check=True)
    return folder


@pytest.fixture
def generic(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Python module of mlcompilerbridge.proto."""
    monkeypatch.syspath_prepend(str(generated))
    return importlib.import_module("mlcompilerbridge_pb2")
