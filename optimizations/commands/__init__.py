# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``train``, ``search``, ``evaluate``, ``explain`` and ``corpus``."""
