# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge`` train, search, evaluate and corpus."""
