# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the cost of asking a model: docs/reference/benchmarks.md.

Each benchmark has a folder with both of its sides; ``command.py`` joins them as
``mlbridge bench``. Every failure is a `mlbridge.Error`: ModelError for a wrong reply or
compile, PeerClosed if a process ended, Timeout if one hangs, OSFailure if a file is
missing, Unsupported if a package is missing.
"""
