# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What asking a model costs: docs/benchmarks.md.

A folder a benchmark, with both of its sides; ``command.py`` joins them as ``mlbridge
bench``. Whatever goes wrong is a `mlbridge.Error`, whose text the command line prints:
a ModelError where an answer or what was compiled is wrong, PeerClosed where a process
has ended, Timeout where it hangs, OSFailure where something is not there, Unsupported
where a package is missing.
"""
