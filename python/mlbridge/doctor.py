# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is available on this machine, with versions and how to get what is missing."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mlbridge import _core, grpc, inprocess
from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install, pip_install


@dataclass(frozen=True)
class Check:
    """One thing that was looked for."""

    group: str
    name: str
    found: str | None
    """What is there, with its version; None when it is missing."""
    hint: str = ""
    """How to get it, or what it is good for."""
    required: bool = False
    """Whether the package is broken without it."""


def checks() -> list[Check]:
    """Looks at everything; takes well under a second."""
    return [*_core_checks(), *_python_checks(), *_llvm_checks(), *_kernel_checks()]


PREFIXES = ("/usr/local", "/usr")
"""Where the library may be installed."""


def find_llvm_plugin() -> Path | None:
    """MLBridgeLLVM.so: where MLBRIDGE_LLVM_PLUGIN says, just built, or installed."""
    if named := os.environ.get("MLBRIDGE_LLVM_PLUGIN"):
        return Path(named) if Path(named).is_file() else None
    candidates: list[Path] = []
    # An editable install lies in the checkout, whose builds lie in build/.
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "compilers" / "llvm").is_dir():
        built = [
            plugin
            for plugin in checkout.glob("build/*/lib/MLBridgeLLVM.so")
            if not _is_sanitized(plugin.parents[1])
        ]
        candidates += sorted(built, key=lambda path: -path.stat().st_mtime)
    candidates += [
        Path(prefix, lib, "MLBridgeLLVM.so")
        for prefix in PREFIXES
        for lib in ("lib", f"lib/{platform.machine()}-linux-gnu")
    ]
    return next((path for path in candidates if path.is_file()), None)


def _is_sanitized(build: Path) -> bool:
    """Whether it is of a build for sanitizers: no stock compiler can load that."""
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return bool(re.search(r"^MLBRIDGE_SANITIZE:\w+=.", cache, re.MULTILINE))


def _core_checks() -> list[Check]:
    group = "bridge"
    found = [
        Check(group, "core", f"{_core.VERSION} ({_core.COMPILER})", required=True),
        Check(group, "simdjson", _core.SIMDJSON_VERSION, "reads JSON", required=True),
    ]
    found += [
        Check(group, f"{scheme}:", "yes", help_line)
        for scheme, help_line in _core.schemes().items()
    ]
    found += [_in_process_scheme(scheme) for scheme in inprocess.schemes()]
    found += _grpc_schemes()
    found += [_format(known) for known in _core.formats()]
    return found


def _in_process_scheme(scheme: _core.Scheme) -> Check:
    """One whose runtime may have to be found first."""
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


def _grpc_schemes() -> list[Check]:
    """Its schemes come with a library of its own, which may not be there."""
    try:
        return [
            Check("bridge", f"{scheme.name}:", "yes", scheme.help)
            for scheme in grpc.schemes()
        ]
    except Unsupported as error:
        return [Check("bridge", "grpc:", None, str(error))]


def _format(known: _core.Format) -> Check:
    """A SerDes, whose library may not be on this machine."""
    name = f"serdes={known.name}"
    try:
        return Check("bridge", name, "yes", known.help)
    except ImportError as error:
        return Check("bridge", name, None, f"cannot be loaded: {error}")


def _python_checks() -> list[Check]:
    learning = f"{how_to_install('train', './optimizations')}: train, evaluate, corpus"
    return [
        Check("Python", "python", platform.python_version(), required=True),
        _package("numpy", "", required=True),
        _package("emx-onnx-cgen", f"{how_to_install('compile')}: mlbridge compile"),
        _package("ml-compiler-bridge-optimizations", learning),
    ]


def _package(name: str, hint: str, *, required: bool = False) -> Check:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check("Python", name, None, hint, required)
    return Check("Python", name, version, required=required)


def _llvm_checks() -> list[Check]:
    plugin = find_llvm_plugin()
    hint = "" if plugin else "make build, or set MLBRIDGE_LLVM_PLUGIN to it"
    return [
        _program("clang-22", "apt-get install clang-22"),
        _program("opt-22", "apt-get install llvm-22"),
        _program("ld.lld-22", "apt-get install lld-22"),
        Check("LLVM", "MLBridgeLLVM.so", str(plugin) if plugin else None, hint),
    ]


def _program(name: str, hint: str) -> Check:
    path = shutil.which(name)
    if path is None:
        return Check("LLVM", name, None, hint)
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check("LLVM", name, None, f"{path} does not run: {error}")
    version = re.search(r"\d+\.\d+\.\d+", output)
    return Check("LLVM", name, f"{version[0] if version else '?'} ({path})")


def _kernel_checks() -> list[Check]:
    group = "kernel"
    release = platform.release()
    size = _max_pipe_size()
    return [
        Check(group, "Linux", release if platform.system() == "Linux" else None),
        Check(
            group,
            "pidfd",
            "yes" if _has_pidfd() else None,
            "tells at once that a peer has died; Linux 5.3",
        ),
        Check(
            group,
            "pipe buffers",
            f"{size >> 10} KiB" if size else None,
            "/proc/sys/fs/pipe-max-size; 1024 KiB is what the pipes want",
        ),
        Check(
            group,
            "RWF_NOSIGNAL",
            "yes" if _has_rwf_nosignal() else None,
            "writes without SIGPIPE; else the signal is blocked for each write",
        ),
    ]


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _max_pipe_size() -> int:
    try:
        return int(Path("/proc/sys/fs/pipe-max-size").read_text())
    except (OSError, ValueError):
        return 0


def _has_rwf_nosignal() -> bool:
    rwf_nosignal = 0x100
    reader, writer = os.pipe()
    try:
        os.pwritev(writer, [b"x"], -1, rwf_nosignal)
    except (AttributeError, OSError):
        return False
    finally:
        os.close(reader)
        os.close(writer)
    return True
