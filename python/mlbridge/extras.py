# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that install optional parts of this package, for error messages.

The messages must not name mlbridge, because that is another project on PyPI. The name
of this distribution is ml-compiler-bridge.
"""

import shlex
import sys
from importlib.util import find_spec

from mlbridge.errors import Unsupported

DISTRIBUTION = "ml-compiler-bridge"


def pip_install(what: str) -> str:
    """Returns the command that installs packages for this Python interpreter."""
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def how_to_install(extra: str = "", folder: str = ".") -> str:
    """Returns the command that installs the distribution in a folder of the checkout.

    ``extra`` is one extra of the distribution, or several separated by commas.
    """
    what = f"'{folder}[{extra}]'" if extra else folder
    return f"{pip_install(what)} in the folder of ML-Compiler-Bridge's checkout"


def need(what: str, packages: tuple[str, ...], how: str) -> None:
    """Raises Unsupported if a package is not installed.

    Call this before a long computation. ``what`` names the part that needs the
    packages, and ``how`` is the command that installs them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs the Python packages {', '.join(missing)}, which are not "
            f"installed: {how}"
        )
