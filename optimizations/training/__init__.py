# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains models for the compiler in environments.

``settings.py`` has the options. ``sb3.py`` and ``rllib.py`` learn a policy. ``tune.py``
searches for better settings. All of these modules need the extra ``train``. See
docs/guides/training.md.
"""
