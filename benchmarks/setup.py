# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packages of this folder: mlbridge_benchmarks, with each folder below it."""

from setuptools import find_packages, setup

NAME = "mlbridge_benchmarks"
folders = find_packages(exclude=["build*"])
setup(
    packages=[NAME, *(f"{NAME}.{folder}" for folder in folders)],
    package_dir={NAME: "."},
)
