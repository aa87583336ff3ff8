# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of decisions about loops, without and with the bridge."""
