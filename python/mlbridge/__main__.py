# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the command line: ``python -m mlbridge``."""

from mlbridge.cli import main

if __name__ == "__main__":
    main()
