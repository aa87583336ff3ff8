# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the cost of requests to a model: docs/reference/benchmarks.md.

Each benchmark has a folder with its compiler and its model. Failures raise a
`mlbridge.Error`: ModelError for a wrong reply or object file, PeerClosed if a process
has ended, Timeout if a process hangs, OSFailure if a file is missing, and Unsupported
if a package is missing.
"""
