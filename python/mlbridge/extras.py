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
    """The command that installs packages for this interpreter, whatever ``pip`` is."""
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def how_to_install(extra: str = "", folder: str = ".") -> str:
    """The command that installs the distribution in a folder of the checkout.

    ``extra`` is one of its extras, or several separated by commas.
    """
    what = f"'{folder}[{extra}]'" if extra else folder
    return f"{pip_install(what)} in the folder of ML-Compiler-Bridge's checkout"


def need(what: str, packages: tuple[str, ...], how: str) -> None:
    """Raises Unsupported before hours of work if a package is not installed.

    ``what`` names the part that needs the packages, and ``how`` is the command that
    installs them. Does not import them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs the Python packages {', '.join(missing)}, which are not "
            f"installed: {how}"
        )
