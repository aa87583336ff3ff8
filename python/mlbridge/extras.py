# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that install this package's optional parts, for messages.

The distribution is called ml-compiler-bridge: on PyPI the name mlbridge belongs to
another project, whose code an installer would run.
"""

import shlex
import sys
from importlib.util import find_spec

from mlbridge.errors import Unsupported

DISTRIBUTION = "ml-compiler-bridge"


def pip_install(what: str) -> str:
    """The command that installs packages for this interpreter.

    Plain ``pip`` may belong to another one, or refuse to install, as Debian's does.
    """
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def how_to_install(extra: str = "", folder: str = ".") -> str:
    """The command that installs a distribution of the checkout.

    Args:
        extra: an extra of the distribution, or several separated by commas.
        folder: the distribution's folder in the checkout.
    """
    what = f"'{folder}[{extra}]'" if extra else folder
    return f"{pip_install(what)} in the folder of ML-Compiler-Bridge's checkout"


def need(what: str, packages: tuple[str, ...], how: str) -> None:
    """Checks before hours of work that packages are installed, without importing them.

    Args:
        what: the part that needs them, for the message.
        packages: the names to import.
        how: the command that installs them.

    Raises:
        Unsupported: a package is not installed.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs the Python packages {', '.join(missing)}, which are not "
            f"installed: {how}"
        )
