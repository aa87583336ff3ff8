# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three advisors of LLVM: their command-line flags, and their legal advice."""

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from mlbridge.errors import InvalidArgument, SchemaMismatch, Unsupported
from mlbridge.interactive.channel import Header, expect_spec, float32, int64
from mlbridge.log import TensorSpec
from mlbridge.types import Features

AdvisorName: TypeAlias = Literal["inliner", "eviction", "priority"]
"""The name of an advisor: `Inliner`, `Eviction` or `Priority`."""

Tool: TypeAlias = Literal["clang", "opt", "llc"]

# Matches names of programs, for example clang-22 or clang++.
_TOOL = re.compile(r"(?:.*-)?(clang|opt|llc)(?:\+\+)?(?:-\d+)?")


def tool_of(program: str) -> Tool:
    """Returns the tool, such as "clang" for clang-22, or raises InvalidArgument."""
    match = _TOOL.fullmatch(Path(program).name)
    if match is None:
        raise InvalidArgument(
            f"{program}: expected clang, opt or llc; pass tool= if it is one of them"
        )
    tool: Tool = match[1]  # type: ignore[assignment]
    return tool


class Advisor(ABC):
    """An advisor of LLVM that requests decisions through an interactive channel."""

    name: ClassVar[AdvisorName]
    tools: ClassVar[frozenset[Tool]]
    """The tools that have this advisor."""
    advice: ClassVar[TensorSpec]
    enabling: ClassVar[str]
    """The flag of LLVM that enables this advisor."""
    channel: ClassVar[str]
    """The prefix of the flags of LLVM that configure the channel."""

    def flags(self, base: str) -> list[str]:
        """Returns the flags with which LLVM uses the FIFOs BASE.out and BASE.in."""
        return [
            f"-{self.enabling}=release",
            f"-{self.channel}-interactive-channel-base={base}",
        ]

    @abstractmethod
    def encode(self, value: Any, features: Features) -> bytes:
        """Encodes the advice for a request.

        Raises SchemaMismatch if the advice is illegal. Raises Unsupported for None if
        LLVM cannot make the decision itself.
        """

    def check(self, header: Header) -> None:
        """Raises SchemaMismatch if another advisor or LLVM version sent the header."""
        expect_spec(self.peer, self.advice, header.advice)

    @property
    def peer(self) -> str:
        """The name of the advisor in error messages."""
        return f"{self.name} advisor"

    def illegal(self, expected: str, found: Any) -> SchemaMismatch:
        """Returns the error for illegal advice."""
        text = np.array2string(found) if isinstance(found, np.ndarray) else repr(found)
        return SchemaMismatch(
            f"{self.peer}: advice '{self.advice.name}': expected {expected},"
            f" found {text:.200}"
        )

    def scalar(self, value: Any, expected: str) -> bool | int | float:
        """Returns the number in the advice, which may be in a dict or an array.

        Raises SchemaMismatch if it is not one number, and Unsupported for None.
        """
        if isinstance(value, bool | int | float):
            return value
        if value is None:
            raise Unsupported(
                f"{self.peer}: advice '{self.advice.name}': expected {expected}, found"
                " None: LLVM has no decision of its own to defer to"
            )
        if isinstance(value, Mapping):
            if value.keys() != {self.advice.name}:
                raise self.illegal(f"{expected} under its name", value)
            return self.scalar(value[self.advice.name], expected)
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError):
            raise self.illegal(expected, value) from None
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise self.illegal(expected, value)
        number: bool | int | float = array.item()
        return number


