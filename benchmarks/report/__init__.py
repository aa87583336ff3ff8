# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench report``: the tables and figures of the bridge's paper, measured."""
