# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many compilers that send requests to one server."""
