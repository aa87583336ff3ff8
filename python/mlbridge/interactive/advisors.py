# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's three advisors: the flags that open their channels, and the legal answers."""

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
"""Inlining; which live range makes way for another; which one is next."""

Tool: TypeAlias = Literal["clang", "opt", "llc"]

# What clang-22, /usr/lib/llvm-22/bin/clang++ and the like are.
_TOOL = re.compile(r"(?:.*-)?(clang|opt|llc)(?:\+\+)?(?:-\d+)?")


def tool_of(program: str) -> Tool:
    """Which of LLVM's tools a program is, by its name.

    Raises:
        InvalidArgument: none that has interactive advisors.
    """
    match = _TOOL.fullmatch(Path(program).name)
    if match is None:
        raise InvalidArgument(
            f"{program}: expected clang, opt or llc; say tool= if it is one of them"
        )
    tool: Tool = match[1]  # type: ignore[assignment]
    return tool


class Advisor(ABC):
    """One of LLVM's places of decision."""

    name: ClassVar[AdvisorName]
    tools: ClassVar[frozenset[Tool]]
    """Those that have it."""
    advice: ClassVar[TensorSpec]
    enabling: ClassVar[str]
    """LLVM's flag that turns it on."""
    channel: ClassVar[str]
    """How its flags begin that are of the channel."""

    def flags(self, base: str) -> list[str]:
        """LLVM's own flags that have it ask at BASE.out and listen at BASE.in."""
        return [
            f"-{self.enabling}=release",
            f"-{self.channel}-interactive-channel-base={base}",
        ]

    @abstractmethod
    def encode(self, value: Any, features: Features) -> bytes:
        """The bytes of a legal answer to a request.

        Raises:
            SchemaMismatch: the answer is no legal one.
            Unsupported: a deferral, where LLVM has no decision of its own.
        """

    def check(self, header: Header) -> None:
        """Whether this advisor is what a header is of.

        Raises:
            SchemaMismatch: it is not.
        """
        expect_spec(self.peer, self.advice, header.advice)

    @property
    def peer(self) -> str:
        """What it is called in errors."""
        return f"{self.name} advisor"

    def illegal(self, expected: str, found: Any) -> SchemaMismatch:
        """The error for an answer that LLVM must not get."""
        text = np.array2string(found) if isinstance(found, np.ndarray) else repr(found)
        return SchemaMismatch(
            f"{self.peer}: advice '{self.advice.name}': expected {expected},"
            f" found {text:.200}"
        )

    def scalar(self, value: Any, expected: str) -> bool | int | float:
        """The number in an answer, however it is wrapped.

        Raises:
            SchemaMismatch: there is none, or more than one.
            Unsupported: the answer is None.
        """
        if isinstance(value, bool | int | float):
            return value
        if value is None:
            raise Unsupported(
                f"{self.peer}: advice '{self.advice.name}': expected {expected}, found"
                " None: LLVM asks for this decision, and offers none of its own"
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
    """Whether a call is inlined: 0 or 1, a bool, or None for LLVM's own decision."""

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
        """As in `Advisor`."""
        default = ["-inliner-interactive-include-default"]
        return super().flags(base) + (default if self._include_default else [])

    def check(self, header: Header) -> None:
        """As in `Advisor`."""
        super().check(header)
        if self._include_default:
            expect_spec(self.peer, self._DEFAULT, _find(header, self._DEFAULT.name))

    def encode(self, value: Any, features: Features) -> bytes:
        """As in `Advisor`."""
        if value is None and self._include_default:
            value = features[self._DEFAULT.name]
        number = self.scalar(value, self._EXPECTED)
        if number == 1:
            return self._YES
        if number == 0:
            return self._NO
        raise self.illegal(self._EXPECTED, value)


class Eviction(Advisor):
    """Which register's live ranges make way: an index at which `mask` is 1.

    The last one is the live range itself that wants a register.
    """

    name = "eviction"
    tools = frozenset({"clang", "llc"})
    advice = int64("index_to_evict", 1)
    enabling, channel = "regalloc-enable-advisor", "regalloc-evict"

    _ANSWERS = tuple(struct.pack("<q", index) for index in range(256))

    def check(self, header: Header) -> None:
        """As in `Advisor`."""
        super().check(header)
        found = _find(header, "mask")
        places = found.shape[-1] if found and found.shape else 0
        expect_spec(self.peer, int64("mask", 1, places), found)
        if not 0 < places <= len(self._ANSWERS):
            raise SchemaMismatch(
                f"{self.peer}: feature 'mask': expected 1 to {len(self._ANSWERS)}"
                f" places, found {places}: this is no LLVM 22"
            )

    def encode(self, value: Any, features: Features) -> bytes:
        """As in `Advisor`."""
        # LLVM does not check it: any other index ends in a segmentation fault.
        mask = features["mask"][0]
        number = -1 if value is None or isinstance(value, bool) else value
        if type(number) is not int:
            number = self.scalar(value, "an index")
        if number in range(len(mask)) and mask[int(number)]:
            return self._ANSWERS[int(number)]
        legal = ", ".join(str(index) for index in np.flatnonzero(mask))
        expected = f"an index where 'mask' is 1 ({legal})"
        if value is None:
            self.scalar(value, expected)
        raise self.illegal(expected, value)


class Priority(Advisor):
    """How soon a live range is given a register: a number, the highest is first."""

    name = "priority"
    tools = frozenset({"clang", "llc"})
    advice = float32("priority", 1)
    enabling, channel = "regalloc-enable-priority-advisor", "regalloc-priority"

    # LLVM converts it to an unsigned without a check.
    LARGEST: ClassVar[float] = float(np.nextafter(np.float32(2**32), np.float32(0)))
    _EXPECTED = f"a number from 0 to {LARGEST:.0f}"
    _ENCODE = struct.Struct("<f").pack

    def encode(self, value: Any, features: Features) -> bytes:
        """As in `Advisor`."""
        number = self.scalar(value, self._EXPECTED)
        # False of NaN, too.
        if 0 <= number <= self.LARGEST:
            return self._ENCODE(number)
        raise self.illegal(self._EXPECTED, value)


def _find(header: Header, name: str) -> TensorSpec | None:
    return next((spec for spec in header.features if spec.name == name), None)


def advisors(
    names: AdvisorName | Sequence[AdvisorName], tool: Tool, include_default: bool
) -> list[Advisor]:
    """The advisors of these names.

    Raises:
        InvalidArgument: there is none of a name, the tool has no such advisor, or a
            name is there twice.
    """
    known: dict[str, Advisor] = {
        advisor.name: advisor
        for advisor in (Inliner(include_default), Eviction(), Priority())
    }
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
