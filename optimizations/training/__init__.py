# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training: from an environment to a file that decides in the compiler.

``settings.py`` has the options, ``sb3.py`` and ``rllib.py`` learn a policy that takes
one action after another, ``tune.py`` looks for better settings. All need the extra
``train``. docs/guides/training.md.
"""
