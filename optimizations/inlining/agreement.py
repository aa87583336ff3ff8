# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How well one's decisions agree with LLVM's, beyond what one number can say."""

from dataclasses import astuple, dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Agreement:
    """A confusion matrix: LLVM's decisions on call sites, and a model's on the same."""

    both_inline: int = 0  # Call sites that both inline.
    only_llvm: int = 0  # Those that only LLVM inlines.
    only_model: int = 0  # Those that only the model inlines.
    neither: int = 0  # Those that neither does.

    @classmethod
    def of(cls, model: NDArray[np.bool_], llvm: NDArray[np.bool_]) -> "Agreement":
        """Compares two arrays bool[n] of decisions to inline."""
        return cls(
            both_inline=int(np.count_nonzero(model & llvm)),
            only_llvm=int(np.count_nonzero(~model & llvm)),
            only_model=int(np.count_nonzero(model & ~llvm)),
            neither=int(np.count_nonzero(~model & ~llvm)),
        )

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(*map(add, astuple(self), astuple(other)))

    @property
    def decisions(self) -> int:
        """How many call sites there are."""
        return sum(astuple(self))

    @property
    def llvm_inlines(self) -> int:
        """How many of them LLVM inlines."""
        return self.both_inline + self.only_llvm

    @property
    def accuracy(self) -> float:
        """The share of call sites on which both agree."""
        return _share(self.both_inline + self.neither, self.decisions)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the accuracies where LLVM inlines and where it does not.

        A model that always gives the same answer has 50 %. Where LLVM itself always
        gives the same answer, this is the accuracy.
        """
        inlined = self.llvm_inlines
        kept = self.decisions - inlined
        if inlined == 0 or kept == 0:
            return self.accuracy
        return (self.both_inline / inlined + self.neither / kept) / 2

    @property
    def majority_rate(self) -> float:
        """The accuracy of always giving LLVM's more frequent answer."""
        inlined = self.llvm_inlines
        return _share(max(inlined, self.decisions - inlined), self.decisions)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
