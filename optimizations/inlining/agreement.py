# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The agreement of a model's decisions with LLVM's decisions: a confusion matrix."""

from dataclasses import astuple, dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Agreement:
    """Counts call sites by LLVM's decision and by the model's decision."""

    both_inline: int = 0
    only_llvm: int = 0
    only_model: int = 0
    neither: int = 0

    @classmethod
    def of(cls, model: NDArray[np.bool_], llvm: NDArray[np.bool_]) -> "Agreement":
        """Compares two arrays bool[n] of decisions."""
        cells = (model & llvm, ~model & llvm, model & ~llvm, ~model & ~llvm)
        return cls(*(int(np.count_nonzero(cell)) for cell in cells))

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(*map(add, astuple(self), astuple(other)))

    @property
    def decisions(self) -> int:
        """The number of call sites."""
        return sum(astuple(self))

    @property
    def llvm_inlines(self) -> int:
        """The number of call sites that LLVM inlines."""
        return self.both_inline + self.only_llvm

    @property
    def accuracy(self) -> float:
        """The share of call sites with the same decision."""
        return _share(self.both_inline + self.neither, self.decisions)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of two accuracies, on inlined and on other call sites."""
        inlined = self.llvm_inlines
        kept = self.decisions - inlined
        if inlined == 0 or kept == 0:
            return self.accuracy
        return (self.both_inline / inlined + self.neither / kept) / 2

    @property
    def majority_rate(self) -> float:
        """The accuracy of always making LLVM's more frequent decision."""
        inlined = self.llvm_inlines
        return _share(max(inlined, self.decisions - inlined), self.decisions)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
