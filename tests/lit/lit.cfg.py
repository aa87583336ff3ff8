# The tests of the LLVM plug-in. They run LLVM's own tools, found first on PATH,
# and policy-server, which is a model as far as the plug-in can tell.

import os

import sys

import lit.formats

config.name = "MLBridgeLLVM"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

config.environment["PATH"] = os.pathsep.join(
    [config.mlbridge_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)

# None takes more than a few seconds. (Without psutil lit knows no limit, and
# ctest's limit for all of them is the only one.)
if lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 120

config.substitutions += [
    ("%plugin", config.mlbridge_plugin),
    ("%python", sys.executable),
    ("%inputs", os.path.join(config.test_source_root, "Inputs")),
    # Unoptimized bitcode, ready for the pipeline of that level.
    ("%emit-bc", "clang -Xclang -disable-llvm-passes -emit-llvm -c"),
    # lld needs the plug-in twice: for its options, then for its passes.
    ("%lld-plugin", f"-Wl,-mllvm,-load={config.mlbridge_plugin} "
                    f"-Wl,--load-pass-plugin={config.mlbridge_plugin}"),
]
