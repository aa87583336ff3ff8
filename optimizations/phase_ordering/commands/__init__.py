# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of phase ordering. Their imports are lazy, for a fast start."""