class Inliner(Advisor):
    """Decides whether to inline a call: 0, 1, or None for LLVM's own decision."""

    name = "inliner"
    tools = frozenset({"clang", "opt"})
    advice = int64("inlining_decision", 1)
    enabling, channel = "enable-ml-inliner", "inliner"

    _EXPECTED = "0 or 1"
    _DEFAULT = int64("inlining_default", 1)
    _NO, _YES = struct.pack("<q", 0), struct.pack("<q", 1)

    def __init__(self, include_default: bool) -> None:
        self._include_default = include_default

    def flags(self, base: str) -> list[str]:
        """See `Advisor`."""
        default = ["-inliner-interactive-include-default"] * self._include_default
        return super().flags(base) + default

    def check(self, header: Header) -> None:
        """See `Advisor`."""
        super().check(header)
        if self._include_default:
            expect_spec(self.peer, self._DEFAULT, _find(header, self._DEFAULT.name))

    def encode(self, value: Any, features: Features) -> bytes:
        """See `Advisor`."""
        if value is None and self._include_default:
            value = features[self._DEFAULT.name]
        number = self.scalar(value, self._EXPECTED)
        if number in (0, 1):
            return self._YES if number else self._NO
        raise self.illegal(self._EXPECTED, value)


class Eviction(Advisor):
    """Chooses the register whose live ranges are evicted.

    The advice is an index at which ``mask`` is 1. The last index evicts nothing.
    """

    name = "eviction"
    tools = frozenset({"clang", "llc"})
    advice = int64("index_to_evict", 1)
    enabling, channel = "regalloc-enable-advisor", "regalloc-evict"

    _REPLIES = tuple(struct.pack("<q", index) for index in range(256))

    def check(self, header: Header) -> None:
        """See `Advisor`."""
        super().check(header)
        found = _find(header, "mask")
        size = found.shape[-1] if found and found.shape else 0
        expect_spec(self.peer, int64("mask", 1, size), found)
        if not 0 < size <= len(self._REPLIES):
            raise SchemaMismatch(
                f"{self.peer}: feature 'mask': expected 1 to {len(self._REPLIES)}"
                f" elements, found {size}: this is not LLVM 22"
            )

    def encode(self, value: Any, features: Features) -> bytes:
        """See `Advisor`."""
        # Check the index here, because LLVM crashes if it receives an illegal one.
        mask = features["mask"][0]
        number = -1 if value is None or isinstance(value, bool) else value
        if type(number) is not int:
            number = self.scalar(value, "an index")
        if number in range(len(mask)) and mask[int(number)]:
            return self._REPLIES[int(number)]
        legal = ", ".join(str(index) for index in np.flatnonzero(mask))
        expected = f"an index where 'mask' is 1 ({legal})"
        if value is None:
            self.scalar(value, expected)
        raise self.illegal(expected, value)


class Priority(Advisor):
    """Decides the priority of a live range. The highest priority is allocated first."""

    name = "priority"
    tools = frozenset({"clang", "llc"})
    advice = float32("priority", 1)
    enabling, channel = "regalloc-enable-priority-advisor", "regalloc-priority"

    # The largest float below 2**32, because LLVM converts the advice to unsigned.
    LARGEST: ClassVar[float] = float(np.nextafter(np.float32(2**32), np.float32(0)))
    _EXPECTED = f"a number from 0 to {LARGEST:.0f}"
    _ENCODE = struct.Struct("<f").pack

    def encode(self, value: Any, features: Features) -> bytes:
        """See `Advisor`."""
        number = self.scalar(value, self._EXPECTED)
        # This comparison also rejects NaN.
        if 0 <= number <= self.LARGEST:
            return self._ENCODE(number)
        raise self.illegal(self._EXPECTED, value)


def _find(header: Header, name: str) -> TensorSpec | None:
    return next((spec for spec in header.features if spec.name == name), None)


def advisors(
    names: AdvisorName | Sequence[AdvisorName], tool: Tool, include_default: bool
) -> list[Advisor]:
    """Returns the advisors with these names, or raises InvalidArgument."""
    every = Inliner(include_default), Eviction(), Priority()
    known: dict[str, Advisor] = {advisor.name: advisor for advisor in every}
    wanted: Sequence[str] = [names] if isinstance(names, str) else names
    if not wanted or len(set(wanted)) < len(wanted):
        raise InvalidArgument(f"expected different advisors, found {list(wanted)}")
    for name in wanted:
        if name not in known:
            raise InvalidArgument(
                f"expected an advisor ({', '.join(known)}), found {name!r}"
            )
        if tool not in known[name].tools:
            raise InvalidArgument(
                f"{tool} has no {name} advisor: use"
                f" {' or '.join(sorted(known[name].tools))}"
            )
    return [known[name] for name in wanted]
