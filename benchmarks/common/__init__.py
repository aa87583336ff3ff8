# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that the benchmarks share: options, processes, models and tables."""
