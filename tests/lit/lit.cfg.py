# The tests of the LLVM plug-in. They run LLVM's own tools, found first on PATH,
# and policy-server, which is a model as far as the plug-in can tell.
#
# lit runs this file with `config` and `lit_config` defined.
# ruff: noqa: F821

import os
import shutil
import sys
from pathlib import Path

import lit.formats

source_root = Path(__file__).parent
plugin = config.mlbridge_plugin


def sanitized_tools() -> Path:
    """A folder of LLVM's tools, each with the sanitizers' runtime loaded first.

    The stock tools are not linked with it, and a plug-in cannot bring it: what it
    replaces (malloc) is in use by then. Other programs of the tests have their own, or
    should not be slower.
    """
    folder = Path(config.test_exec_root) / "sanitized-tools"
    folder.mkdir(parents=True, exist_ok=True)
    lines = {
        name: f"LD_PRELOAD={config.mlbridge_sanitizer_runtime}"
        f" exec {config.llvm_tools_dir}/{name}"
        for name in ("clang", "clang++", "ld.lld", "llc", "opt")
    }
    # clang starts it with its own environment, and GNU's linker leaks.
    lines["ld"] = f"env -u LD_PRELOAD {shutil.which('ld')}"
    for name, line in lines.items():
        tool = folder / name
        tool.write_text(f'#!/bin/sh\n{line} "$@"\n')
        tool.chmod(0o755)
    return folder


config.name = "MLBridgeLLVM"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.excludes = ["Inputs"]
config.test_source_root = str(source_root)

tools = [config.mlbridge_tools_dir, config.llvm_tools_dir]
if config.mlbridge_sanitizer_runtime:
    tools.insert(0, str(sanitized_tools()))
config.environment["PATH"] = os.pathsep.join([*tools, os.environ["PATH"]])

if config.mlbridge_has_grpc.lower() in ("1", "on", "true", "yes"):
    config.available_features.add("grpc")

if config.mlbridge_plugin_without_models:
    config.available_features.add("builtin-models")

# The library of ONNX Runtime that the plug-in finds beside itself.
if config.mlbridge_onnxruntime:
    config.available_features.add("onnx")
config.environment.pop("MLBRIDGE_ONNXRUNTIME", None)

# `mlbridge compile`, of the Python that runs lit or of this project's own.
python = next(
    (
        path
        for path in (Path(sys.executable), source_root.parents[1] / ".venv/bin/python")
        if (path.parent / "mlbridge").exists()
    ),
    None,
)
if python:
    config.available_features.add("mlbridge-compile")

# None takes more than a few seconds. (Without psutil lit knows no limit, and
# ctest's limit for all of them is the only one.)
if lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 120

# lld needs the plug-in twice: for its options, then for its passes.
lld_plugin = f"-Wl,-mllvm,-load={plugin} -Wl,--load-pass-plugin={plugin}"

config.substitutions += [
    ("%plugin-folder", str(Path(plugin).parent)),
    ("%plugin", plugin),
    ("%added-passes", config.mlbridge_added_passes),
    ("%without-models", config.mlbridge_plugin_without_models),
    ("%lld-plugin", lld_plugin),
    ("%inputs", str(source_root / "Inputs")),
    ("%python", str(python or sys.executable)),
    ("%onnxruntime", config.mlbridge_onnxruntime),
    ("%mlbridge", str(python.parent / "mlbridge") if python else "mlbridge"),
    # Unoptimized bitcode, ready for the pipeline of that level.
    ("%emit-bc", "clang -Xclang -disable-llvm-passes -emit-llvm -c"),
]
