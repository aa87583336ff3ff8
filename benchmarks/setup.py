# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the package mlbridge_benchmarks from this folder and its subfolders."""

from setuptools import find_packages, setup

NAME = "mlbridge_benchmarks"
folders = find_packages(exclude=["build*"])
setup(
    packages=[NAME, *(f"{NAME}.{folder}" for folder in folders)],
    package_dir={NAME: "."},
    package_data={f"{NAME}.report": ["page.html"]},
)
