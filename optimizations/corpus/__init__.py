# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitcode of real programs, for training and evaluation.

Example::

    from mlbridge_optimizations import corpus

    corpus.fetch("build/corpus", programs=["bzip2", "lua"])
    for module in corpus.load("build/corpus").modules("training"):
        print(module.path, module.instructions)

Each program is a Debian source package, or a user's own program. docs/guides/corpus.md
has the commands. ``programs.toml`` defines how each package is compiled and tested.
"""

from .build import fetch
from .csmith import generate
from .manifest import Corpus, Module, Program, load
from .own import OWN, Own, add
from .recipes import HELD_OUT, RECIPES, split_of
from .runs import Run, run_stock, run_tests

__all__ = [
    "HELD_OUT",
    "OWN",
    "RECIPES",
    "Corpus",
    "Module",
    "Own",
    "Program",
    "Run",
    "add",
    "fetch",
    "generate",
    "load",
    "run_stock",
    "run_tests",
    "split_of",
]
