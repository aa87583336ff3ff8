# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a wheel of the distribution `mlbridge`, which is the former name of this
package.

python tests/packaging/old_distribution.py FOLDER
"""

import sys
import zipfile
from pathlib import Path

NAME = "mlbridge-0.0.1-py3-none-any.whl"

_INFO = "mlbridge-0.0.1.dist-info"
_FILES = {
    "mlbridge/__init__.py": "old = True\n",
    "mlbridge/old.py": "",
    f"{_INFO}/METADATA": "Metadata-Version: 2.1\nName: mlbridge\nVersion: 0.0.1\n",
    f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\n"
    "Root-Is-Purelib: true\nTag: py3-none-any\n",
}


def make(folder: Path) -> Path:
    """Writes the wheel into a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / NAME
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in _FILES.items():
            file.writestr(name, text)
        record = "".join(f"{name},,\n" for name in [*_FILES, f"{_INFO}/RECORD"])
        file.writestr(f"{_INFO}/RECORD", record)
    return wheel


if __name__ == "__main__":
    make(Path(sys.argv[1]))
