# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws conditions on a table. Their literals are, or resemble, values in its rows."""

import random
import re
from dataclasses import dataclass

from .tables import Expression, Kind, Value, literal

COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Term:
    """A condition in SQL."""

    sql: str
    expression: Expression

    @property
    def is_plain(self) -> bool:
        """Whether an index helps: the term compares an indexed column, without LIKE."""
        return (
            self.expression.is_column
            and self.expression.columns[0].is_indexed
            and " like " not in self.sql
        )


def draw_term(
    draw: random.Random, expression: Expression, value: Value, other: Value
) -> Term:
    """Draws a condition. `value` and `other` are values that the expression has."""
    left, kind = expression.left, expression.kind
    if expression.right:
        how = draw.choice((*COMPARISONS, "=", "<>"))
        return Term(f"{left} {how} {expression.right}", expression)
    if value is None or draw.random() < 0.02:
        negation = draw.choice(("", "not "))
        return Term(f"{left} is {negation}null", expression)
    if draw.random() < 0.1:
        value = beside(draw, value)
    if kind == "number" or (kind == "date" and draw.random() < 0.8):
        return Term(_of_order(draw, left, value, other), expression)
    return Term(_of_text(draw, left, str(value), other, kind), expression)


def beside(draw: random.Random, value: Value) -> Value:
    """Returns a similar value, which the data may lack."""
    if isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice("aeioxz059 -") + value[at + 1 :]
    if value is None:
        return None
    moved = value * draw.uniform(0.8, 1.25) + draw.choice((-1, 0, 1))
    return round(moved) if isinstance(value, int) else round(moved, 2)


def _of_order(draw: random.Random, left: str, value: Value, other: Value) -> str:
    if isinstance(value, float):
        value = round(value, draw.choice((1, 2, 6)))
    if isinstance(other, float):
        other = round(other, 2)
    form = draw.random()
    if form < 0.3:
        return f"{left} = {literal(value)}"
    if form < 0.65 or other is None:
        return f"{left} {draw.choice(COMPARISONS)} {literal(value)}"
    if form < 0.7:
        return f"{left} <> {literal(value)}"
    if form < 0.8:
        return _list(draw, left, value, other)
    same = isinstance(value, str) == isinstance(other, str)
    low, high = sorted((value, other)) if same else (value, value)  # type: ignore[type-var]
    if not isinstance(low, str) and draw.random() < 0.4:
        assert isinstance(high, (int, float))
        assert isinstance(low, (int, float))
        high = low + (high - low) // 10
    negation = "not " if draw.random() < 0.1 else ""
    return f"{left} {negation}between {literal(low)} and {literal(high)}"


def _list(draw: random.Random, left: str, value: Value, other: Value) -> str:
    listed = [value, other, *(beside(draw, value) for _ in range(draw.randint(0, 3)))]
    negation = "not " if draw.random() < 0.1 else ""
    texts = dict.fromkeys(literal(one) for one in listed if one is not None)
    return f"{left} {negation}in ({', '.join(texts)})"


def _of_text(
    draw: random.Random, left: str, value: str, other: Value, kind: Kind
) -> str:
    form = draw.random()
    if kind == "text" and form < 0.55:
        negation = "not " if draw.random() < 0.07 else ""
        return f"{left} {negation}like {literal(pattern(draw, value))}"
    if form < 0.8:
        return f"{left} = {literal(value)}"
    if form < 0.93:
        return _list(draw, left, value, other)
    return f"{left} {draw.choice((*COMPARISONS, '<>'))} {literal(value)}"


def pattern(draw: random.Random, value: str) -> str:
    """Returns a pattern for LIKE that a text matches."""
    words = re.findall(r"\w{2,}", value) or [value]
    word, form = draw.choice(words), draw.random()
    if form < 0.3:
        return f"%{word}%"
    if form < 0.45:
        at = draw.randrange(max(1, len(word) - 3))
        return f"%{word[at : at + draw.randint(3, 6)]}%"
    if form < 0.65:
        return f"{value[: draw.randint(1, max(1, min(8, len(value))))]}%"
    if form < 0.75:
        return f"%{value[-draw.randint(2, 6) :]}"
    if len(words) > 1:
        first = draw.randrange(len(words) - 1)
        return f"%{words[first]}%{draw.choice(words[first + 1 :])}%"
    return f"%{word[1:]}%"
