# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that run in another Python, for frameworks that need their own packages."""
