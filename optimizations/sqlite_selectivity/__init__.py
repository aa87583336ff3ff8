# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimates which share of a table's rows a condition accepts, for SQLite's planner."""
