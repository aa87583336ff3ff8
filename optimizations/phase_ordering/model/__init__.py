# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model: its network, its file, and the core set from which it may choose."""
