# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How this package is installed, for messages that ask for more of it.

The distribution is called ml-compiler-bridge and not as the package that one imports:
on PyPI that name belongs to somebody else, whose code an installer would run.
"""

import shlex
import sys
from importlib.util import find_spec

from mlbridge.errors import Unsupported

DISTRIBUTION = "ml-compiler-bridge"


def pip_install(what: str) -> str:
    """What to type so that it lands in this Python.

    Another one's pip would put it elsewhere, or refuse, as Debian's own does.
    """
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def how_to_install(extra: str = "", folder: str = ".") -> str:
    """What to type for what is not on PyPI yet.

    Args:
        extra: of the folder's pyproject.toml, or several with commas between.
        folder: the checkout's that has the distribution; by default this one's.
    """
    what = f"'{folder}[{extra}]'" if extra else folder
    return f"{pip_install(what)} in the folder of ML-Compiler-Bridge's checkout"


def need(what: str, packages: tuple[str, ...], how: str) -> None:
    """Looks for packages without importing them: before hours of work, not after.

    Args:
        what: needs them, for the message.
        packages: as they are imported.
        how: installs them.

    Raises:
        Unsupported: one is not installed.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs the Python packages {', '.join(missing)}, which are not "
            f"installed: {how}"
        )
