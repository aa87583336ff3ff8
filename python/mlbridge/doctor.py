# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks which parts are installed, and how to install the missing ones."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlbridge import _core, grpc, inprocess
from mlbridge.built import find_built
from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install, pip_install


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    group: str
    name: str
    found: str | None
    """A version, a path or "yes". None if the part is missing."""
    hint: str = ""
    """The purpose of the part, or how to install it."""
    required: bool = False
    """Whether mlbridge cannot work without the part."""


def checks() -> list[Check]:
    """Runs all checks, which takes less than a second."""
    return [
        *_core_checks(),
        *_module_checks(),
        *_python_checks(),
        *_tool_checks(),
        *_kernel_checks(),
    ]


def find_llvm_plugin() -> Path | None:
    """Returns $MLBRIDGE_LLVM_PLUGIN, or else the plug-in that `find_built` finds."""
    return find_built("MLBridgeLLVM.so", "MLBRIDGE_LLVM_PLUGIN")


_PARTS = {
    "onnx:": "scripts/fetch-onnxruntime",
    "grpc:": "apt-get install libgrpc++-dev protobuf-compiler-grpc",
    "serdes=protobuf": "apt-get install libprotobuf-dev protobuf-compiler",
    "serdes=yaml": "apt-get install libyaml-dev",
    "serdes=flatbuffers": "apt-get install libflatbuffers-dev flatbuffers-compiler",
}
"""Maps each optional part to the command to run before `make build`."""


def _core_checks() -> list[Check]:
    group = "bridge"
    core = f"{_core.VERSION} ({_core.COMPILER})"
    schemes = [
        Check(group, f"{s}:", "yes", about) for s, about in _core.schemes().items()
    ]
    schemes += [_in_process_scheme(scheme) for scheme in inprocess.schemes()]
    try:
        found = [Check(group, f"{s.name}:", "yes", s.help) for s in grpc.schemes()]
    except Unsupported:
        found = []
    found = [
        Check(group, "core", core, required=True),
        Check(group, "simdjson", _core.SIMDJSON_VERSION, "reads JSON", required=True),
        *schemes,
        *found,
        *(_format(known) for known in _core.formats()),
    ]
    known = {check.name for check in found}
    return found + [
        Check(group, name, None, f"not in this build: {how}, then make build")
        for name, how in _PARTS.items()
        if name not in known
    ]


def _in_process_scheme(scheme: _core.Scheme) -> Check:
    """Checks a scheme whose runtime library is loaded at run time."""
    group, name = "bridge", f"{scheme.name}:"
    if scheme.name != "onnx":
        return Check(group, name, "yes", scheme.help)
    library = inprocess.onnxruntime()
    if library is None or not library.is_file():
        named = f"{library}: no such file; " if library else ""
        install = pip_install("onnxruntime")
        hint = f"{named}{install}, or MLBRIDGE_ONNXRUNTIME=ITS_LIBRARY"
        return Check(group, name, None, hint)
    return Check(group, name, str(library), scheme.help)


def _format(known: _core.Format) -> Check:
    """Checks a SerDes, whose library may be missing on this machine."""
    name = f"serdes={known.name}"
    try:
        return Check("bridge", name, "yes", known.help)
    except ImportError as error:
        how = f"{_PARTS[name]}, then make build"
        return Check("bridge", name, None, f"cannot be loaded: {error}; {how}")


_MODULES = {
    "MLBridge-onnx.so": _PARTS["onnx:"],
    "MLBridge-grpc.so": _PARTS["grpc:"],
    "MLBridge-tf.so": "VENV=build/venvs/keras scripts/make-venv keras",
    "MLBridge-aoti.so": "scripts/make-venv demo",
    "MLBridge-tvm.so": "scripts/make-venv tvm",
}
"""Maps each module to the command to run before `make build`."""


def _module_checks() -> list[Check]:
    """Checks the modules, which add schemes to programs in C and C++."""
    return [_module(name, how) for name, how in _MODULES.items()]


def _module(name: str, how: str) -> Check:
    named = Path(os.environ.get("MLBRIDGE_MODULES", ""), name)
    found = named if named.is_absolute() and named.is_file() else find_built(name)
    if found is None:
        return Check("modules", name, None, f"{how}, then make build")
    hint = "for C and C++ programs, with MLBRIDGE_MODULES=FOLDER"
    return Check("modules", name, str(found), hint)


