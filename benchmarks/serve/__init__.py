# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many compilers that ask one server."""
