# Configures the tests of the LLVM plug-in. They run LLVM's own tools, which are first
# on PATH, and policy-server, which is the model. lit defines `config` and `lit_config`.
# ruff: noqa: F821

import os
import shutil
import sys
from pathlib import Path

import lit.formats

source_root = Path(__file__).parent
plugin = config.mlbridge_plugin


def sanitized_tools() -> Path:
    """Makes a folder of LLVM's tools that load the sanitizers' runtime first.

    The stock tools are not linked with the runtime. If the plug-in loaded it, this
    would be too late, because the runtime replaces malloc. Other programs have their
    own runtime or need none.
    """
    folder = Path(config.test_exec_root) / "sanitized-tools"
    folder.mkdir(parents=True, exist_ok=True)
    # Disable poisoning. LLVM's allocators poison memory in instrumented code (the
    # plug-in's), but code that is not instrumented (LLVM's own) does not unpoison the
    # memory. Without a plug-in, no code in a tool is sanitized.
    preload = (
        f'case "$*" in *.so*|*mlbridge*) export'
        f" LD_PRELOAD={config.mlbridge_sanitizer_runtime}"
        " ASAN_OPTIONS=$ASAN_OPTIONS:allow_user_poisoning=0;; esac; exec"
    )
    lines = {
        name: f"{preload} {config.llvm_tools_dir}/{name}"
        for name in ("clang", "clang++", "ld.lld", "llc", "opt")
    }
    # clang passes LD_PRELOAD on to the linker. Unset it, because GNU's linker leaks.
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
# Skip tests that mostly run LLVM's own code, which is not sanitized.
if config.mlbridge_sanitizer_runtime and "MLBRIDGE_TEST_FULL" not in os.environ:
    config.excludes += ["aot.test", "decide.test", "lookahead.test", "metadata.test"]
    config.excludes += ["lto.test", "lto-in-process.test", "models.test", "search.test"]
config.test_source_root = str(source_root)

tools = [config.mlbridge_tools_dir, config.llvm_tools_dir]
if config.mlbridge_sanitizer_runtime:
    tools.insert(0, str(sanitized_tools()))
config.environment["PATH"] = os.pathsep.join([*tools, os.environ["PATH"]])

if config.mlbridge_has_grpc.lower() in ("1", "on", "true", "yes"):
    config.available_features.add("grpc")

if config.mlbridge_sanitizer_runtime:
    config.available_features.add("sanitized")

if config.mlbridge_plugin_without_models:
    config.available_features.add("builtin-models")

# The plug-in finds this ONNX Runtime library beside itself.
if config.mlbridge_onnxruntime:
    config.available_features.add("onnx")
config.environment.pop("MLBRIDGE_ONNXRUNTIME", None)

# Find a Python that has `mlbridge compile`: the Python that runs lit, or the one of
# this project's virtual environment.
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

# Each test takes a few seconds. A time limit is possible only if lit finds psutil.
if lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 120

# lld loads the plug-in twice: first for its options, then for its passes.
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
    # Makes bitcode that is not optimized yet, for the pipeline of an -O level.
    ("%emit-bc", "clang -Xclang -disable-llvm-passes -emit-llvm -c"),
]
