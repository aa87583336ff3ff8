# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How this package is installed, for messages that ask for more of it.

The distribution is called ml-compiler-bridge and not as the package that one imports:
on PyPI that name belongs to somebody else, whose code an installer would run.
"""

import shlex
import sys

DISTRIBUTION = "ml-compiler-bridge"


def pip_install(what: str) -> str:
    """What to type so that it lands in this Python.

    Another one's pip would put it elsewhere, or refuse, as Debian's own does.
    """
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def how_to_install(extra: str) -> str:
    """What to type for an extra of this package, which is not on PyPI yet.

    Args:
        extra: of pyproject.toml, or several with commas between.
    """
    command = pip_install(f"'.[{extra}]'")
    return f"{command} in the folder of ML-Compiler-Bridge's checkout"
