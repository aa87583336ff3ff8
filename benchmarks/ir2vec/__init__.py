# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time that the embedding of a module takes."""
