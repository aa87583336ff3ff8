# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the package mlbridge_optimizations from this folder and its subfolders."""

from setuptools import find_packages, setup

NAME = "mlbridge_optimizations"
DATA = ["*.json", "*/*.json", "programs.toml", "py.typed", "scripts/*", "run/*"]
DATA += ["inputs.toml", "*.c", "*/*.c", "*/*.h", "*.html"]

folders = find_packages(exclude=["build*"])
setup(
    packages=[NAME, *(f"{NAME}.{folder}" for folder in folders)],
    package_dir={NAME: "."},
    package_data={"": DATA},
)
