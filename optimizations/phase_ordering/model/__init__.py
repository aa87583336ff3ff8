# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model: its network, its ONNX file, and the core set from which it chooses."""
