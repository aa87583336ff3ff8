# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register allocation in stock clang, llc and lld."""
