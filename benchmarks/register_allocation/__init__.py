# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of a dialogue about registers, with gRPC and in the compiler's process."""
