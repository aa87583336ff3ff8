# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code shared by the benchmarks: options, processes, programs, tables."""
