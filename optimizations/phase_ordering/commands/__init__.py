# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of phase ordering. They import what they need when they run."""