_PACKAGES = {
    "onnxruntime": ("onnx", "mlbridge serve MODEL.onnx"),
    "onnx": ("export", "mlbridge export, compile and inspect"),
    "onnxscript": ("export", "mlbridge export of PyTorch"),
    "skl2onnx": ("export", "mlbridge export of scikit-learn"),
    "emx-onnx-cgen": ("compile", "mlbridge compile"),
    "gymnasium": ("envs", "training environments"),
}
"""Maps optional packages to the extra that installs them, and to their purpose."""

_LEARNING = {
    "torch": "networks of mlbridge train",
    "stable_baselines3": "mlbridge train --engine sb3",
    "ray": "mlbridge train --engine rllib",
}
"""Maps the packages with which models are trained to their purpose."""


def _python_checks() -> list[Check]:
    learning = how_to_install("train", "./optimizations")
    return [
        Check("Python", "python", platform.python_version(), required=True),
        _package("numpy", "tensors", pip_install("numpy"), required=True),
        *(
            _package(name, purpose, how_to_install(extra))
            for name, (extra, purpose) in _PACKAGES.items()
        ),
        _package("mlbridge_optimizations", "mlbridge train, evaluate", learning),
        *(_package(name, purpose, learning) for name, purpose in _LEARNING.items()),
        _package("scikit-learn", "models of scikit-learn", pip_install("scikit-learn")),
    ]


def _package(name: str, purpose: str, how: str, *, required: bool = False) -> Check:
    try:
        # Map our packages to the names of their distributions.
        version = importlib.metadata.version(
            name.replace("mlbridge_", "ml-compiler-bridge-")
        )
    except importlib.metadata.PackageNotFoundError:
        return Check("Python", name, None, f"{purpose}: {how}", required)
    return Check("Python", name, version, purpose, required)


def _tool_checks() -> list[Check]:
    plugin = find_llvm_plugin()
    hint = "" if plugin else "make build, or set MLBRIDGE_LLVM_PLUGIN to its path"
    return [
        _program("clang-22", "apt-get install clang-22"),
        _program("opt-22", "apt-get install llvm-22"),
        _program("ld.lld-22", "apt-get install lld-22"),
        Check("LLVM", "MLBridgeLLVM.so", str(plugin) if plugin else None, hint),
        _program("cc", "apt-get install gcc, for mlbridge compile", "C"),
        *(_built(*part) for part in _BUILT),
    ]


_BUILT = (
    ("MLIR", "MLBridgeMLIR.so", "libmlir-22-dev"),
    ("GCC", "mlbridge.so", "gcc-12-plugin-dev"),
    ("SQLite", "mlbridge_sqlite.so", "libsqlite3-dev"),
    ("isl", "mlbridge-polyhedral", "libisl-dev"),
)
"""The other tools' plug-ins and programs, and the Debian packages that they need."""


def _built(group: str, name: str, package: str) -> Check:
    found = find_built(name)
    hint = "" if found else f"apt-get install {package}, then make build"
    return Check(group, name, str(found) if found else None, hint)


def _program(name: str, hint: str, group: str = "LLVM") -> Check:
    path = shutil.which(name)
    if path is None:
        return Check(group, name, None, hint)
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, timeout=20, check=True
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        return Check(group, name, None, f"{path} does not run: {error}; {hint}")
    version = re.search(r"\d+\.\d+\.\d+", output)
    return Check(group, name, f"{version[0] if version else '?'} ({path})")


def _write_nosignal() -> None:
    rwf_nosignal = 0x100
    reader, writer = os.pipe()
    try:
        os.pwritev(writer, [b"x"], -1, rwf_nosignal)
    finally:
        os.close(reader)
        os.close(writer)


def _yes_if(call: Callable[[], object]) -> str | None:
    """Returns "yes" if the call succeeds."""
    with suppress(AttributeError, OSError, ValueError):
        call()
        return "yes"
    return None


def _kernel_checks() -> list[Check]:
    release = platform.release() if platform.system() == "Linux" else None
    size = 0
    with suppress(OSError, ValueError):
        size = int(Path("/proc/sys/fs/pipe-max-size").read_text())
    return [
        Check("kernel", "Linux", release, "the bridge runs on Linux only"),
        Check(
            "kernel",
            "pidfd",
            _yes_if(lambda: os.close(os.pidfd_open(os.getpid()))),
            "reports a peer's death at once; Linux 5.3",
        ),
        Check(
            "kernel",
            "pipe buffers",
            f"{size >> 10} KiB" if size else None,
            "/proc/sys/fs/pipe-max-size; pipes are fastest with 1024 KiB",
        ),
        Check(
            "kernel",
            "RWF_NOSIGNAL",
            _yes_if(_write_nosignal),
            "writes without SIGPIPE; otherwise each write blocks the signal",
        ),
    ]
