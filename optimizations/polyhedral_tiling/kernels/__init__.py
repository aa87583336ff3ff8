# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels, their sizes, and their split into training and held-out cases.

Each kernel is a JSON file for ``mlbridge-polyhedral``, written from the definition of a
problem like PolyBench's. A case is a kernel with a size. No model may be trained on
held-out cases. The cases of each split:

=================  ==================================================================
training           the kernels in ``SIZES`` with their first two sizes
held-out sizes     the same kernels with their third size
held-out kernels   the kernels in ``HELD_OUT``
=================  ==================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent

SIZES: Mapping[str, tuple[str, str, str]] = {
    "matmul": ("N=100", "N=200", "N=300"),
    "matmul_at": ("N=90", "N=220", "N=150"),
    "gemm": ("N=128", "N=250", "N=190"),
    "three_mm": ("N=64", "N=150", "N=110"),
    "syrk": ("N=120", "N=260", "N=200"),
    "trmm": ("N=110", "N=256", "N=180"),
    "mvt": ("N=500", "N=1500", "N=1000"),
    "atax": ("N=500", "N=1400", "N=2000"),
    "gesummv": ("N=400", "N=1100", "N=800"),
    "contract": ("N=24", "N=48", "N=36"),
    "transpose": ("N=600", "N=1500", "N=2048"),
    "jacobi_1d": ("T=100,N=4000", "T=20,N=100000", "T=40,N=30000"),
    "jacobi_2d": ("T=20,N=150", "T=4,N=600", "T=10,N=350"),
    "seidel_5": ("T=10,N=120", "T=4,N=400", "T=6,N=250"),
    "fdtd_2d": ("T=20,N=120", "T=4,N=500", "T=8,N=300"),
    "cholesky": ("N=140", "N=300", "N=220"),
    "trisolv_many": ("N=100", "N=250", "N=170"),
    "floyd_warshall": ("N=80", "N=180", "N=130"),
    "covariance": ("N=100", "N=240", "N=160"),
}
"""Kernels to train on, with three sizes each. The third size is held out."""

HELD_OUT: Mapping[str, tuple[str, ...]] = {
    "matmul_bt": ("N=150", "N=256"),
    "two_mm": ("N=160",),
    "syr2k": ("N=180",),
    "bicg": ("N=1200",),
    "gemver": ("N=900",),
    "doitgen": ("N=40",),
    "add_transposed": ("N=1000", "N=1400"),
    "conv_2d": ("N=400",),
    "seidel_2d": ("T=4,N=300",),
    "heat_3d": ("T=4,N=50",),
    "lu": ("N=220",),
    "trisolv": ("N=1500",),
}
"""Kernels that no model is trained on, with their sizes."""


@dataclass(frozen=True)
class Case:
    """A kernel with a size.

    Attributes:
        kernel: the kernel's name.
        parameters: values of parameters, such as ``T=10,N=300``.
        file: the kernel's JSON.
        split: ``training``, ``generated``, ``held-out-sizes`` or ``held-out-kernels``.
    """

    kernel: str
    parameters: str
    file: Path
    split: str

    @property
    def name(self) -> str:
        """A name for tables."""
        return f"{self.kernel} {self.parameters}".strip()


def cases(*splits: str) -> list[Case]:
    """Returns the cases of splits: training, held-out-sizes or held-out-kernels."""
    found = []
    for kernel, sizes in SIZES.items():
        file = FOLDER / f"{kernel}.json"
        found += [Case(kernel, size, file, "training") for size in sizes[:2]]
        found.append(Case(kernel, sizes[2], file, "held-out-sizes"))
    for kernel, several in HELD_OUT.items():
        file = FOLDER / f"{kernel}.json"
        found += [Case(kernel, size, file, "held-out-kernels") for size in several]
    return [case for case in found if case.split in splits]
